//! What an update changes of a row: all but its names and when it was stored.

use bytes::Bytes;
use hindsight_filter::condition::ObjectField;
use hindsight_filter::model::RunResult;
use jiff::Timestamp;

use super::Set;
use crate::{
    codec::{
        row::{RecordRow, all_labels_json, json},
        text::{NEVER, SAME},
    },
    sql::{etag, statement::Bind},
};

/// What an update changes of a result.
pub(super) fn result_state(value: &RunResult) -> Vec<Set> {
    let summary = value.summary.as_ref();
    vec![
        Set::new(
            "etag",
            etag::stored(&value.etag, &value.uid, value.update_time),
        ),
        Set::new("update_us", value.update_time),
        Set::json("annotations", Some(json(&value.annotations))),
        Set::new(
            "summary_record",
            summary.map(|s| s.record.to_string()).as_deref(),
        ),
        Set::word("summary_type", summary.map(|s| s.data_type.as_str())),
        Set::new("summary_start_us", summary.and_then(|s| s.start_time)),
        Set::new("summary_end_us", summary.and_then(|s| s.end_time)),
        Set::new("summary_status", summary.map(|s| i64::from(s.status))),
        Set::json("summary_annotations", summary.map(|s| json(&s.annotations))),
    ]
}

/// What an update changes of a record.
pub(in crate::sql) fn record_state(row: &RecordRow) -> Vec<Set> {
    let record = &row.record;
    let object = |field| row.extract.columns.text(field);
    let time = |field| row.extract.columns.time(field);
    let body = row.body.as_ref();
    vec![
        Set::new(
            "etag",
            etag::stored(&record.etag, &record.uid, record.update_time),
        ),
        Set::new("update_us", record.update_time),
        Set::word(
            "data_type",
            record.data.as_ref().map(|data| data.data_type.as_str()),
        ),
        Set::new("body_size", body.map(|body| body.size)),
        Set::new(
            "body_sha256",
            body.map(|body| Bytes::copy_from_slice(&body.sha256)),
        ),
        Set::word("object_kind", object(ObjectField::Kind)),
        Set::new("object_name", object(ObjectField::Name)),
        Set::new("object_namespace", object_namespace(row)),
        Set::new("object_uid", object_uid(row)),
        Set::new("object_pipeline_ref", object(ObjectField::PipelineRef)),
        Set::new("object_task_ref", object(ObjectField::TaskRef)),
        Set::word("object_reason", object(ObjectField::Reason)),
        Set::word(
            "object_condition_status",
            object(ObjectField::ConditionStatus),
        ),
        Set::word("object_phase", object(ObjectField::Phase)),
        Set::new("object_creation_us", time(ObjectField::CreationTime)),
        Set::new("object_start_us", time(ObjectField::StartTime)),
        Set::new("object_completion_us", time(ObjectField::CompletionTime)),
        Set::json("labels", all_labels_json(&row.extract.columns)),
        Set::new("run_outcome", row.extract.columns.run.outcome),
        Set::new(
            "run_began_us",
            beside(row.extract.columns.run.began, time(ObjectField::StartTime)),
        ),
        Set::new(
            "run_ended_us",
            beside(
                row.extract.columns.run.ended,
                time(ObjectField::CompletionTime),
            ),
        ),
        Set::new("run_pipeline", row.extract.columns.pipeline()),
        Set::new("run_signature", row.extract.columns.signature.as_deref()),
        Set::new("run_message", row.extract.columns.message.as_deref()),
        Set::new("run_attempt", row.extract.columns.attempt),
    ]
}

/// What is kept of the uid of an object, which mostly is the id of its record.
fn object_uid(row: &RecordRow) -> Bind {
    match row.extract.columns.text(ObjectField::Uid) {
        None => Bind::Id(None),
        Some(uid) if uid == row.record.name.id() => Bind::Id(Some(SAME.to_owned())),
        Some(uid) => Bind::id(uid),
    }
}

/// What is kept of the namespace of an object, which mostly is the parent.
fn object_namespace(row: &RecordRow) -> Bind {
    let parent = row.record.name.result().parent().as_str();
    match row.extract.columns.text(ObjectField::Namespace) {
        Some(namespace) if namespace == parent => Bind::Text(Some(SAME.to_owned())),
        other => other.into(),
    }
}

/// What is kept of a time of a run, which mostly is one of the object.
fn beside(run: Option<i64>, object: Option<Timestamp>) -> Option<i64> {
    let object = object.map(Timestamp::as_microsecond);
    match run == object {
        true => None,
        false => Some(run.unwrap_or(NEVER)),
    }
}

/// A column of a record that its state fills: its name, whether it holds JSON, its value.
pub(crate) type Filled = (&'static str, bool, Bind);

/// The columns that a record's state fills.
pub(crate) fn filled(row: &RecordRow) -> Vec<Filled> {
    let sets = record_state(row).into_iter();
    sets.map(|set| (set.column, set.is_json, set.value))
        .collect()
}
