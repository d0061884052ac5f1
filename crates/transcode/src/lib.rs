//! The REST API: every annotated method of the gRPC services as HTTP and JSON.
//!
//! Routes come from the `google.api.http` options of the descriptors. A request becomes the
//! message that gRPC would have brought and goes to the gRPC service in this process, so that both
//! share one check of access, one set of counters and one deadline. Nothing is decided here, and an
//! answer has nothing that the message does not have.

mod answer;
mod call;
mod dialect;
mod health;
mod json;
mod mask;
mod openapi;
mod raw;
mod replies;
mod request;
mod routes;
mod shape;
mod sse;
mod template;
mod unique;
mod wire;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, Request, Response, request::Parts},
    routing::get,
};
use hindsight_proto::metadata::{
    FIELD_SELECTOR, FILTER_LANGUAGE, LABEL_SELECTOR, REQUEST_ID, WARNING,
};
use hindsight_runtime::traces;
use http_body_util::{BodyExt as _, Limited};
use prost_reflect::{DescriptorPool, prost::Message as _};
use tonic::{Code, Status};
use tracing::Instrument as _;

use answer::Refusal;
use routes::{NoRoute, Route, Routes};
use shape::Shapes;

pub use call::metadata as call_metadata;

/// The query parameter, and the metadata, that ask for parts of a reply.
const FIELDS: &str = "fields";
/// What lists are selected by beside their filter: the metadata, the query parameters that stand
/// for it, and what it is.
const BESIDE: [(&str, [&str; 2], &str); 3] = [
    (
        LABEL_SELECTOR,
        ["labelSelector", "label_selector"],
        "A Kubernetes label selector, beside the filter.",
    ),
    (
        FIELD_SELECTOR,
        ["fieldSelector", "field_selector"],
        "A Kubernetes field selector, beside the filter.",
    ),
    (
        FILTER_LANGUAGE,
        ["filterLanguage", "filter_language"],
        "What the filter is written in: `cel`, `labels` or `fields`.",
    ),
];
/// Messages above this are worked on beside the event loop.
const HEAVY: usize = 64 << 10;
/// How much of a body that means nothing is read so that the connection can be used again.
const MEANINGLESS: usize = 1 << 20;
/// How long such a body is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why the descriptors give no routes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing declares the option that routes are read from.
    #[error("the descriptors do not declare google.api.http")]
    NoOption,
    /// A method has an option that cannot be a route.
    #[error("{method} has no route: {why}")]
    Rule {
        /// The full name of the method.
        method: String,
        /// What is wrong with its option.
        why: &'static str,
    },
}

/// The REST API over the services of one gRPC router.
#[derive(Debug, Clone)]
pub struct Rest {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    routes: Routes,
    grpc: Router,
    limit: usize,
    /// Whether bodies have to say that they are JSON.
    only_json: bool,
    description: Bytes,
}

