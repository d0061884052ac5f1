//! From a path and a method to what is asked. It knows how Kubernetes lays out its URLs and nothing
//! of what is installed.

use jiff::Timestamp;

use http::Method;

use crate::{calls::Call, rbac::Attributes, refusal::Refusal};

#[cfg(test)]
mod tests;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A probe: `/healthz`, `/livez` or `/readyz`.
    Health,
    Version,
    CoreVersions,
    Groups,
    /// The versions of a group, at `/apis/{group}`.
    Group(String),
    /// The resources of a version, at `/api/v1` or `/apis/{group}/{version}`.
    Resources {
        group: String,
        version: String,
    },
    Objects(Target),
    /// What no API server has.
    Nowhere,
}

/// The objects a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty across namespaces and for kinds outside of them.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).into()),
            ["api", version] => Self::Resources {
                group: String::new(),
                version: (*version).into(),
            },
            ["apis", group, version] => Self::Resources {
                group: (*group).into(),
                version: (*version).into(),
            },
            ["api", version, rest @ ..] => target("", version, rest),
            ["apis", group, version, rest @ ..] => target(group, version, rest),
            _ => Self::Nowhere,
        }
    }

    /// The call as it is recorded, not answered yet.
    pub(crate) fn call(&self, path: &str, verb: &'static str, at: Timestamp) -> Call {
        let target = match self {
            Self::Objects(target) => target.clone(),
            _ => Target {
                plural: path.into(),
                ..Target::default()
            },
        };
        Call {
            verb,
            group: target.group,
            resource: target.plural,
            subresource: target.subresource,
            namespace: target.namespace,
            name: target.name,
            user: String::new(),
            status: None,
            at,
        }
    }

    /// What is asked for, as roles speak of it.
    pub(crate) fn attributes(&self, call: &Call, query: &Query) -> Attributes {
        let mut asked = Attributes {
            verb: call.verb.into(),
            ..Attributes::default()
        };
        if !matches!(self, Self::Objects(_)) {
            asked.path.clone_from(&call.resource);
            return asked;
        }
        asked.group.clone_from(&call.group);
        asked.resource.clone_from(&call.resource);
        asked.subresource.clone_from(&call.subresource);
        asked.namespace.clone_from(&call.namespace);
        asked.name.clone_from(&call.name);
        if asked.name.is_empty() {
            // A list of one name counts as a request for that name.
            let fields = query.text("fieldSelector").split(',');
            let mut name = fields.filter_map(|field| field.strip_prefix("metadata.name="));
            asked.name = name
                .next_back()
                .unwrap_or_default()
                .trim_start_matches('=')
                .into();
        }
        if asked.group.is_empty() && asked.resource == "namespaces" {
            // A namespace is inside of itself, so that its own roles may allow to read it.
            asked.namespace.clone_from(&asked.name);
        }
        asked
    }
}

fn target(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // `/namespaces/x/status` is a part of the namespace, not a kind inside of it.
        ["namespaces", name, "status"] => ("", ["namespaces", *name, "status"].to_vec()),
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (*namespace, inner.to_vec()),
        _ => ("", rest.to_vec()),
    };
    let (plural, name, subresource) = match rest.as_slice() {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::Nowhere,
    };
    Route::Objects(Target {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: subresource.into(),
    })
}

/// The verb of a request, as Kubernetes names it.
///
/// # Errors
/// 405 for a method that means nothing on such a path.
pub(crate) fn verb(route: &Route, method: &Method, watch: bool) -> Result<&'static str, Refusal> {
    let target = match route {
        Route::Objects(target) => target,
        Route::Nowhere => return Ok("get"),
        _ if matches!(*method, Method::GET | Method::HEAD) => return Ok("get"),
        _ => return Err(not_allowed()),
    };
    match (method.as_str(), target.name.is_empty()) {
        ("GET" | "HEAD", true) if watch => Ok("watch"),
        ("GET" | "HEAD", true) => Ok("list"),
        ("GET" | "HEAD", false) => Ok("get"),
        ("POST", true) => Ok("create"),
        ("PUT", false) => Ok("update"),
        ("PATCH", false) => Ok("patch"),
        ("DELETE", true) => Ok("deletecollection"),
        ("DELETE", false) => Ok("delete"),
        _ => Err(not_allowed()),
    }
}

pub(crate) fn not_allowed() -> Refusal {
    let message = "the server does not allow this method on the requested resource";
    Refusal::new(405, "MethodNotAllowed", message)
}

/// The query parameters the server understands; others are ignored, as the real one does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|(key, value)| key == name && !matches!(value.as_str(), "false" | "0"))
    }

    /// A number, when the parameter is there and not empty.
    ///
    /// # Errors
    /// 400 when it is not a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_not_a_number| {
                Refusal::bad_request(format!("invalid {name} `{text}`: not a number"))
            }),
        }
    }
}

/// Percent-decoding, with `+` for a space.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let pair = tail
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match (
            *first,
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()),
        ) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
