//! The server itself: from an HTTP request to its answer, with faults in between and a record after.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::{
    calls::Call,
    deletion::{DeleteOptions, Deleted},
    discovery,
    faults::Fate,
    kinds::Kind,
    lifecycle::{Part, Write},
    list::{Form, Listing},
    objects::{Key, KindId, Stored},
    patch::{Patch, read_body, read_object},
    refusal::Refusal,
    route::{Query, Route, Target, not_allowed, verb},
    sim::Shared,
    watch::{Watch, Watching},
};

/// The body of an answer; a watch's goes on for as long as the watch.
pub type SimBody = UnsyncBoxBody<Bytes, io::Error>;

type Answer = Response<SimBody>;

/// The simulated API server as a service; an error stands for a broken connection.
#[derive(Debug, Clone)]
pub struct SimService {
    shared: Arc<Shared>,
}

impl SimService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When the connection breaks instead, by a planned fault or an outage.
    pub async fn answer<B>(&self, request: Request<B>) -> io::Result<Answer>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(io::Error::other(error.to_string())),
        };
        answer(&self.shared, &parts, &body).await
    }
}

impl<B> tower::Service<Request<B>> for SimService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

async fn answer(shared: &Arc<Shared>, parts: &Parts, body: &[u8]) -> io::Result<Answer> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path();
    let Some(route) = Route::parse(path) else {
        return Ok(page_not_found());
    };
    let verb = match verb(&route, &parts.method, query.flag("watch")) {
        Ok(verb) => verb,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    let mut call = route.call(path, verb, shared.clock.now());
    let delay = shared.faults.delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    if shared.faults.is_down() {
        shared.calls.record(call);
        return Err(broken("the server is down"));
    }
    let fate = shared.faults.meet(&call);
    let answer = match &fate {
        Fate::Break => Err(broken("the connection was reset")),
        Fate::Answer(refusal) => Ok(refused(refusal)),
        Fate::Normal | Fate::LoseAnswer | Fate::Wait(_) | Fate::Stale(_) => {
            if let Fate::Wait(delay) = fate {
                tokio::time::sleep(delay).await;
            }
            let stale = match fate {
                Fate::Stale(version) => Some(version),
                _ => None,
            };
            let asked = Asked {
                shared,
                parts,
                query: &query,
                body,
                stale,
            };
            Ok(asked.run(&route, &call))
        }
    };
    let answer = match fate {
        Fate::LoseAnswer => Err(broken("the connection was reset before the answer")),
        _ => answer,
    };
    call.status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
    shared.calls.record(call);
    answer
}

/// One request with everything it brought.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    shared: &'a Arc<Shared>,
    parts: &'a Parts,
    query: &'a Query,
    body: &'a [u8],
    /// At which version it reads, if not the newest.
    stale: Option<u64>,
}

/// A kind that a request is about, under one of its versions.
#[derive(Debug, Clone)]
struct Served {
    id: KindId,
    kind: Arc<Kind>,
    version: String,
}