impl Rest {
    /// A REST API of the services that `pool` describes and `grpc` answers; a request message may
    /// have `limit` bytes. With `only_json` a body is taken only with a content type that pages
    /// of other origins cannot send unasked.
    ///
    /// # Errors
    /// If a method has an option that cannot be a route.
    pub fn new(
        pool: &DescriptorPool,
        grpc: Router,
        limit: usize,
        only_json: bool,
    ) -> Result<Self, Error> {
        let routes = Routes::read(pool)?;
        let inner = Inner {
            description: openapi::describe(&routes).to_string().into(),
            routes,
            grpc,
            limit,
            only_json,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// An encoded answer of the method at a path, as that method's own answers are; for what comes in another form than JSON.
    pub fn answer_of(&self, verb: &Method, path: &str, reply: Bytes) -> Response<Body> {
        let answer = request::segments(path).and_then(|segments| {
            let found = self.inner.routes.find(verb, &segments);
            let (route, _) = found.map_err(|_lost| Refusal::unknown_path())?;
            render(route, &reply, false)
        });
        answer.unwrap_or_else(Refusal::into_response)
    }

    /// The methods, `/healthz`, `/openapi.json`, and a refusal in JSON for everything else.
    pub fn router(self) -> Router {
        let healthy = self.clone();
        let check = move |request: Request<Body>| async move {
            let query = request.uri().query().unwrap_or_default();
            let answer = health::check(&healthy.inner.grpc, query).await;
            answer.unwrap_or_else(Refusal::into_response)
        };
        let described = self.clone();
        let describe = move |headers: HeaderMap| async move {
            let description = described.inner.description.to_vec();
            answer::packed(description, answer::takes_gzip(&headers))
        };
        Router::new()
            .route("/healthz", get(check))
            .route("/openapi.json", get(describe))
            .method_not_allowed_fallback(async || Refusal::wrong_verb().into_response())
            .fallback(move |request| async move { self.answer(request).await })
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let id = request_id(request.headers());
        let span = tracing::info_span!("http", request.id = id.to_str().unwrap_or_default());
        traces::adopt(&span, traceparent(request.headers()));
        let answer = self.inner.answer(request, &id).instrument(span).await;
        let mut response = answer.unwrap_or_else(Refusal::into_response);
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }
}

impl Inner {
    async fn answer(
        &self,
        request: Request<Body>,
        id: &HeaderValue,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let path = request::segments(parts.uri.path())?;
        let (route, captures) =
            self.routes
                .find(&parts.method, &path)
                .map_err(|lost| match lost {
                    NoRoute::Path => Refusal::unknown_path(),
                    NoRoute::Verb => Refusal::wrong_verb(),
                })?;
        let mut query = request::query(parts.uri.query().unwrap_or_default())?;
        let streams = route.method.is_server_streaming();
        if streams {
            sse::resume(&parts.headers, &mut query)?;
        }
        let mut metadata = metadata(&parts, &query, id)?;
        if route.body != routes::Body::Ignored {
            request::media(&parts.headers, self.only_json)?;
        }
        let body = self.read(route, body).await?;
        for name in request::emptied(route, &body) {
            metadata.insert(name, HeaderValue::from_static("true"));
        }
        let asked = {
            let route = route.clone();
            work(body.len(), move || {
                request::message(&route, captures, query, &body)
            })
            .await?
        };
        if asked.encoded_len() > self.limit {
            return Err(Refusal::too_large(self.limit));
        }
        if streams {
            let reply = call::open(&self.grpc, &route.target, metadata, asked).await?;
            if raw::is_raw(route) {
                return raw::answer(reply).await;
            }
            return Ok(sse::answer(route.clone(), reply));
        }
        let (reply, warnings) = call::ask(&self.grpc, &route.target, metadata, asked).await?;
        let gzip = answer::takes_gzip(&parts.headers);
        let route = route.clone();
        let mut response = work(reply.len(), move || render(&route, &reply, gzip)).await?;
        for warning in warnings {
            response.headers_mut().append(WARNING, warning);
        }
        Ok(response)
    }

    /// The body of a request, if it means something.
    async fn read(&self, route: &Route, body: Body) -> Result<Bytes, Refusal> {
        if route.body == routes::Body::Ignored {
            // Whatever it is, and whether or not it arrives.
            let rest = Limited::new(body, MEANINGLESS).collect();
            drop(tokio::time::timeout(PATIENCE, rest).await);
            return Ok(Bytes::new());
        }
        let most = largest_body(self.limit);
        match Limited::new(body, most).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Refusal::too_large(self.limit))
            }
            Err(error) => match Status::try_from_error(error) {
                Ok(spent) if spent.code() == Code::ResourceExhausted => Err(spent.into()),
                Ok(broken) => Err(broke_off(broken.message())),
                Err(error) => Err(broke_off(&error.to_string())),
            },
        }
    }
}

fn broke_off(why: &str) -> Refusal {
    Refusal::invalid(format!("the body broke off: {why}"))
}

