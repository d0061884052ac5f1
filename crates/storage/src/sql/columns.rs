//! Which column of which table answers a [`Column`] of a condition.

use hindsight_filter::condition::{Column, ObjectField};
use hindsight_filter::model::Resource;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Text,
    Int,
    /// A time in microseconds.
    Time,
}

/// Where the value of a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// The resource has no such column: it is empty in every row.
    Nowhere,
    /// In a column of its own.
    Column(&'static str),
    /// In a column of words, which holds the numbers of those that are known.
    Word(&'static str),
    /// In a column of identifiers, which holds UUIDs as bytes.
    Id(&'static str),
    /// In a column of identifiers, or where that says so, the id of the record.
    ObjectUid,
    /// In a column of text, or where that says so, the parent.
    ObjectNamespace,
    /// In a column of times, or where that is null, in one of the object.
    RunBegan,
    RunEnded,
    /// The uid of a result or a record.
    Uid(Resource),
    /// The id of the result that a record belongs to.
    ResultOfRecord,
    /// Under this key of a column of JSON.
    Map(&'static str, &'a str),
    /// All of the column of labels, where they are not odd.
    Labels,
    /// It is a part of the parent.
    Cluster,
    /// It is the same for every row of the database.
    Tier,
    /// It is the record's name, put together.
    RecordName,
    /// It is the time between two columns.
    SummaryDuration,
    ObjectDuration,
    RunDuration,
}

pub(crate) fn holds(column: &Column) -> Holds {
    match column {
        Column::CreateTime
        | Column::UpdateTime
        | Column::SummaryStartTime
        | Column::SummaryEndTime => Holds::Time,
        Column::SummaryStatus | Column::Duration | Column::ObjectDuration | Column::Outcome => {
            Holds::Int
        }
        Column::Began | Column::Ended => Holds::Time,
        Column::Object(field) if field.is_time() => Holds::Time,
        _ => Holds::Text,
    }
}

/// Why a record is as it is. Both columns keep words alike.
pub(super) const REASON: &str = "coalesce(object_reason, object_phase)";

/// Where `column` of `resource` is.
pub(crate) fn place(resource: Resource, column: &Column) -> Place<'_> {
    let own = match (resource, column) {
        (_, Column::Parent) => "parent",
        (Resource::Records, Column::Cluster) => return Place::Cluster,
        (Resource::Records, Column::Tier) => return Place::Tier,
        (Resource::Results, Column::ResultId) | (Resource::Records, Column::RecordId) => {
            return Place::Id("id");
        }
        (_, Column::Uid) => return Place::Uid(resource),
        (_, Column::CreateTime) => "create_us",
        (_, Column::UpdateTime) => "update_us",
        (Resource::Results, Column::Duration) => return Place::SummaryDuration,
        (Resource::Records, Column::Duration) => return Place::RunDuration,
        (Resource::Records, Column::Outcome) => "run_outcome",
        (Resource::Records, Column::Began) => return Place::RunBegan,
        (Resource::Records, Column::Ended) => return Place::RunEnded,
        (Resource::Records, Column::Pipeline) => "run_pipeline",
        (Resource::Records, Column::Reason) => return Place::Word(REASON),
        (Resource::Records, Column::Signature) => "run_signature",
        (Resource::Results, Column::SummaryRecord) => "summary_record",
        (Resource::Results, Column::SummaryType) => return Place::Word("summary_type"),
        (Resource::Results, Column::SummaryStartTime) => "summary_start_us",
        (Resource::Results, Column::SummaryEndTime) => "summary_end_us",
        (Resource::Results, Column::SummaryStatus) => "summary_status",
        (Resource::Results, Column::Annotation(key)) => return Place::Map("annotations", key),
        (Resource::Results, Column::SummaryAnnotation(key)) => {
            return Place::Map("summary_annotations", key);
        }
        (Resource::Records, Column::ResultId) => return Place::ResultOfRecord,
        (Resource::Records, Column::RecordName) => return Place::RecordName,
        (Resource::Records, Column::DataType) => return Place::Word("data_type"),
        (Resource::Records, Column::Object(field)) => return object(*field),
        (Resource::Records, Column::ObjectDuration) => return Place::ObjectDuration,
        (Resource::Records, Column::Labels) => return Place::Labels,
        (Resource::Records, Column::Label(key)) => return Place::Map("labels", key),
        _ => return Place::Nowhere,
    };
    Place::Column(own)
}

/// Where a field of the payload is.
fn object(field: ObjectField) -> Place<'static> {
    Place::Column(match field {
        ObjectField::Kind => return Place::Word("object_kind"),
        ObjectField::Uid => return Place::ObjectUid,
        ObjectField::Name => "object_name",
        ObjectField::Namespace => return Place::ObjectNamespace,
        ObjectField::PipelineRef => "object_pipeline_ref",
        ObjectField::TaskRef => "object_task_ref",
        ObjectField::Reason => return Place::Word("object_reason"),
        ObjectField::ConditionStatus => return Place::Word("object_condition_status"),
        ObjectField::Phase => return Place::Word("object_phase"),
        ObjectField::CreationTime => "object_creation_us",
        ObjectField::StartTime => "object_start_us",
        ObjectField::CompletionTime => "object_completion_us",
    })
}

/// Whether every row of the resource has a value of `column`.
pub(crate) fn always(column: &Column) -> bool {
    matches!(
        column,
        Column::Parent
            | Column::ResultId
            | Column::Uid
            | Column::CreateTime
            | Column::UpdateTime
            | Column::RecordId
            | Column::RecordName
            | Column::Tier
    )
}

/// Whether values of `column` are texts of any length. Names, identifiers and keys are short.
pub(crate) fn may_be_long(column: &Column) -> bool {
    holds(column) == Holds::Text && !always(column) && *column != Column::Signature
}
