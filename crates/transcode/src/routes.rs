//! The routes, read from the `google.api.http` options of the descriptors, so that they cannot
//! drift from the services.

use std::sync::Arc;

use axum::http::{Method, uri::PathAndQuery};
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor,
};

use super::{
    Error,
    dialect::Dialect,
    shape::Shapes,
    template::{Capture, Template},
};

/// One way to reach one method.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) verb: Method,
    pub(super) template: Template,
    pub(super) dialect: Dialect,
    pub(super) body: Body,
    /// The field mask that a request without one has by what its body holds.
    pub(super) mask: Option<FieldDescriptor>,
    pub(super) method: MethodDescriptor,
    /// Where gRPC reaches the method.
    pub(super) target: PathAndQuery,
    /// What replies are made of, those of this method among them.
    pub(super) shapes: Arc<Shapes>,
    pub(super) reply: usize,
}

/// What the body of a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// Nothing, whatever it holds.
    Ignored,
    /// The whole request message.
    Message,
    /// One field of it.
    Field(FieldDescriptor),
}

/// Why a request has no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// Nothing has this path.
    Path,
    /// Something has this path, but not for this verb.
    Verb,
}

/// All routes, the most exact first.
#[derive(Debug, Clone)]
pub(super) struct Routes(Vec<Route>);

impl Routes {
    pub(super) fn read(pool: &DescriptorPool) -> Result<Self, Error> {
        let option = pool
            .get_extension_by_name("google.api.http")
            .ok_or(Error::NoOption)?;
        let services = pool.services();
        let methods: Vec<_> = services
            .flat_map(|s| s.methods().collect::<Vec<_>>())
            .collect();
        let mut shapes = Shapes::default();
        let replies = methods.iter().map(|method| shapes.add(&method.output()));
        let replies: Vec<_> = replies.collect();
        let shapes = Arc::new(shapes);
        let mut routes = Vec::new();
        for (method, reply) in methods.into_iter().zip(replies) {
            for rule in rules(&method, &option) {
                let reply = (Arc::clone(&shapes), reply);
                routes.push(route(&method, &rule, reply).map_err(|why| Error::Rule {
                    method: method.full_name().to_owned(),
                    why,
                })?);
            }
        }
        routes.sort_by_key(|route| std::cmp::Reverse(route.template.literals()));
        Ok(Self(routes))
    }

    /// The route of a request for these decoded segments, and what its path says.
    pub(super) fn find(
        &self,
        verb: &Method,
        path: &[String],
    ) -> Result<(&Route, Vec<Capture>), NoRoute> {
        let mut lost = NoRoute::Path;
        for route in &self.0 {
            if let Some(captures) = route.template.matches(path, route.dialect.first) {
                if route.verb == verb {
                    return Ok((route, captures));
                }
                lost = NoRoute::Verb;
            }
        }
        Err(lost)
    }

    pub(super) fn all(&self) -> &[Route] {
        &self.0
    }
}

/// The rule of a method, and those beside it.
fn rules(method: &MethodDescriptor, option: &ExtensionDescriptor) -> Vec<DynamicMessage> {
    let options = method.options();
    if !options.has_extension(option) {
        return Vec::new();
    }
    let value = options.get_extension(option);
    let Some(rule) = value.as_message() else {
        return Vec::new();
    };
    let more = rule.get_field_by_name("additional_bindings");
    let more = more.as_ref().and_then(|more| more.as_list()).unwrap_or(&[]);
    let more = more.iter().filter_map(|rule| rule.as_message());
    std::iter::once(rule).chain(more).cloned().collect()
}

