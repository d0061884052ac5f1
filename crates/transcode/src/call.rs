//! One call of a gRPC method in this process: the same checks and counters as over the
//! network, without a socket.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, uri::PathAndQuery},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use hindsight_proto::metadata::{
    FIELD_SELECTOR, FILTER_LANGUAGE, IMPERSONATE, LABEL_SELECTOR, WARNING,
};
use http_body_util::BodyExt as _;
use prost_reflect::prost::Message;
use tower_service::Service as _;

use super::answer::{Refusal, refused};

/// A message on the wire is preceded by a flag and its length.
const FRAME: usize = 5;
/// Headers with this beginning are metadata of the call.
const METADATA: &str = "grpc-metadata-";
/// Headers that are metadata under their own names.
const FORWARDED: [&str; 7] = [
    "authorization",
    "grpc-timeout",
    "traceparent",
    "tracestate",
    FILTER_LANGUAGE,
    LABEL_SELECTOR,
    FIELD_SELECTOR,
];
/// The only metadata that the prefix makes. A proxy that strips or sets headers by their names does
/// not know the prefix, so nothing that only proxies may say is here.
const BY_PREFIX: [&str; 5] = [
    "authorization",
    "fields",
    FILTER_LANGUAGE,
    LABEL_SELECTOR,
    FIELD_SELECTOR,
];

/// What a request carries beside its message.
pub fn metadata(headers: &HeaderMap) -> HeaderMap {
    let mut metadata = HeaderMap::new();
    for (name, value) in headers {
        let name = name.as_str();
        let name = match name.strip_prefix(METADATA) {
            Some(name) if BY_PREFIX.contains(&name) => name,
            None if FORWARDED.contains(&name) || name.starts_with(IMPERSONATE) => name,
            _ => continue,
        };
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            metadata.append(name, value.clone());
        }
    }
    metadata
}

/// Refuses a user to act for that is named where proxies do not look: to pass over it would answer
/// with other rights than were meant.
pub(super) fn refuse_hidden(headers: &HeaderMap) -> Result<(), Refusal> {
    let hidden = headers.keys().find_map(|name| {
        let meant = name.as_str().strip_prefix(METADATA)?;
        meant.starts_with(IMPERSONATE).then_some((name, meant))
    });
    match hidden {
        None => Ok(()),
        Some((name, meant)) => Err(Refusal::invalid(format!(
            "the header `{name}` is not taken; send it as `{meant}`"
        ))),
    }
}

/// Asks `grpc` for a stream of replies, and returns it once it was not refused.
pub(super) async fn open(
    grpc: &Router,
    target: &PathAndQuery,
    metadata: HeaderMap,
    message: impl Message,
) -> Result<Body, Refusal> {
    let request = request(target, metadata, message)?;
    let Ok(response) = grpc.clone().call(request).await;
    refused(response.headers())?;
    Ok(response.into_body())
}

/// Takes the next message off what was read of a stream of replies; none, if it is not whole yet.
pub(super) fn split_message(read: &mut BytesMut) -> Option<Bytes> {
    let length: [u8; 4] = read.get(1..FRAME)?.try_into().ok()?;
    let end = FRAME + usize::try_from(u32::from_be_bytes(length)).ok()?;
    (read.len() >= end).then(|| read.split_to(end).freeze().slice(FRAME..))
}

/// Asks `grpc` and returns the reply, still encoded, and what its caller should be told beside it.
pub(super) async fn ask(
    grpc: &Router,
    target: &PathAndQuery,
    metadata: HeaderMap,
    message: impl Message,
) -> Result<(Bytes, Vec<HeaderValue>), Refusal> {
    let request = request(target, metadata, message)?;
    let Ok(response) = grpc.clone().call(request).await;
    refused(response.headers())?;
    let warnings = response.headers().get_all(WARNING);
    let warnings: Vec<_> = warnings.iter().cloned().collect();
    let body = response.into_body().collect().await;
    let body = body.map_err(|error| Refusal::internal(format!("a reply broke off: {error}")))?;
    match body.trailers() {
        Some(trailers) => refused(trailers)?,
        None => return Err(Refusal::internal("a reply has no status")),
    }
    let bytes = body.to_bytes();
    if bytes.len() < FRAME {
        return Err(Refusal::internal("a reply has no message"));
    }
    Ok((bytes.slice(FRAME..), warnings))
}

/// The request of a call. The message is there once at a time.
fn request(
    target: &PathAndQuery,
    metadata: HeaderMap,
    message: impl Message,
) -> Result<Request<Body>, Refusal> {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(FRAME + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).map_err(|_over| Refusal::too_large(u32::MAX as usize))?);
    message
        .encode(&mut frame)
        .map_err(|error| Refusal::internal(format!("a request cannot be encoded: {error}")))?;

    drop(message);
    let mut request = Request::new(Body::from(frame.freeze()));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = target.clone().into();
    *request.headers_mut() = metadata;
    let headers = request.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_deadline_and_metadata_are_forwarded_and_nothing_else() {
        let given = [
            ("authorization", "Bearer a"),
            ("grpc-metadata-authorization", "Bearer b"),
            ("grpc-metadata-fields", "name"),
            ("grpc-metadata-te", "x"),
            ("grpc-metadata-content-type", "text/plain"),
            ("grpc-metadata-grpc-timeout", "1n"),
            ("grpc-metadata-x-request-id", "forged"),
            ("grpc-metadata-x-forwarded-for", "10.0.0.1"),
            ("grpc-metadata-traceparent", "forged"),
            ("grpc-metadata-authorization-bin", "AAAA"),
            ("grpc-metadata-hindsight-field-selector", "f"),
            ("grpc-metadata-grpc-metadata-fields", "uid"),
            ("grpc-metadata-", "empty"),
            ("x-forwarded-user", "root"),
            ("grpc-timeout", "1S"),
            ("impersonate-user", "u"),
            ("impersonate-extra-scope", "s"),
            ("cookie", "c"),
            ("content-length", "5"),
            ("accept-encoding", "gzip"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name, HeaderValue::from_static(value));
        }
        let metadata = metadata(&headers);
        let mut seen: Vec<_> = metadata
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                ("authorization", "Bearer a"),
                ("authorization", "Bearer b"),
                ("fields", "name"),
                ("grpc-timeout", "1S"),
                ("hindsight-field-selector", "f"),
                ("impersonate-extra-scope", "s"),
                ("impersonate-user", "u"),
            ]
        );
    }

    #[test]
    fn a_user_to_act_for_is_refused_where_proxies_do_not_look() {
        for what in [
            "user",
            "group",
            "uid",
            "extra-scope",
            "user-bin",
            "anything",
        ] {
            let mut headers = HeaderMap::new();
            headers.append("impersonate-user", HeaderValue::from_static("alice"));
            let name = format!("Grpc-Metadata-Impersonate-{what}");
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_static("admins"));
            assert_eq!(metadata(&headers).len(), 1);
            let refusal = refuse_hidden(&headers).unwrap_err();
            let says = format!("send it as `impersonate-{what}`");
            assert!(
                refusal.http == 400 && refusal.message.contains(&says),
                "{refusal:?}"
            );
        }
    }
}
