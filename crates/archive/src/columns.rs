//! The columns of a file: one table makes the schema, what is written and what is found by Bloom filters.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use hindsight_filter::{
    columns::ObjectColumns,
    condition::{Column as Field, ObjectField},
    model::{Etag, Payload, Summary},
};
use hindsight_proto::v1alpha2::record_summary::Status;
use hindsight_run::{Engine, keys};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::Row;

/// A row, and what its payload gives to columns.
#[derive(Debug)]
pub(crate) struct View<'r> {
    pub(crate) row: &'r Row,
    pub(crate) object: ObjectColumns,
}

/// What a column has of a row.
pub(crate) enum Take {
    /// A text, which is UTF-8 in the file.
    Text(for<'r> fn(&'r View<'r>) -> Option<Cow<'r, str>>),
    /// Microseconds since 1970, in UTC.
    Time(for<'r> fn(&'r View<'r>) -> Option<Timestamp>),
    Int(for<'r> fn(&'r View<'r>) -> Option<i64>),
    /// A map of texts to texts.
    Map(for<'r> fn(&'r View<'r>) -> Option<&'r BTreeMap<String, String>>),
    /// The labels as a list of `key=value`, because a Bloom filter is of single values.
    Pairs,
    Payload,
    Digest,
}

pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
    /// Whether nearly every row has a value of its own.
    pub(crate) is_unique: bool,
    /// Whether row groups have a Bloom filter of it.
    pub(crate) is_sought: bool,
    pub(crate) take: Take,
}

impl Column {
    const fn optional(name: &'static str, take: Take) -> Self {
        Self {
            name,
            is_required: false,
            is_unique: false,
            is_sought: false,
            take,
        }
    }

    const fn required(name: &'static str, take: Take) -> Self {
        Self {
            is_required: true,
            ..Self::optional(name, take)
        }
    }

    const fn unique(self) -> Self {
        Self {
            is_unique: true,
            ..self
        }
    }