fn route(
    method: &MethodDescriptor,
    rule: &DynamicMessage,
    (shapes, reply): (Arc<Shapes>, usize),
) -> Result<Route, &'static str> {
    if method.is_client_streaming() {
        return Err("streams of requests have no JSON form");
    }
    let text = |name: &str| -> Option<String> {
        let value = rule
            .has_field_by_name(name)
            .then(|| rule.get_field_by_name(name))??;
        value.as_str().map(str::to_owned)
    };
    let (verb, path) = [
        ("get", Method::GET),
        ("put", Method::PUT),
        ("post", Method::POST),
        ("delete", Method::DELETE),
        ("patch", Method::PATCH),
    ]
    .into_iter()
    .find_map(|(name, verb)| Some((verb, text(name)?)))
    .ok_or("its http option names no verb")?;
    let template = Template::parse(&path)?;
    let input = method.input();
    for field in template.fields() {
        let last = resolve(&input, field).and_then(|path| path.last().map(FieldDescriptor::kind));
        if last != Some(Kind::String) {
            return Err("a variable of its path is not a text field of the request");
        }
    }
    let body = match text("body").as_deref() {
        None | Some("") => Body::Ignored,
        Some("*") => Body::Message,
        Some(name) => match input.get_field_by_name(name) {
            Some(field) if matches!(field.kind(), Kind::Message(_)) => Body::Field(field),
            _ => return Err("its body is not a message field of the request"),
        },
    };
    if text("response_body").is_some_and(|name| !name.is_empty()) {
        return Err("response_body is not supported");
    }
    let is_mask = |field: &FieldDescriptor| matches!(field.kind(), Kind::Message(m) if m.full_name() == "google.protobuf.FieldMask");
    let patches = verb == Method::PATCH && matches!(body, Body::Field(_));
    let target = format!("/{}/{}", method.parent_service().full_name(), method.name());
    Ok(Route {
        mask: patches.then(|| input.fields().find(is_mask)).flatten(),
        dialect: Dialect::of(&path).ok_or("no dialect is known for its path")?,
        verb,
        template,
        body,
        method: method.clone(),
        target: target.parse().map_err(|_odd| "its name is not a path")?,
        shapes,
        reply,
    })
}

/// The fields that a dotted path leads through, in either spelling.
pub(super) fn resolve(message: &MessageDescriptor, path: &str) -> Option<Vec<FieldDescriptor>> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let field = message
        .get_field_by_name(name)
        .or_else(|| message.get_field_by_json_name(name))?;
    let mut fields = vec![field.clone()];
    if let Some(rest) = rest {
        let Kind::Message(below) = field.kind() else {
            return None;
        };
        if field.is_list() || field.is_map() {
            return None;
        }
        fields.extend(resolve(&below, rest)?);
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hindsight_proto::FILE_DESCRIPTOR_SET;

    use super::*;

    fn routes() -> (DescriptorPool, Routes) {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let routes = Routes::read(&pool).unwrap();
        (pool, routes)
    }

    fn find(verb: Method, path: &str) -> Result<String, NoRoute> {
        let path: Vec<_> = path.split('/').skip(1).map(str::to_owned).collect();
        let (_, routes) = routes();
        let found = routes.find(&verb, &path);
        found.map(|(route, _)| route.method.name().to_owned())
    }

    /// Methods that JSON over HTTP cannot carry: streams of requests.
    const GRPC_ONLY: [&str; 3] = [
        "hindsight.v1.Ingest.Upsert",
        "hindsight.v1.Logs.AppendLog",
        "tekton.results.v1alpha2.Logs.UpdateLog",
    ];

    #[test]
    fn every_method_has_a_route_and_every_route_a_method() {
        let (pool, routes) = routes();
        let mut methods: BTreeSet<_> = pool
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            .map(|method| method.full_name().to_owned())
            .collect();
        for method in GRPC_ONLY {
            assert!(methods.remove(method), "{method}");
        }
        let routed: BTreeSet<_> = routes
            .all()
            .iter()
            .map(|route| route.method.full_name().to_owned())
            .collect();
        assert_eq!(methods, routed);
        assert_eq!(methods.len(), 33);
        assert_eq!(routes.all().len(), 33);
    }

    #[test]
    fn the_most_exact_route_wins() {
        let at = |end: &str| format!("/apis/results.tekton.dev/v1alpha2/parents{end}");
        let cases = [
            ("/ci/results", "ListResults"),
            ("/-/results", "ListResults"),
            ("/c/a/results", "ListResults"),
            ("/ci/results/a", "GetResult"),
            ("/ci/results/records", "GetResult"),
            ("/ci/results/a/records", "ListRecords"),
            ("/ci/results/a/records/b", "GetRecord"),
            ("/ci/results/a/records/summary", "GetRecordListSummary"),
            ("/c/a/results/a/records/summary", "GetRecordListSummary"),
        ];
        for (path, method) in cases {
            assert_eq!(
                find(Method::GET, &at(path)).as_deref(),
                Ok(method),
                "{path}"
            );
        }
        let summary = at("/ci/results/a/records/summary");
        assert_eq!(
            find(Method::DELETE, &summary).as_deref(),
            Ok("DeleteRecord")
        );
        assert_eq!(find(Method::PUT, &summary), Err(NoRoute::Verb));
        assert_eq!(find(Method::GET, &at("/ci")), Err(NoRoute::Path));
        assert_eq!(find(Method::GET, "/"), Err(NoRoute::Path));
    }
}
