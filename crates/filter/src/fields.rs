//! The catalogue: which names a filter may use on which resource, and what they are.

use hindsight_run::KINDS;

use super::{
    expr::{ExprKind, Field},
    types::{Group, Type},
    value::{Shared, TypeName, Value},
};
use crate::model::Resource;

/// Numbers of `RecordSummary.Status` by name.
pub(super) const STATUSES: [(&str, i64); 5] = [
    ("UNKNOWN", 0),
    ("SUCCESS", 1),
    ("FAILURE", 2),
    ("TIMEOUT", 3),
    ("CANCELLED", 4),
];

const STATUS_PREFIX: &str = "tekton.results.v1alpha2.RecordSummary.Status.";

/// Constants that stand for a `data.type`, by the kind's name.
const TYPE_CONSTANTS: [(&str, &str); 3] = [
    ("PIPELINE_RUN", "PipelineRun"),
    ("TASK_RUN", "TaskRun"),
    ("CUSTOM_RUN", "CustomRun"),
];

const RESULT_VARIABLES: [(&str, Field); 6] = [
    ("parent", Field::Parent),
    ("uid", Field::Uid),
    ("annotations", Field::Annotations),
    ("summary", Field::Summary),
    ("create_time", Field::CreateTime),
    ("update_time", Field::UpdateTime),
];

const RECORD_VARIABLES: [(&str, Field); 9] = [
    ("parent", Field::Parent),
    ("result_name", Field::ResultName),
    ("name", Field::Name),
    ("data_type", Field::DataType),
    ("uid", Field::Uid),
    ("create_time", Field::CreateTime),
    ("update_time", Field::UpdateTime),
    ("tier", Field::Tier),
    ("run", Field::Run),
];

const SUMMARY_FIELDS: [(&str, &str, Field); 6] = [
    ("record", "record", Field::SummaryRecord),
    ("type", "type", Field::SummaryType),
    ("start_time", "startTime", Field::SummaryStartTime),
    ("end_time", "endTime", Field::SummaryEndTime),
    ("status", "status", Field::SummaryStatus),
    ("annotations", "annotations", Field::SummaryAnnotations),
];

const RUN_FIELDS: [(&str, &str, Field); 10] = [
    ("outcome", "outcome", Field::RunOutcome),
    ("pipeline", "pipeline", Field::RunPipeline),
    ("cluster", "cluster", Field::RunCluster),
    ("task", "task", Field::RunTask),
    ("reason", "reason", Field::RunReason),
    ("phase", "phase", Field::RunPhase),
    ("start_time", "startTime", Field::RunStartTime),
    ("end_time", "endTime", Field::RunEndTime),
    ("labels", "labels", Field::RunLabels),
    ("signature", "signature", Field::RunSignature),
];

impl Group {
    /// What the variable is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Run => "run",
        }
    }

    /// The field that an error gives as an example.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Summary => "status",
            Self::Run => "outcome",
        }
    }

    fn fields(self) -> &'static [(&'static str, &'static str, Field)] {
        match self {
            Self::Summary => &SUMMARY_FIELDS,
            Self::Run => &RUN_FIELDS,
        }
    }

    /// A field of the group, spelled either way.
    pub(super) fn field(self, name: &str) -> Option<Field> {
        let mut fields = self.fields().iter();
        fields
            .find(|(snake, camel, _)| *snake == name || *camel == name)
            .map(|&(.., field)| field)
    }

    /// The names of its fields.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.fields().iter().map(|&(snake, ..)| snake)
    }
}

impl Field {
    pub(super) fn ty(self) -> Type {
        match self {
            Self::CreateTime
            | Self::UpdateTime
            | Self::SummaryStartTime
            | Self::SummaryEndTime
            | Self::RunStartTime
            | Self::RunEndTime => Type::Time,
            Self::Annotations | Self::SummaryAnnotations | Self::RunLabels => {
                Type::Map(Box::new(Type::Text))
            }
            Self::Summary => Type::Group(Group::Summary),
            Self::Run => Type::Group(Group::Run),
            Self::SummaryStatus | Self::RunOutcome => Type::Int,
            Self::Parent
            | Self::Uid
            | Self::SummaryRecord
            | Self::SummaryType
            | Self::ResultName
            | Self::Name
            | Self::DataType
            | Self::Tier
            | Self::RunCluster
            | Self::RunPipeline
            | Self::RunTask
            | Self::RunReason
            | Self::RunPhase
            | Self::RunSignature => Type::Text,
        }
    }
}

