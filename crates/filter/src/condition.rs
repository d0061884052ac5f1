//! What engines are asked: a condition on columns.
//!
//! Only *true* matters to a reader of rows, so conditions are two-valued and hold no negation
//! but at their leaves: a row without the column passes neither a test nor its negation.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::indexed::Indexed;

/// A column that every engine keeps for each row, taken from the resource or from the JSON of
/// the record's payload. A field of the wrong JSON type leaves the column empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Column {
    /// The tenant. Results and records.
    Parent,
    /// The cluster that the parent names: `<id>` in `cluster/<id>/...`. Records.
    Cluster,
    /// The tier that the record is kept in, as [`Tier::as_str`](crate::model::Tier::as_str) writes it. Records.
    Tier,
    /// The last part of the result's name. Results and records.
    ResultId,
    /// Identifier given by the server. Results and records.
    Uid,
    /// When it was stored first. Results and records.
    CreateTime,
    /// When its last change was stored. Results and records.
    UpdateTime,
    /// How long the run took, in microseconds: of results the time from `summary.start_time` to
    /// `summary.end_time`, of records what the run says of itself, whatever its kind.
    Duration,

    /// `summary.record`, the full name of a record. Results.
    SummaryRecord,
    /// `summary.type`, the data type of that record. Results.
    SummaryType,
    /// `summary.start_time`, when the run began. Results.
    SummaryStartTime,
    /// `summary.end_time`, when the run ended. Results.
    SummaryEndTime,
    /// `summary.status`, a number; results without a summary have none.
    SummaryStatus,
    /// One of the result's annotations.
    Annotation(String),
    /// One of the summary's annotations.
    SummaryAnnotation(String),

    /// The number of a run's outcome, as of `summary.status`. Records.
    Outcome,
    /// When the run began, wherever its kind says so. Records.
    Began,
    /// When the run ended, likewise. Records.
    Ended,
    /// The pipeline that a record is of: the label `tekton.dev/pipeline`, or else
    /// `spec.pipelineRef.name`. Records.
    Pipeline,
    /// Why a record is as it is: `status.conditions[0].reason`, or else `status.phase`. Records.
    Reason,
    /// The key of the signature of a run that failed, timed out or was cancelled. Records.
    Signature,

    /// The last part of the record's name.
    RecordId,
    /// The record's full name.
    RecordName,
    /// `data.type`; records without data have none.
    DataType,
    /// A field of the record's payload.
    Object(ObjectField),
    /// `metadata.labels[key]` of the payload, if it is a string.
    Label(String),
    /// All keys and values of `metadata.labels`, as a text in which parts of them are sought; see
    /// [`crate::columns::ObjectColumns::searched_labels`]. Only [`Is::Contains`] and
    /// [`Is::Present`] are asked of it. Records.
    Labels,
    /// `status.completionTime - status.startTime` of the payload, in microseconds.
    ObjectDuration,
    /// A part of the payload that operators may have had indexed; a store that has not answers
    /// no test of it. Records.
    Indexed(Indexed),
}

/// A field of a record's JSON payload that is kept as a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectField {
    /// `kind`, such as `TaskRun`, as text.
    Kind,
    /// `metadata.name`, unique only within kind and namespace.
    Name,
    /// `metadata.namespace`; absent from objects outside of namespaces.
    Namespace,
    /// `metadata.uid`, which the cluster gives, as text.
    Uid,
    /// `spec.pipelineRef.name`; absent if the run names no pipeline.
    PipelineRef,
    /// `spec.taskRef.name`; absent if the run names no task.
    TaskRef,
    /// `status.conditions[0].reason`, the word for why the run is as it is.
    Reason,
    /// `status.conditions[0].status`: `True`, `False` or `Unknown`, as Kubernetes writes it.
    ConditionStatus,
    /// `status.phase`, such as `Succeeded` of an Argo workflow.
    Phase,
    /// `metadata.creationTimestamp`, as a time.
    CreationTime,
    /// `status.startTime`, as a time.
    StartTime,
    /// `status.completionTime`, as a time.
    CompletionTime,
}

