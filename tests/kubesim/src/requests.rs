//! What a request does: from its route, parameters and body to its answer.

use std::sync::Arc;

use futures::TryStreamExt;
use http::{HeaderMap, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use crate::{
    answers::{
        Answer, answer_with, json, json_bytes, page_not_found, refused, response, success, text,
    },
    calls::Call,
    deletion::{DeleteOptions, Deleted},
    discovery,
    kinds::Kind,
    lifecycle::{Write, types},
    list::{Form, Listing},
    log_reader,
    objects::{Key, KindId, Stored},
    patch::{Patch, read_body},
    rbac::User,
    refusal::Refusal,
    route::{Query, Route, Target, not_allowed},
    rules::{Part, check_manager},
    shared::Shared,
    watch::{Watch, Watching},
};

/// One request with everything it brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) parts: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) body: &'a [u8],
    pub(crate) user: &'a User,
    /// At which version it reads, if not the newest.
    pub(crate) stale: Option<u64>,
}

/// A kind that a request is about, under one of its versions.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) id: KindId,
    pub(crate) kind: Arc<Kind>,
    pub(crate) version: String,
}

impl Asked<'_> {
    pub(crate) fn run(&self, route: &Route, call: &Call) -> Answer {
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
            Route::Nowhere => None,
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
            "log" if kind.is_pods() && verb == "get" => return self.log(&served, target),
            "log" if kind.is_pods() => return Err(not_allowed()),
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
        let mut listing = Listing::parse(self.query, &served.kind, &target.namespace)?;
        listing.newest = self.stale;
        let page = self.shared.world().list(served.id, &listing)?;
        Ok(json_bytes(
            StatusCode::OK,
            page.write(&served.kind, &served.version, form),
        ))
    }

    fn watch(&self, served: Served, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let offered = self.shared.settings.streaming_lists;
        let watching = Watching::parse(self.query, &served.kind, &target.namespace, form, offered)?;
        let shared = Arc::clone(self.shared);
        let watch = Watch::open(shared, served.id, served.kind, &served.version, watching);
        let lines = watch.stream().map_ok(Frame::data);
        let body = StreamBody::new(lines).boxed_unsync();
        Ok(response(StatusCode::OK, "application/json", body))
    }

    /// The log of a container, of the pod as it is now.
    fn log(&self, served: &Served, target: &Target) -> Result<Answer, Refusal> {
        let key = Key::new(&target.namespace, &target.name);
        let pod = {
            let world = self.shared.world();
            let found = world.existing(served.id, &key)?;
            found.value(&types(&served.kind, &served.version))
        };
        let Some(lines) = log_reader::open(self.shared, &pod, self.query)? else {
            return Ok(text(StatusCode::NO_CONTENT, ""));
        };
        let body = StreamBody::new(lines.map_ok(Frame::data)).boxed_unsync();
        Ok(response(StatusCode::OK, "text/plain", body))
    }

    fn create(&self, served: &Served, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let object = read_body(self.header(&header::CONTENT_TYPE), self.body)?;
        if !served.kind.stored() {
            let plural = &served.kind.plural;
            let answered = self.shared.review(plural, self.user, object)?;
            return Ok(json(StatusCode::CREATED, &answered));
        }
        let write = self.write("CreateOptions", served, Part::Main)?;
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
                let write = self.write("UpdateOptions", served, part)?;
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
                let write = self.write("PatchOptions", served, part)?;
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
                let options = DeleteOptions::read(self.body, self.query)?;
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
        let listing = Listing::parse(self.query, &served.kind, &target.namespace)?;
        let options = DeleteOptions::read(self.body, self.query)?;
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

    fn write(&self, options: &str, served: &Served, part: Part) -> Result<Write, Refusal> {
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
        check_manager(options, manager)?;
        Ok(Write {
            manager: manager.into(),
            version: served.version.clone(),
            part,
            now: self.shared.clock.now(),
            dry_run: self.query.text("dryRun") == "All",
        })
    }

    fn header(&self, name: &header::HeaderName) -> &str {
        let headers: &HeaderMap = &self.parts.headers;
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

fn show(status: StatusCode, served: &Served, object: &Stored, form: Form) -> Answer {
    let mut out = Vec::new();
    form.write(object, &form.types(&served.kind, &served.version), &mut out);
    json_bytes(status, out)
}
