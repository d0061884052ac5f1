//! Label and field selectors. The grammar of labels is that of the programs under test, so that its
//! cases in the contract hold it against a real server.

use hindsight_run::selector::{ParseSelectorError, Selector as Labels};

use crate::{kinds::Kind, objects::Stored, refusal::Refusal, route::Query};

#[cfg(test)]
mod tests;

/// What a list or a watch asks for; every requirement must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Labels,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// A text in the object, this way down.
    At(String),
}

/// The fields of an event beside those of what it is about.
const OF_EVENTS: &[&str] = &[
    "reason",
    "source",
    "type",
    "reportingComponent",
    "reportingController",
];

/// The fields of what an event is about.
const OF_REFERENCES: &[&str] = &[
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
];

impl Field {
    /// # Errors
    /// 400 for a field that objects of the kind are not found by.
    fn of(kind: &Kind, name: &str) -> Result<Self, Refusal> {
        let about = match kind.group.as_str() {
            "" => "involvedObject.",
            _ => "regarding.",
        };
        let known = match kind.plural.as_str() {
            "events" if !kind.custom => {
                let inner = name.strip_prefix(about);
                OF_EVENTS.contains(&name)
                    || inner.is_some_and(|inner| OF_REFERENCES.contains(&inner))
            }
            "pods" => matches!(name, "spec.nodeName" | "status.phase"),
            "namespaces" => name == "status.phase",
            _ => false,
        };
        match name {
            "metadata.name" => Ok(Self::Name),
            "metadata.namespace" => Ok(Self::Namespace),
            _ if known => Ok(Self::At(name.into())),
            _ if kind.custom
                || matches!(kind.plural.as_str(), "events" | "pods" | "namespaces") =>
            {
                let why = format!("field label not supported: {name}");
                Err(Refusal::bad_request(why))
            }
            _ => Err(Refusal::bad_request(format!(
                "\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ))),
        }
    }
}

impl Selector {
    /// Reads the two parameters of a query about objects of `kind`.
    ///
    /// # Errors
    /// A bad request when one of them does not parse, or names a field that is not supported.
    pub(crate) fn of(query: &Query, kind: &Kind) -> Result<Self, Refusal> {
        let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
        Self::parse(labels, fields, kind)
    }

    fn parse(labels: &str, fields: &str, kind: &Kind) -> Result<Self, Refusal> {
        let bad = |bad: ParseSelectorError| {
            Refusal::bad_request(format!("unable to parse requirement in `{labels}`: {bad}"))
        };
        Ok(Self {
            labels: labels.parse().map_err(bad)?,
            fields: field_requirements(fields, kind)?,
        })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.0.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.labels.matches(|key| object.label(key))
            && self
                .fields
                .iter()
                .all(|requirement| requirement.holds(object))
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Stored) -> bool {
        let found;
        let actual = match &self.field {
            Field::Name => &object.key.name,
            Field::Namespace => &object.key.namespace,
            Field::At(path) => {
                found = object.text(path);
                &found
            }
        };
        (*actual == self.value) == self.equal
    }
}

fn field_requirements(text: &str, kind: &Kind) -> Result<Vec<FieldRequirement>, Refusal> {
    let mut all = Vec::new();
    for term in text
        .split(',')
        .map(str::trim)
        .filter(|term| !term.is_empty())
    {
        let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = term.split_once("==") {
            (field, value, true)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, value, true)
        } else {
            let why = format!("invalid field selector: '{term}'; can't understand '{term}'");
            return Err(Refusal::bad_request(why));
        };
        let field = Field::of(kind, field)?;
        all.push(FieldRequirement {
            field,
            value: value.into(),
            equal,
        });
    }
    Ok(all)
}
