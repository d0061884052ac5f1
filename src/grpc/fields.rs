//! Partial answers: the metadata key `fields` names what a client wants of a reply, and the
//! rest of the reply is left out.
//!
//! Works on every unary reply after the handler made it, so it decides nothing about what may
//! be read. A list of records does not read payloads of which nothing is wanted.

mod mask;
mod message;
mod payload;

use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll},
};

use axum::http::{HeaderMap, Request, Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, prost::Message as _};
use tonic::{Code, Status, body::Body, metadata::MetadataMap, server::NamedService};
use tower_service::Service;

use mask::Mask;

const HEADER: &str = "fields";
/// A message on the wire is preceded by a flag and its length.
const FRAME: usize = 5;
/// By how many bytes the parts of an answer may be more than the answer.
const ROOM: usize = 4 << 20;
/// Messages above this are worked on beside the event loop.
const HEAVY: usize = 64 << 10;

/// A service whose clients may ask for parts of replies.
#[derive(Debug, Clone)]
pub struct Fields<S> {
    inner: S,
    replies: Arc<HashMap<String, MessageDescriptor>>,
}

impl<S> Fields<S> {
    /// Masks the replies of `inner`, whose methods `pool` describes.
    pub fn new(inner: S, pool: &DescriptorPool) -> Self {
        let replies = pool
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            .filter(|method| !method.is_server_streaming())
            .map(|method| {
                let service = method.parent_service().full_name().to_owned();
                (format!("/{service}/{}", method.name()), method.output())
            })
            .collect();
        Self {
            inner,
            replies: Arc::new(replies),
        }
    }
}

impl<S: NamedService> NamedService for Fields<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Q> Service<Request<Q>> for Fields<S>
where
    S: Service<Request<Q>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let mask = match asked(request.headers()) {
            Ok(mask) => mask,
            Err(status) => return Box::pin(async move { Ok(status.into_http()) }),
        };
        let reply = self.replies.get(request.uri().path()).cloned();
        let (Some(mask), Some(reply)) = (mask, reply) else {
            return Box::pin(self.inner.call(request));
        };
        // The reply is read here, so it must come as it is.
        request.headers_mut().remove("grpc-accept-encoding");
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(masked(answer, reply, mask)
                .await
                .unwrap_or_else(Status::into_http))
        })
    }
}

/// The mask that was asked for; nothing, or an empty list, asks for everything.
fn asked(headers: &HeaderMap) -> Result<Option<Mask>, Status> {
    let mut texts = Vec::new();
    for value in headers.get_all(HEADER) {
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_not_text| Status::invalid_argument("fields: not UTF-8"))?;
        texts.push(text);
    }
    Mask::parse(&texts.join(",")).map_err(Status::invalid_argument)
}

/// Whether anything of payloads is wanted of a page of records.
pub(super) fn want_payloads(metadata: &MetadataMap) -> bool {
    let Ok(Some(mask)) = asked(metadata.as_ref()) else {
        return true;
    };
    mask.of("records").is_some_and(|record| {
        record.is_whole()
            || record
                .of("data")
                .is_some_and(|data| data.is_whole() || data.of("value").is_some())
    })
}

async fn masked(
    answer: Response<Body>,
    reply: MessageDescriptor,
    mask: Mask,
) -> Result<Response<Body>, Status> {
    // A head with a status is the whole answer and ends the stream; it stays one frame.
    if answer.headers().contains_key(Status::GRPC_STATUS) {
        return Ok(answer);
    }
    let (parts, body) = answer.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    let whole = body.to_bytes();
    let refused = trailers
        .as_ref()
        .and_then(Status::from_header_map)
        .is_some_and(|status| status.code() != Code::Ok);
    let bytes = if refused || whole.len() <= FRAME {
        whole
    } else if whole.len() > HEAVY {
        tokio::task::spawn_blocking(move || cut(&whole, reply, &mask))
            .await
            .expect("masking does not panic")?
    } else {
        cut(&whole, reply, &mask)?
    };
    let body = Full::new(bytes).with_trailers(async move { trailers.map(Ok) });
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// The framed message without what the mask leaves out.
fn cut(framed: &Bytes, reply: MessageDescriptor, mask: &Mask) -> Result<Bytes, Status> {
    let broken = |error| Status::internal(format!("a reply cannot be masked: {error}"));
    let mut message =
        DynamicMessage::decode(reply, framed.slice(FRAME..)).map_err(|e| broken(e.to_string()))?;
    let mut room = framed.len() + ROOM;
    message::cut(&mut message, mask, &mut room).map_err(|message::TooLarge| {
        Status::resource_exhausted(format!(
            "fields: what the paths lead to takes over {ROOM} bytes more than the whole answer; ask for \
             fewer paths, or for the answer without `fields`"
        ))
    })?;
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(FRAME + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).map_err(|e| broken(e.to_string()))?);
    message
        .encode(&mut frame)
        .map_err(|e| broken(e.to_string()))?;
    Ok(frame.freeze())
}
