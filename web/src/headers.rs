//! The headers of every answer below `/ui`, set in one place.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};

/// What pages may load and do: nothing but what this server serves, and no inline scripts or styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What payloads may do that a browser shows: nothing.
const SANDBOX: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";

/// What an answer is, which says how it may be kept and what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A page of one caller.
    Page,
    /// A drawing that pages elsewhere may show, of what its caller may read.
    Badge,
    /// A file that is the same for every caller, under a name that changes with it.
    Asset,
    /// Bytes that were stored.
    Payload,
}

/// Sets the headers of an answer. `secure` says that browsers reach the server over TLS.
pub(crate) fn secured(mut response: Response<Body>, secure: bool) -> Response<Body> {
    let content = response.extensions_mut().remove::<Content>();
    let content = content.unwrap_or(Content::Page);
    let (policy, cache) = match content {
        Content::Page => (POLICY, "private, no-cache"),
        Content::Badge => (SANDBOX, "private, max-age=60"),
        Content::Asset => (POLICY, "public, max-age=31536000, immutable"),
        Content::Payload => (SANDBOX, "private, no-store"),
    };
    let same_origin = "same-origin";
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, cache),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, same_origin),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            same_origin,
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            // Browsers send no session with it: cookies are SameSite=Lax.
            match content {
                Content::Badge => "cross-origin",
                _ => same_origin,
            },
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if secure {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}