/// What a name means on rows of `resource`, or without any, if it means anything.
pub(super) fn name(resource: Option<Resource>, name: &str) -> Option<(Type, ExprKind)> {
    let Some(resource) = resource else {
        let ty = TypeName::of_text(name)?;
        return Some((Type::Name, ExprKind::Const(Value::Type(ty))));
    };
    let variables: &[(&str, Field)] = match resource {
        Resource::Results => &RESULT_VARIABLES,
        Resource::Records => &RECORD_VARIABLES,
    };
    if let Some(&(_, field)) = variables.iter().find(|(known, _)| *known == name) {
        return Some((field.ty(), ExprKind::Field(field)));
    }
    if resource == Resource::Records {
        if name == "data" {
            return Some((Type::Dyn, ExprKind::Data));
        }
        if let Some(alias) = aliases().find(|alias| *alias == name) {
            return Some((Type::Object, ExprKind::Alias(alias)));
        }
    }
    let constant = constant(name)?;
    let ty = match constant {
        Value::Int(_) => Type::Int,
        Value::Type(_) => Type::Name,
        _ => Type::Text,
    };
    Some((ty, ExprKind::Const(constant)))
}

/// Whether `name` is a variable of `resource`.
pub(super) fn is_variable(resource: Resource, name: &str) -> bool {
    variables(resource).contains(&name)
}

fn constant(name: &str) -> Option<Value<'static>> {
    if let Some((_, kind)) = TYPE_CONSTANTS.iter().find(|(known, _)| *known == name) {
        let kind = KINDS.iter().find(|k| k.kind == *kind)?;
        return Some(Value::Text(Shared::own(kind.data_type())));
    }
    if let Some(number) = status(name.strip_prefix(STATUS_PREFIX).unwrap_or(name)) {
        return Some(Value::Int(number));
    }
    TypeName::of_text(name).map(Value::Type)
}

/// The number of a status by its name.
pub(super) fn status(name: &str) -> Option<i64> {
    STATUSES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, number)| number)
}

/// The variables that stand for one kind of run, each once.
fn aliases() -> impl Iterator<Item = &'static str> {
    let mut seen = Vec::new();
    KINDS
        .iter()
        .filter_map(|kind| kind.alias)
        .filter(move |alias| {
            let new = !seen.contains(alias);
            seen.push(*alias);
            new
        })
}

/// Every `data.type` that an alias stands for.
pub(super) fn alias_types(alias: &str) -> Vec<String> {
    let kinds = KINDS.iter().filter(|kind| kind.alias == Some(alias));
    kinds
        .flat_map(|kind| {
            let others = kind.other_types.iter().map(|&other| other.to_owned());
            std::iter::once(kind.data_type()).chain(others)
        })
        .collect()
}

/// The variables of a resource, as an error lists them.
pub(super) fn variables(resource: Resource) -> Vec<&'static str> {
    match resource {
        Resource::Results => RESULT_VARIABLES.iter().map(|&(name, _)| name).collect(),
        Resource::Records => {
            let fields = RECORD_VARIABLES.iter().map(|&(name, _)| name);
            fields.chain(["data"]).chain(aliases()).collect()
        }
    }
}

/// Every name that may be meant by a misspelled one.
pub(super) fn names(resource: Resource) -> Vec<&'static str> {
    let mut names = variables(resource);
    names.extend(TYPE_CONSTANTS.iter().map(|&(name, _)| name));
    names.extend(STATUSES.iter().map(|&(name, _)| name));
    names
}

/// Members of Kubernetes objects whose own members are named by people, so that an underscore
/// in them is an underscore.
const FREE_KEYS: [&str; 9] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "data",
    "stringData",
    "limits",
    "requests",
    "value",
];

/// How the field `name` of the member `of` of a Kubernetes object is spelled there.
pub(super) fn camel_case(of: Option<&str>, name: &str) -> String {
    if of.is_some_and(|of| FREE_KEYS.contains(&of)) || name.starts_with('_') {
        return name.to_owned();
    }
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        if c == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) {
            camel.push(c.to_ascii_uppercase());
        } else {
            camel.push(c);
        }
    }
    camel
}

/// Longest name that others are compared with, in bytes: it takes the square of it.
const MAX_NEAREST: usize = 256;

/// The name of `known` that `name` was probably meant to be.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > MAX_NEAREST {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let far = |other: &str| strsim::levenshtein(&lower, &other.to_ascii_lowercase());
    // Each letter is a byte at least.
    let is_near = |other: &&str| other.len() <= name.len() + 3;
    let best = known
        .into_iter()
        .filter(is_near)
        .map(|other| (far(other), other))
        .min_by_key(|(d, _)| *d)?;
    (best.0 <= name.chars().count().div_ceil(3).min(3)).then_some(best.1)
}