/// The largest body for a message of so many bytes: base64 makes four bytes of three, and names and
/// escapes fit in what is added.
pub fn largest_body(message: usize) -> usize {
    message / 3 * 4 + MEANINGLESS
}

/// What a status is over HTTP.
pub fn refusal(status: Status) -> Response<Body> {
    Refusal::from(status).into_response()
}

/// A refusal of what comes before all routes.
pub fn denied(why: impl Into<String>) -> Response<Body> {
    Refusal::denied(why).into_response()
}

/// A refusal of what this server does not offer.
pub fn unsupported(why: impl Into<String>) -> Response<Body> {
    Refusal::unsupported(why).into_response()
}

/// A refusal of a request that makes no sense before it is looked at.
pub fn invalid(why: impl Into<String>) -> Response<Body> {
    Refusal::invalid(why).into_response()
}

/// Does what takes long for large messages beside the event loop.
async fn work<T: Send + 'static>(size: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if size < HEAVY {
        return work();
    }
    tokio::task::spawn_blocking(work)
        .await
        .expect("conversion does not panic")
}

fn render(route: &Route, reply: &[u8], gzip: bool) -> Result<Response<Body>, Refusal> {
    Ok(answer::packed(json_of(route, reply)?, gzip))
}

/// An encoded reply as JSON.
fn json_of(route: &Route, reply: &[u8]) -> Result<Vec<u8>, Refusal> {
    let json = route.shapes.json(route.reply, reply, &route.dialect);
    json.map_err(|error| Refusal::internal(format!("a reply has no JSON: {error}")))
}

/// What goes beside the message: the metadata of the headers, the parts asked for, and the name
/// of the request.
fn metadata(
    parts: &Parts,
    query: &[(String, String)],
    id: &HeaderValue,
) -> Result<HeaderMap, Refusal> {
    call::refuse_hidden(&parts.headers)?;
    let mut metadata = call::metadata(&parts.headers);
    if let Some((_, fields)) = query.iter().find(|(key, _)| key == FIELDS) {
        let fields = HeaderValue::from_bytes(fields.as_bytes())
            .map_err(|_odd| Refusal::invalid("fields: contains a control character"))?;
        metadata.insert(FIELDS, fields);
    }
    for (name, parameters, _) in BESIDE {
        let mut given = query
            .iter()
            .filter(|(key, _)| parameters.contains(&key.as_str()));
        if let Some((key, text)) = given.next() {
            let text = HeaderValue::from_bytes(text.as_bytes())
                .map_err(|_odd| Refusal::invalid(format!("{key}: contains a control character")))?;
            if given.next().is_some() {
                return Err(Refusal::invalid(format!("{key}: given twice")));
            }
            metadata.insert(name, text);
        }
    }
    metadata.insert(REQUEST_ID, id.clone());
    Ok(metadata)
}

/// The JSON that answers under `/apis/hindsight.dev/` have for an encoded message of this full name;
/// `None` if `descriptors` have no such message or the bytes are not one.
pub fn document(descriptors: &[u8], name: &str, message: &[u8]) -> Option<Vec<u8>> {
    let pool = DescriptorPool::decode(descriptors).ok()?;
    let mut shapes = Shapes::default();
    let at = shapes.add(&pool.get_message_by_name(name)?);
    shapes.json(at, message, &dialect::HINDSIGHT).ok()
}

/// Of which trace a request is a part; empty if it does not say.
pub fn traceparent(headers: &HeaderMap) -> &str {
    let value = headers.get(traces::HEADER);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The name of a request: the given one, unless it is long or strange.
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |id: &&HeaderValue| {
        (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    headers
        .get(REQUEST_ID)
        .filter(plain)
        .cloned()
        .unwrap_or_else(|| {
            let id = uuid::Uuid::new_v4().to_string();
            HeaderValue::from_str(&id).expect("a UUID is a header value")
        })
}