    const fn sought(self) -> Self {
        Self {
            is_sought: true,
            ..self
        }
    }
}

use Column as C;
use Take::{Int, Map, Text, Time};

/// Every column, in the order of the file. docs/archive.md says what they mean.
pub(crate) const COLUMNS: &[Column] = &[
    C::required(
        "parent",
        Text(|v| Some(borrowed(v.row.record.name.result().parent().as_str()))),
    ),
    C::required(
        "result_id",
        Text(|v| Some(borrowed(v.row.record.name.result().id()))),
    )
    .sought(),
    C::required(
        "record_id",
        Text(|v| Some(borrowed(v.row.record.name.id()))),
    )
    .unique()
    .sought(),
    C::required("uid", Text(|v| Some(borrowed(&v.row.record.uid))))
        .unique()
        .sought(),
    C::optional(
        "etag",
        Text(|v| {
            let record = &v.row.record;
            odd_etag(&record.etag, &record.uid, record.update_time)
        }),
    ),
    C::required("create_time", Time(|v| Some(v.row.record.create_time))).unique(),
    C::required("update_time", Time(|v| Some(v.row.record.update_time))).unique(),
    C::optional(
        "cluster_id",
        Text(|v| v.row.result.name.parent().cluster().map(borrowed)),
    ),
    C::optional("type", Text(|v| Some(borrowed(&v.data()?.data_type)))),
    C::optional(
        "engine",
        Text(|v| Some(borrowed(Engine::of_type(&v.data()?.data_type).name()))),
    ),
    C::optional("kind", Text(|v| v.text(ObjectField::Kind))),
    C::optional("name", Text(|v| v.text(ObjectField::Name)))
        .unique()
        .sought(),
    C::optional("object_namespace", Text(|v| v.text(ObjectField::Namespace))),
    C::optional("object_uid", Text(|v| v.text(ObjectField::Uid)))
        .unique()
        .sought(),
    C::optional("pipeline", Text(|v| v.object.pipeline().map(borrowed))),
    C::optional(
        "parent_run",
        Text(|v| {
            let label = |key| v.object.labels.get(key);
            let run = label(keys::PIPELINE_RUN).or_else(|| label(keys::RAY_ORIGIN));
            run.map(|name| borrowed(name))
        }),
    ),
    C::optional(
        "outcome",
        Text(|v| Some(borrowed(outcome(v.object.run.outcome?)))),
    ),
    C::optional("reason", Text(|v| v.object.reason().map(borrowed))),
    C::optional(
        "message",
        Text(|v| v.object.message.as_deref().map(borrowed)),
    ),
    C::optional(
        "signature",
        Text(|v| v.object.signature.as_deref().map(borrowed)),
    ),
    C::optional("attempt", Int(|v| v.object.attempt)),
    C::optional(
        "created",
        Time(|v| v.object.time(ObjectField::CreationTime)),
    ),
    C::optional("start_time", Time(|v| micros(v.object.run.began))),
    C::optional("end_time", Time(|v| micros(v.object.run.ended))),
    C::optional("duration_us", Int(|v| v.object.run.duration())),
    C::required("labels", Map(|v| Some(&v.object.labels))),
    C::required("label_pairs", Take::Pairs).sought(),
    C::optional(
        "payload_size",
        Int(|v| i64::try_from(v.data()?.value.len()).ok()),
    )
    .unique(),
    C::optional("payload_sha256", Take::Digest).unique(),
    C::optional("payload", Take::Payload).unique(),
    C::required("result_uid", Text(|v| Some(borrowed(&v.row.result.uid)))),
    C::optional(
        "result_etag",
        Text(|v| {
            let result = &v.row.result;
            odd_etag(&result.etag, &result.uid, result.update_time)
        }),
    ),
    C::required(
        "result_create_time",
        Time(|v| Some(v.row.result.create_time)),
    ),
    C::required(
        "result_update_time",
        Time(|v| Some(v.row.result.update_time)),
    ),
    C::required(
        "result_annotations",
        Map(|v| Some(&v.row.result.annotations)),
    ),
    C::optional(
        "summary_record",
        Text(|v| Some(Cow::Owned(v.summary()?.record.to_string()))),
    ),
    C::optional(
        "summary_type",
        Text(|v| Some(borrowed(&v.summary()?.data_type))),
    ),
    C::optional("summary_start_time", Time(|v| v.summary()?.start_time)),
    C::optional("summary_end_time", Time(|v| v.summary()?.end_time)),
    C::optional(
        "summary_status",
        Int(|v| Some(i64::from(v.summary()?.status))),
    ),
    C::required(
        "summary_annotations",
        Map(|v| Some(&v.summary()?.annotations)),
    ),
    C::optional("row_number", Int(|v| Some(v.row.stored.as_ref()?.number))).unique(),
    C::optional("pipeline_ref", Text(|v| v.text(ObjectField::PipelineRef))),
    C::optional("task_ref", Text(|v| v.text(ObjectField::TaskRef))),
    C::optional("condition_reason", Text(|v| v.text(ObjectField::Reason))),
    C::optional(
        "condition_status",
        Text(|v| v.text(ObjectField::ConditionStatus)),
    ),
    C::optional("phase", Text(|v| v.text(ObjectField::Phase))),
    C::optional(
        "object_start_time",
        Time(|v| v.object.time(ObjectField::StartTime)),
    ),
    C::optional(
        "object_completion_time",
        Time(|v| v.object.time(ObjectField::CompletionTime)),
    ),
    C::optional("odd_labels", Int(|v| v.object.has_odd_labels.then_some(1))),
];

/// Leaves that have the fields of objects.
pub(crate) const OBJECT_FIELDS: [(ObjectField, &str); ObjectField::ALL.len()] = [
    (ObjectField::Kind, "kind"),
    (ObjectField::Name, "name"),
    (ObjectField::Namespace, "object_namespace"),
    (ObjectField::Uid, "object_uid"),
    (ObjectField::PipelineRef, "pipeline_ref"),
    (ObjectField::TaskRef, "task_ref"),
    (ObjectField::Reason, "condition_reason"),
    (ObjectField::ConditionStatus, "condition_status"),
    (ObjectField::Phase, "phase"),
    (ObjectField::CreationTime, "created"),
    (ObjectField::StartTime, "object_start_time"),
    (ObjectField::CompletionTime, "object_completion_time"),
];

fn object_leaf(wanted: ObjectField) -> Option<&'static str> {
    let mut fields = OBJECT_FIELDS.iter();
    fields.find_map(|(field, leaf)| (*field == wanted).then_some(*leaf))
}