impl Asked<'_> {
    fn run(&self, route: &Route, call: &Call) -> Answer {
        let accept = self.header(&header::ACCEPT);
        let aggregated = discovery::wants_aggregated(accept);
        let world = || self.shared.world();
        let document = match route {
            Route::Objects(target) => {
                return self
                    .objects(target, call.verb)
                    .unwrap_or_else(|refusal| refused(&refusal));
            }
            Route::Health => return text(StatusCode::OK, "ok"),
            Route::Version => Some(discovery::version()),
            Route::CoreVersions | Route::Groups if aggregated => {
                let list = world().aggregated(*route == Route::CoreVersions);
                let kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
                return answer_with(StatusCode::OK, kind, list.to_string());
            }
            Route::CoreVersions => Some(discovery::core_versions()),
            Route::Groups => Some(world().groups()),
            Route::Group(group) => world().group(group).map(|mut group| {
                group["kind"] = "APIGroup".into();
                group["apiVersion"] = "v1".into();
                group
            }),
            Route::Resources { group, version } => world().resources(group, version),
        };
        document.map_or_else(page_not_found, |document| json(StatusCode::OK, &document))
    }

    fn objects(&self, target: &Target, verb: &str) -> Result<Answer, Refusal> {
        let Some(served) = self.served(target) else {
            return Ok(page_not_found());
        };
        let kind = &served.kind;
        if !kind.verbs.contains(&verb)
            || (kind.namespaced && verb == "create" && target.namespace.is_empty())
        {
            return Err(not_allowed());
        }
        match target.subresource.as_str() {
            "" => {}
            "status" if kind.status && matches!(verb, "get" | "update" | "patch") => {}
            "status" if kind.status => return Err(not_allowed()),
            _ => {
                let why = "the server could not find the requested resource";
                return Err(Refusal::new(404, "NotFound", why));
            }
        }
        let form = Form::of(self.header(&header::ACCEPT))?;
        match verb {
            "list" => self.list(&served, target, form),
            "watch" => self.watch(served, target, form),
            "create" => self.create(&served, target, form),
            "deletecollection" => self.delete_collection(&served, target, form),
            _ => self.object(&served, target, verb, form),
        }
    }

    fn list(&self, served: &Served, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let mut listing = Listing::parse(self.query, &target.namespace)?;
        listing.newest = self.stale;
        let page = self.shared.world().list(served.id, &listing)?;
        Ok(json_bytes(
            StatusCode::OK,
            page.write(&served.kind, &served.version, form),
        ))
    }

    fn watch(&self, served: Served, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let offered = self.shared.settings.streaming_lists;
        let watching = Watching::parse(self.query, &target.namespace, form, offered)?;
        let shared = Arc::clone(self.shared);
        let watch = Watch::open(shared, served.id, served.kind, &served.version, watching);
        let lines = stream::unfold(watch, |mut watch| async move {
            let chunk = watch.next().await?;
            Some((chunk.map(Frame::data), watch))
        });
        let body = StreamBody::new(lines).boxed_unsync();
        Ok(response(StatusCode::OK, "application/json", body))
    }

    fn create(&self, served: &Served, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let object = read_body(self.header(&header::CONTENT_TYPE), self.body)?;
        if !served.kind.stored() {
            let policy = &self.shared.policy;
            let answered = match served.kind.plural.as_str() {
                "tokenreviews" => policy.review_token(object)?,
                _ => policy.review_access(object)?,
            };
            return Ok(json(StatusCode::CREATED, &answered));
        }
        let write = self.write(served, Part::Main);
        let made = self
            .shared
            .change(|world| world.create(served.id, &target.namespace, object, &write))?;
        Ok(show(StatusCode::CREATED, served, &made, form))
    }

    fn object(
        &self,
        served: &Served,
        target: &Target,
        verb: &str,
        form: Form,
    ) -> Result<Answer, Refusal> {
        let key = Key::new(&target.namespace, &target.name);
        let part = if target.subresource == "status" {
            Part::Status
        } else {
            Part::Main
        };
        match verb {
            "get" => {
                let world = self.shared.world();
                let found = match self.stale {
                    None => world.existing(served.id, &key)?,
                    Some(version) => world.existed(served.id, &key, version)?,
                };
                drop(world);
                Ok(show(StatusCode::OK, served, &found, form))
            }
            "update" => {
                let object = read_body(self.header(&header::CONTENT_TYPE), self.body)?;
                let write = self.write(served, part);
                let new = self
                    .shared
                    .change(|world| world.update(served.id, &key, object, &write))?;
                Ok(show(StatusCode::OK, served, &new, form))
            }
            "patch" => {
                let (force, custom) = (self.query.flag("force"), served.kind.custom);
                let content_type = self.header(&header::CONTENT_TYPE);
                let patch = Patch::read(content_type, self.body, force, custom)?;
                if matches!(patch, Patch::Apply { .. })
                    && self.query.text("fieldManager").is_empty()
                {
                    let why = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
                    return Err(Refusal::new(422, "Invalid", why));
                }
                let write = self.write(served, part);
                let (new, made) = self
                    .shared
                    .change(|world| world.patch(served.id, &key, &patch, &write))?;
                let status = if made {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };
                Ok(show(status, served, &new, form))
            }
            _ => {
                let options = self.delete_options()?;
                let now = self.shared.clock.now();
                let deleted = self
                    .shared
                    .change(|world| world.delete(served.id, &key, &options, now))?;
                Ok(match deleted {
                    Deleted::Held(held) => show(StatusCode::OK, served, &held, form),
                    Deleted::Gone(gone) => json(StatusCode::OK, &success(&served.kind, &gone)),
                })
            }
        }
    }

    fn delete_collection(
        &self,
        served: &Served,
        target: &Target,
        form: Form,
    ) -> Result<Answer, Refusal> {
        let listing = Listing::parse(self.query, &target.namespace)?;
        let options = self.delete_options()?;
        let now = self.shared.clock.now();
        let page = self.shared.change(|world| {
            let page = world.list(served.id, &listing)?;
            for item in &page.items {
                match world.delete(served.id, &item.key, &options, now) {
                    // The cascade of an earlier one may have taken it.
                    Err(refusal) if refusal.code != 404 => return Err(refusal),
                    _ => {}
                }
            }
            Ok(page)
        })?;
        Ok(json_bytes(
            StatusCode::OK,
            page.write(&served.kind, &served.version, form),
        ))
    }

    /// Options come in the body, or in the query when there is none.
    fn delete_options(&self) -> Result<DeleteOptions, Refusal> {
        let mut options: DeleteOptions = if self.body.is_empty() {
            DeleteOptions::default()
        } else {
            serde_json::from_value(read_object(self.body)?).map_err(|error| {
                Refusal::bad_request(format!("the body is not DeleteOptions: {error}"))
            })?
        };
        let policy = self.query.text("propagationPolicy");
        if !policy.is_empty() {
            let policy = serde_json::from_value(policy.into()).map_err(|error| {
                Refusal::bad_request(format!("propagationPolicy `{policy}`: {error}"))
            })?;
            options.propagation_policy = Some(policy);
        }
        Ok(options)
    }

    fn served(&self, target: &Target) -> Option<Served> {
        let world = self.shared.world();
        let id = world.find(&target.group, &target.plural)?;
        let kind = world.kind(id)?;
        let fits = kind.serves(&target.version) && (kind.namespaced || target.namespace.is_empty());
        let reachable = !kind.namespaced || target.name.is_empty() || !target.namespace.is_empty();
        (fits && reachable).then(|| Served {
            id,
            kind,
            version: target.version.clone(),
        })
    }

    fn write(&self, served: &Served, part: Part) -> Write {
        let agent = self
            .header(&header::USER_AGENT)
            .split('/')
            .next()
            .unwrap_or_default();
        let manager = match (self.query.text("fieldManager"), agent) {
            ("", "") => "unknown",
            ("", agent) => agent,
            (manager, _) => manager,
        };
        Write {
            manager: manager.into(),
            version: served.version.clone(),
            part,
            now: self.shared.clock.now(),
            dry_run: self.query.text("dryRun") == "All",
        }
    }

    fn header(&self, name: &header::HeaderName) -> &str {
        let headers: &HeaderMap = &self.parts.headers;
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

fn success(kind: &Kind, gone: &Stored) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": gone.key.name, "group": kind.group, "kind": kind.plural, "uid": gone.uid},
    })
}

fn show(status: StatusCode, served: &Served, object: &Stored, form: Form) -> Answer {
    let mut out = Vec::new();
    form.write(object, &form.types(&served.kind, &served.version), &mut out);
    json_bytes(status, out)
}

fn refused(refusal: &Refusal) -> Answer {
    let status = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = json(status, &refusal.status());
    if let Some(seconds) = refusal.retry_after {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

fn page_not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn text(status: StatusCode, body: &'static str) -> Answer {
    answer_with(status, "text/plain; charset=utf-8", body)
}

fn json(status: StatusCode, value: &Value) -> Answer {
    answer_with(status, "application/json", value.to_string())
}

fn json_bytes(status: StatusCode, body: Vec<u8>) -> Answer {
    answer_with(status, "application/json", body)
}

fn answer_with(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    response(status, kind, body)
}

fn response(status: StatusCode, kind: &'static str, body: SimBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    answer
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}
