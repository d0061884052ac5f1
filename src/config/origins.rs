//! Origins of pages, as browsers name them.

use hindsight_config::{BadValue, Kind, Value};

/// The origins whose pages may send requests from a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every origin there is.
    Any,
    /// Only these, such as `https://console.example`.
    These(Vec<String>),
}

impl Value for Origins {
    const WORD: &'static str = "ORIGINS";
    const KIND: Kind = Kind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        let origins = text.split(',').map(str::trim).map(origin);
        Ok(Self::These(origins.collect::<Result<_, _>>()?))
    }

    fn show(&self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::These(origins) => origins.join(","),
        }
    }
}

fn origin(text: &str) -> Result<String, BadValue> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte);
    match host {
        Some(host) if !host.is_empty() && host.bytes().all(plain) => Ok(text.to_owned()),
        _ => Err(BadValue::not_valid(
            text,
            "origin",
            "`https://HOST` or `https://HOST:PORT` in small letters, without a path, or `*` alone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_scheme_and_a_host_and_no_path() {
        let these =
            |texts: &[&str]| Origins::These(texts.iter().map(|t| (*t).to_owned()).collect());
        let cases = [
            ("*", Some(Origins::Any)),
            ("https://a.example", Some(these(&["https://a.example"]))),
            (
                "https://a.example:8443, http://[::1]:3000",
                Some(these(&["https://a.example:8443", "http://[::1]:3000"])),
            ),
            ("https://a.example/", None),
            ("a.example", None),
            ("https://A.example", None),
            ("https://a.example,*", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Origins::read(text).ok(), expected, "{text}");
        }
    }
}