/// The leaf that has the text which filters know as this.
pub(crate) fn text_leaf(field: &Field) -> Option<&'static str> {
    Some(match field {
        Field::Parent => "parent",
        Field::Cluster => "cluster_id",
        Field::ResultId => "result_id",
        Field::RecordId => "record_id",
        Field::Uid => "uid",
        Field::Pipeline => "pipeline",
        Field::Reason => "reason",
        Field::Signature => "signature",
        Field::DataType => "type",
        Field::Object(field) if !field.is_time() => object_leaf(*field)?,
        _ => return None,
    })
}

/// The leaf that has the time which filters know as this.
pub(crate) fn time_leaf(field: &Field) -> Option<&'static str> {
    Some(match field {
        Field::CreateTime => "create_time",
        Field::UpdateTime => "update_time",
        Field::Began => "start_time",
        Field::Ended => "end_time",
        Field::Object(field) if field.is_time() => object_leaf(*field)?,
        _ => return None,
    })
}

/// The column of this name.
pub(crate) fn column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.name == name)
}

impl Column {
    /// Paths of its leaves in the schema.
    pub(crate) fn leaves(&self) -> Vec<String> {
        let leaf = |path: &str| format!("{}.{path}", self.name);
        match self.take {
            Take::Map(_) => vec![leaf("key_value.key"), leaf("key_value.value")],
            Take::Pairs => vec![leaf("list.element")],
            _ => vec![self.name.to_owned()],
        }
    }

    fn declared(&self) -> String {
        let name = self.name;
        let repetition = if self.is_required {
            "required"
        } else {
            "optional"
        };
        match self.take {
            Take::Text(_) => format!("{repetition} binary {name} (STRING);"),
            Take::Time(_) => format!("{repetition} int64 {name} (TIMESTAMP(MICROS,true));"),
            Take::Int(_) => format!("{repetition} int64 {name};"),
            Take::Payload => format!("{repetition} binary {name};"),
            Take::Digest => format!("{repetition} fixed_len_byte_array(32) {name};"),
            Take::Map(_) => format!(
                "{repetition} group {name} (MAP) {{ repeated group key_value {{ \
                 required binary key (STRING); required binary value (STRING); }} }}"
            ),
            Take::Pairs => format!(
                "{repetition} group {name} (LIST) {{ repeated group list {{ \
                 required binary element (STRING); }} }}"
            ),
        }
    }
}

/// The schema in the language of Parquet.
pub(crate) fn schema() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(Column::declared).collect();
    format!("message record {{ {} }}", columns.join(" "))
}

impl View<'_> {
    pub(crate) fn data(&self) -> Option<&Payload> {
        self.row.record.data.as_ref()
    }

    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        Some(digest(&self.data()?.value))
    }

    /// The labels as `key=value`.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = String> {
        self.object
            .labels
            .iter()
            .map(|(key, value)| pair(key, value))
    }

    fn text(&self, field: ObjectField) -> Option<Cow<'_, str>> {
        self.object.text(field).map(borrowed)
    }

    fn summary(&self) -> Option<&Summary> {
        self.row.result.summary.as_ref()
    }
}

/// A label as one text.
pub(crate) fn pair(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

pub(crate) fn digest(payload: &Bytes) -> [u8; 32] {
    Sha256::digest(payload).into()
}

fn borrowed(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// An etag, unless it follows from uid and update time.
fn odd_etag<'e>(etag: &'e Etag, uid: &str, updated: Timestamp) -> Option<Cow<'e, str>> {
    (*etag != Etag::new(uid, updated)).then(|| borrowed(etag.as_str()))
}

/// The etag that was kept, or the one that follows from uid and update time.
pub(crate) fn etag(kept: Option<String>, uid: &str, updated: Timestamp) -> Etag {
    kept.map_or_else(|| Etag::new(uid, updated), Etag::from_text)
}

fn micros(us: Option<i64>) -> Option<Timestamp> {
    Timestamp::from_microsecond(us?).ok()
}

/// The name of an outcome as filters spell it.
fn outcome(number: i64) -> &'static str {
    let status = i32::try_from(number)
        .ok()
        .and_then(|it| Status::try_from(it).ok());
    status.unwrap_or(Status::Unknown).as_str_name()
}

/// The number of an outcome of this name.
pub(crate) fn outcome_number(name: &str) -> i64 {
    Status::from_str_name(name).unwrap_or(Status::Unknown) as i64
}
