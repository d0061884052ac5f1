//! The address at which browsers reach the server.

use hindsight_config::{BadValue, Value};

/// An address of HTTP with nothing after its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    path: String,
}

impl PublicUrl {
    /// Scheme, host and port, as browsers name the origin of a page.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The path below which a proxy has put the server; empty, or without a `/` at its end.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether browsers reach the server over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// The name of the host, without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        let (_, place) = self.origin.split_once("://").unwrap_or_default();
        match place.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
            _ => place,
        }
    }
}

impl Value for PublicUrl {
    const WORD: &'static str = "URL";

    fn read(text: &str) -> Result<Self, BadValue> {
        let (scheme, after) = text.split_once("://").unwrap_or(("", text));
        let (place, path) = match after.find('/') {
            Some(at) => after.split_at(at),
            None => (after, ""),
        };
        let of_place = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte)
        };
        let of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let path = path.trim_end_matches('/');
        let is_valid = matches!(scheme, "http" | "https")
            && !place.is_empty()
            && place.bytes().all(of_place)
            && path.bytes().all(of_path)
            && !path.contains("//")
            && !path.split('/').any(|part| part == ".." || part == ".");
        if !is_valid {
            let want = "`https://HOST` or `https://HOST:PORT/PATH`, with the host in small letters";
            return Err(BadValue::not_valid(text, "address of a server", want));
        }
        Ok(Self {
            origin: format!("{scheme}://{place}"),
            path: path.to_owned(),
        })
    }

    fn show(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_an_origin_a_host_and_a_path() {
        for (text, origin, host, path) in [
            ("https://a.example", "https://a.example", "a.example", ""),
            ("http://h:8080/", "http://h:8080", "h", ""),
            (
                "https://a.example/results/",
                "https://a.example",
                "a.example",
                "/results",
            ),
            ("https://[::1]:1/a/b", "https://[::1]:1", "[::1]", "/a/b"),
        ] {
            let url = PublicUrl::read(text).unwrap();
            assert_eq!((url.origin(), url.host(), url.path()), (origin, host, path));
        }
        for bad in [
            "",
            "a.example",
            "https://",
            "https:///path",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://A.example",
            "https://a.example/?q",
            "https://a.example/a//b",
            "https://a.example/../b",
            "https://a.example/<b>",
        ] {
            assert!(PublicUrl::read(bad).is_err(), "{bad}");
        }
    }
}