impl ObjectField {
    /// Every field, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Kind,
        Self::Name,
        Self::Namespace,
        Self::Uid,
        Self::PipelineRef,
        Self::TaskRef,
        Self::Reason,
        Self::ConditionStatus,
        Self::Phase,
        Self::CreationTime,
        Self::StartTime,
        Self::CompletionTime,
    ];

    /// Where the field is in the payload, as an RFC 6901 pointer.
    pub fn pointer(self) -> &'static str {
        match self {
            Self::Kind => "/kind",
            Self::Name => "/metadata/name",
            Self::Namespace => "/metadata/namespace",
            Self::Uid => "/metadata/uid",
            Self::PipelineRef => "/spec/pipelineRef/name",
            Self::TaskRef => "/spec/taskRef/name",
            Self::Reason => "/status/conditions/0/reason",
            Self::ConditionStatus => "/status/conditions/0/status",
            Self::Phase => "/status/phase",
            Self::CreationTime => "/metadata/creationTimestamp",
            Self::StartTime => "/status/startTime",
            Self::CompletionTime => "/status/completionTime",
        }
    }

    /// Whether the column holds a time rather than text.
    pub fn is_time(self) -> bool {
        matches!(
            self,
            Self::CreationTime | Self::StartTime | Self::CompletionTime
        )
    }
}

/// A value to compare a column with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// For columns of text.
    Text(String),
    /// For `SummaryStatus` and durations.
    Int(i64),
    /// For columns of times.
    Time(Timestamp),
}

/// What is asked of a column. Text is compared by its bytes, in every engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Is {
    /// The column has a value.
    Present,
    /// The column's value equals this one.
    Equal(Value),
    /// Equal to one of them.
    OneOf(Vec<Value>),
    /// The column's value is strictly below this one.
    Less(Value),
    /// The column's value is below or equal to this one.
    AtMost(Value),
    /// The column's value is strictly above this one.
    Greater(Value),
    /// The column's value is above or equal to this one.
    AtLeast(Value),
    /// Text that starts so; `%` and `_` are ordinary characters.
    StartsWith(String),
    /// Text that ends so.
    EndsWith(String),
    /// Text that has this somewhere.
    Contains(String),
}

/// One question about one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The column that is asked about.
    pub column: Column,
    /// What its value must be, or must not be if `negated`.
    pub is: Is,
    /// Pass rows that have the column and fail the test (of [`Is::Present`]: that lack it).
    pub negated: bool,
}

/// Which rows an engine returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Every row in the scope of the list.
    All,
    /// No row; an engine need not look.
    Nothing,
    /// Rows that pass all.
    And(Vec<Condition>),
    /// Rows that pass one.
    Or(Vec<Condition>),
    /// Rows that pass a test.
    Test(Test),
}

/// How well an engine answers a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Not at all; it must be evaluated on each row.
    None,
    /// It returns every row that passes, and perhaps others.
    Superset,
    /// It returns the rows that pass.
    Exact,
}

impl Condition {
    /// Whether a row passes, by the values of its columns. Every engine must agree with this.
    pub fn passes(&self, column: &dyn Fn(&Column) -> Option<Value>) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::And(parts) => parts.iter().all(|part| part.passes(column)),
            Self::Or(parts) => parts.iter().any(|part| part.passes(column)),
            Self::Test(test) => test.passes(column(&test.column).as_ref()),
        }
    }
}

impl Test {
    /// Whether a row passes whose column has this value.
    pub fn passes(&self, value: Option<&Value>) -> bool {
        match (value, &self.is) {
            (value, Is::Present) => value.is_some() != self.negated,
            (None, _) => false,
            (Some(value), is) => is.holds(value) != self.negated,
        }
    }
}

impl Is {
    fn holds(&self, value: &Value) -> bool {
        let text = |holds: &dyn Fn(&str) -> bool| matches!(value, Value::Text(text) if holds(text));
        match self {
            Self::Present => true,
            Self::Equal(other) => value == other,
            Self::OneOf(others) => others.contains(value),
            Self::Less(other) => order(value, other).is_some_and(Ordering::is_lt),
            Self::AtMost(other) => order(value, other).is_some_and(Ordering::is_le),
            Self::Greater(other) => order(value, other).is_some_and(Ordering::is_gt),
            Self::AtLeast(other) => order(value, other).is_some_and(Ordering::is_ge),
            Self::StartsWith(part) => text(&|text| text.starts_with(part.as_str())),
            Self::EndsWith(part) => text(&|text| text.ends_with(part.as_str())),
            Self::Contains(part) => text(&|text| text.contains(part.as_str())),
        }
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        _ => None,
    }
}
