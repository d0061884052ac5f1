//! Whether a request that changes something comes from a page of this server, and where a caller
//! may be sent afterwards.

use axum::http::{HeaderMap, header};

const FETCH_SITE: &str = "sec-fetch-site";

/// Whether a browser sends this from a page of the same origin. `own` is the origin at which
/// browsers reach the server, if that is configured; otherwise the host must be the one asked.
pub(crate) fn is_same(headers: &HeaderMap, host: Option<&str>, own: Option<&str>) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    match own {
        Some(own) => origin == own,
        None => origin
            .split_once("://")
            .is_some_and(|(_, place)| Some(place) == host),
    }
}

/// The page to go to after this one: `to` if it is a path of a page of this server, else the first
/// one. `base` is what all paths of pages begin with.
pub(crate) fn safe_return(to: &str, base: &str) -> String {
    let rest = to.strip_prefix(base);
    let is_page = rest.is_some_and(|rest| rest.starts_with('/') && !rest.contains("//"));
    let is_plain = to
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // Browsers take an encoded dot in a path for a dot.
    let path = to.split(['?', '#']).next().unwrap_or_default();
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    let is_dotted = path.split('/').any(|part| matches!(part, "." | ".."));
    match is_page && is_plain && !is_dotted {
        true => to.to_owned(),
        false => format!("{base}/"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = given.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        pairs.collect()
    }

    #[test]
    fn only_pages_of_the_same_origin_may_change_something() {
        let own = Some("https://ui.example");
        for (given, own, same) in [
            (&[("sec-fetch-site", "same-origin")][..], None, true),
            (&[("sec-fetch-site", "same-site")][..], None, false),
            (&[("sec-fetch-site", "none")][..], None, false),
            (
                &[("sec-fetch-site", "cross-site"), ("origin", "http://h:1")][..],
                None,
                false,
            ),
            (&[("origin", "http://h:1")][..], None, true),
            (&[("origin", "http://h:2")][..], None, false),
            (&[("origin", "null")][..], None, false),
            (&[("origin", "https://ui.example")][..], own, true),
            (&[("origin", "http://h:1")][..], own, false),
            (&[][..], own, false),
        ] {
            assert_eq!(
                is_same(&headers(given), Some("h:1"), own),
                same,
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_caller_is_sent_to_pages_of_this_server_alone() {
        for good in [
            "/ui/",
            "/ui/runs?q=failed+x&page=a%2F%2Fb",
            "/ui/run/a/results/b",
        ] {
            assert_eq!(safe_return(good, "/ui"), good);
        }
        for bad in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/ui/",
            "/ui",
            "/ui//evil.example",
            "/ui/\\evil.example",
            "/uix/",
            "/ui/../apis/x",
            "/ui/%2e%2E/apis/x",
            "/ui/./x",
            "/ui/runs\r\nset-cookie: a=b",
            "javascript:alert(1)",
        ] {
            assert_eq!(safe_return(bad, "/ui"), "/ui/", "{bad}");
        }
    }
}
