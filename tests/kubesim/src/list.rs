//! Lists: pages of one consistent snapshot, and the forms in which objects are shown.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    kinds::Kind,
    lifecycle::types,
    objects::{Key, KindId, Stored, Types},
    refusal::Refusal,
    route::Query,
    select::Selector,
    world::World,
};

/// How a client wants objects shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    Metadata,
}

impl Form {
    /// Reads an Accept header: the first form the server knows counts.
    ///
    /// # Errors
    /// 406 when the client takes nothing that is JSON.
    pub(crate) fn of(accept: &str) -> Result<Self, Refusal> {
        if accept.is_empty() {
            return Ok(Self::Full);
        }
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Full),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Ok(Self::Metadata);
                }
                Some(_) => {}
            }
        }
        let message = "only the following media types are accepted: application/json";
        Err(Refusal::new(406, "NotAcceptable", message))
    }

    /// Appends an object in this form.
    pub(crate) fn write(self, object: &Stored, types: &Types, out: &mut Vec<u8>) {
        match self {
            Self::Full => object.write(types, out),
            Self::Metadata => object.write_metadata(out),
        }
    }

    /// The types of an object in this form.
    pub(crate) fn types(self, kind: &Kind, version: &str) -> Types {
        match self {
            Self::Full => types(kind, version),
            Self::Metadata => Types::new("meta.k8s.io/v1".into(), "PartialObjectMetadata".into()),
        }
    }
}

/// A request to list.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    limit: usize,
    /// What is taken for the newest version, if not that of the state.
    pub(crate) newest: Option<u64>,
    /// The state must have come this far.
    at_least: u64,
    from: From,
}

/// Which state, and from where on.
#[derive(Debug, Clone)]
enum From {
    Newest { after: Option<Key> },
    Exactly { version: u64, after: Option<Key> },
}

/// What a continue token says.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    /// The snapshot; `None` goes on with the newest state.
    #[serde(rename = "rv")]
    version: Option<u64>,
    namespace: String,
    name: String,
}

impl Continue {
    fn encode(&self) -> String {
        let text = serde_json::to_vec(self).expect("a continue token can always be written");
        BASE64_URL_SAFE_NO_PAD.encode(text)
    }

    fn decode(token: &str) -> Option<Self> {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()
    }
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    version: u64,
    next: Option<String>,
    remaining: Option<usize>,
}

impl Listing {
    /// Reads the query of a list request.
    ///
    /// # Errors
    /// 400 for selectors, tokens and numbers that do not parse or do not go together.
    pub(crate) fn parse(query: &Query, kind: &Kind, namespace: &str) -> Result<Self, Refusal> {
        let selector = Selector::of(query, kind)?;
        let version = query.number("resourceVersion")?;
        let mut limit = query.number("limit")?.unwrap_or(0);
        let rule = query.text("resourceVersionMatch");
        let from = match (query.text("continue"), version, rule) {
            ("", None | Some(0), "" | "NotOlderThan") => {
                if version == Some(0) {
                    // The cache that answers "any version" ignores limits.
                    limit = 0;
                }
                From::Newest { after: None }
            }
            ("", Some(version), "Exact") => From::Exactly {
                version,
                after: None,
            },
            // With a limit, a version without a rule means exactly that version.
            ("", Some(version), "") if limit > 0 => From::Exactly {
                version,
                after: None,
            },
            ("", Some(_), "" | "NotOlderThan") => From::Newest { after: None },
            ("", None, _) => {
                let why = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
                return Err(Refusal::new(422, "Invalid", why));
            }
            ("", Some(_), other) => {
                let why = format!(
                    "resourceVersionMatch: Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\""
                );
                return Err(Refusal::new(422, "Invalid", why));
            }
            (_, Some(1..), _) => {
                let why = "specifying resource version is not allowed when using continue";
                return Err(Refusal::bad_request(why));
            }
            (token, _, _) => {
                let Some(token) = Continue::decode(token) else {
                    return Err(Refusal::bad_request("continue key is not valid"));
                };
                let after = Some(Key::new(&token.namespace, &token.name));
                match token.version {
                    Some(version) => From::Exactly { version, after },
                    None => From::Newest { after },
                }
            }
        };
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Self {
            namespace,
            selector,
            limit,
            newest: None,
            at_least: version.unwrap_or(0),
            from,
        })
    }
}

impl World {
    /// Reads one page.
    ///
    /// # Errors
    /// 410 when the snapshot is forgotten, 504 when the wanted version is still to come.
    pub(crate) fn list(&self, id: KindId, listing: &Listing) -> Result<Page, Refusal> {
        self.served(id)?;
        let (version, after) = match &listing.from {
            From::Newest { after } => {
                let newest = listing.newest.map(|version| self.remembered(version));
                (newest.unwrap_or(self.version), after.as_ref())
            }
            From::Exactly { version, after } => (*version, after.as_ref()),
        };
        self.reached(version.max(listing.at_least))?;
        let Some(snapshot) = self.at(id, version) else {
            return Err(forgotten(version, after));
        };
        let wanted = |stored: &&Arc<Stored>| listing.selector.matches(stored);
        let mut matching = snapshot
            .walk(listing.namespace.as_deref(), after)
            .filter(wanted);
        let take = if listing.limit == 0 {
            usize::MAX
        } else {
            listing.limit
        };
        let items: Vec<_> = matching.by_ref().take(take).cloned().collect();
        let left = matching.count();
        let token = |last: &Arc<Stored>| Continue {
            version: Some(version),
            namespace: last.key.namespace.clone(),
            name: last.key.name.clone(),
        };
        let next = items
            .last()
            .filter(|_| left > 0)
            .map(|last| token(last).encode());
        let remaining = (left > 0 && listing.selector.is_everything()).then_some(left);
        Ok(Page {
            items,
            version,
            next,
            remaining,
        })
    }

    /// Refuses a version that is still to come, as a server whose cache lags behind.
    fn reached(&self, version: u64) -> Result<(), Refusal> {
        if version > self.version {
            return Err(Refusal::too_large_version(version, self.version));
        }
        Ok(())
    }
}

fn forgotten(version: u64, after: Option<&Key>) -> Refusal {
    let Some(after) = after else {
        return Refusal::gone(format!(
            "The resourceVersion for the provided list is too old: {version}"
        ));
    };
    let token = Continue {
        version: None,
        namespace: after.namespace.clone(),
        name: after.name.clone(),
    };
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list.";
    Refusal {
        resume: Some(token.encode()),
        ..Refusal::gone(message)
    }
}

impl Page {
    /// The page as the body of an answer.
    pub(crate) fn write(&self, kind: &Kind, version: &str, form: Form) -> Vec<u8> {
        let types = form.types(kind, version);
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        let head = json!({
            "kind": format!("{}List", types.kind),
            "apiVersion": types.api_version,
            "metadata": metadata,
        });
        let mut out = head.to_string().into_bytes();
        out.pop();
        out.extend_from_slice(b",\"items\":[");
        for (position, item) in self.items.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            match form {
                Form::Full if !kind.custom => item.write_untyped(&mut out),
                _ => form.write(item, &types, &mut out),
            }
        }
        out.extend_from_slice(b"]}");
        out
    }
}
