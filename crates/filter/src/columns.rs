//! The values of columns. Stores keep what this says, and nothing else reads a payload to fill
//! a column, so that an indexed answer equals an evaluated one.

use std::collections::BTreeMap;

use hindsight_analysis::signature::Key;
pub use hindsight_analysis::signature::LOG_BYTES;
pub use hindsight_analysis::tree::MAX_MESSAGE;
use hindsight_analysis::tree::{Node, Said};
use hindsight_proto::time;
use hindsight_run::{Kind, View, keys};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    condition::{Column, ObjectField, Value as ColumnValue},
    outline::outline,
};
use crate::model::{Payload, Record, RunResult, Tier};

/// What signatures by the current rules begin with. Those by older rules sort before it.
pub const RULES: char = Key::version();

/// Longest name of an object in Kubernetes.
const MAX_NAME_BYTES: usize = 253;

/// What a payload gives to the columns of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectColumns {
    fields: [Option<ColumnValue>; ObjectField::ALL.len()],
    /// `metadata.labels`, those whose value is a string.
    pub labels: BTreeMap<String, String>,
    /// Whether a part of the JSON of `metadata.labels` may be no part of a key or value in
    /// `labels`: a value is no string, or a text is written in JSON with an escape. Not said
    /// where `labels` is empty.
    pub has_odd_labels: bool,
    /// What the run says of itself, if it is one.
    pub run: RunColumns,
    /// The key of the signature of a run that failed, timed out or was cancelled.
    pub signature: Option<String>,
    /// What a run says of its end, unless it succeeded; of [`MAX_MESSAGE`] characters at most.
    pub message: Option<String>,
    /// Which attempt of a run it is, if it is not the first.
    pub attempt: Option<i64>,
}

/// How a run went, the same for every kind of run. Times are in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunColumns {
    /// Number of its outcome.
    pub outcome: Option<i64>,
    /// When the run began; absent if its status names no such time.
    pub began: Option<i64>,
    /// When the run ended; absent while it runs or if unknown.
    pub ended: Option<i64>,
}

impl RunColumns {
    /// What a run says of itself.
    pub fn of(run: &View<'_>) -> Self {
        Self {
            outcome: Some(run.finish().outcome as i64),
            began: run.started().map(|time| time.as_microsecond()),
            ended: run.ended().map(|time| time.as_microsecond()),
        }
    }

    /// How long it took.
    pub fn duration(&self) -> Option<i64> {
        self.ended?.checked_sub(self.began?)
    }
}

impl ObjectColumns {
    /// The value of a column of text; none for columns of times.
    pub fn text(&self, field: ObjectField) -> Option<&str> {
        match &self.fields[field as usize] {
            Some(ColumnValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The pipeline that the record is of. What is too long to be a name is none.
    pub fn pipeline(&self) -> Option<&str> {
        let label = self.labels.get(keys::PIPELINE).map(String::as_str);
        let name = label.or_else(|| self.text(ObjectField::PipelineRef));
        name.filter(|name| name.len() <= MAX_NAME_BYTES)
    }

    /// Why the object is as it is: the reason of its first condition, or else its phase.
    pub fn reason(&self) -> Option<&str> {
        let reason = self.text(ObjectField::Reason);
        reason.or_else(|| self.text(ObjectField::Phase))
    }

    /// The text in which a part of `metadata.labels` is sought: its keys and values. None where
    /// there are no labels or odd ones.
    pub fn searched_labels(&self) -> Option<String> {
        if self.labels.is_empty() || self.has_odd_labels {
            return None;
        }
        let texts = self.labels.iter().flat_map(|(key, value)| [key, value]);
        Some(texts.map(String::as_str).collect::<Vec<_>>().join("\n"))
    }

    /// Takes the value of a field as a store kept it. A value of another type leaves it empty.
    pub fn insert(&mut self, field: ObjectField, value: ColumnValue) {
        let fits = match value {
            ColumnValue::Text(_) => !field.is_time(),
            ColumnValue::Time(_) => field.is_time(),
            ColumnValue::Int(_) => false,
        };
        if fits {
            self.fields[field as usize] = Some(value);
        }
    }

    /// About how many bytes the texts take.
    pub fn weight(&self) -> usize {
        let fields = self.fields.iter().flatten();
        let texts = fields.map(|value| match value {
            ColumnValue::Text(text) => text.len(),
            ColumnValue::Int(_) | ColumnValue::Time(_) => 0,
        });
        let labels = self
            .labels
            .iter()
            .map(|(key, value)| key.len() + value.len());
        let said = self.message.iter().chain(&self.signature).map(String::len);
        texts.chain(labels).chain(said).sum()
    }

    /// The value of a column of times, cut to microseconds; none for columns of text.
    pub fn time(&self, field: ObjectField) -> Option<Timestamp> {
        match self.fields[field as usize] {
            Some(ColumnValue::Time(time)) => Some(time),
            _ => None,
        }
    }
}

/// The signature of a run that failed and whose payload cannot be read.
pub fn unreadable() -> String {
    Key::of_nothing().to_string()
}

/// The failure of a run that says no more than that it failed, so that its log may tell why.
#[derive(Debug)]
pub struct VagueFailure(Node);

impl VagueFailure {
    /// That of a payload, if it is one.
    pub fn of(payload: &Payload) -> Option<Self> {
        Kind::of_type(&payload.data_type)?;
        let body = outline(&payload.value).ok()?;
        let failure = Node::of_failure(&View::new(&body))?;
        failure.is_vague().then_some(Self(failure))
    }

    /// The step that failed, if it says so.
    pub fn step(&self) -> Option<&str> {
        self.0.failed_step().map(|step| step.name.as_str())
    }

    /// Whether it says which steps there were.
    pub fn has_steps(&self) -> bool {
        !self.0.steps.is_empty()
    }

    /// Its signature with the end of its log; the same as without one if the log tells nothing.
    pub fn signature(&self, log_tail: &str) -> String {
        let signature = self.0.signature_with(log_tail);
        signature.map_or_else(unreadable, |signature| signature.key().to_string())
    }
}

/// The columns of a payload. A payload that is not JSON has none.
pub fn object_columns(payload: &Payload) -> ObjectColumns {
    match outline(&payload.value) {
        Ok(body) => columns_of(&payload.data_type, &body),
        Err(_) => ObjectColumns::default(),
    }
}

/// The columns of a payload of this type, of which `body` is the JSON or its [`outline`].
pub fn columns_of(data_type: &str, body: &Value) -> ObjectColumns {
    let mut columns = ObjectColumns::default();
    if Kind::of_type(data_type).is_some() {
        let view = View::new(body);
        let said = Said::by(&view);
        columns.run = RunColumns::of(&view);
        columns.signature = said.signature.map(|key| key.to_string());
        columns.message = said.message;
        columns.attempt = said.attempt.map(i64::from);
    }
    for field in ObjectField::ALL {
        let Some(text) = at(body, field.pointer()).and_then(Value::as_str) else {
            continue;
        };
        columns.fields[field as usize] = match field.is_time() {
            true => time::parse(text).map(ColumnValue::Time),
            false => Some(ColumnValue::Text(text.to_owned())),
        };
    }
    if let Some(labels) = at(body, "/metadata/labels").and_then(Value::as_object) {
        for (key, value) in labels {
            let text = value.as_str();
            columns.has_odd_labels |= is_escaped(key) || text.is_none_or(is_escaped);
            if let Some(text) = text {
                columns.labels.insert(key.clone(), text.to_owned());
            }
        }
        columns.has_odd_labels &= !columns.labels.is_empty();
    }
    columns
}

/// Whether JSON writes a text with escapes.
fn is_escaped(text: &str) -> bool {
    text.contains(|c: char| matches!(c, '"' | '\\' | '\0'..='\u{1f}'))
}

/// Whether a part of the JSON of labels that are not odd is a part of a key or value: it has
/// nothing of what stands between them.
pub fn is_part_of_labels(part: &str) -> bool {
    !is_escaped(part) && !part.contains([' ', ',', ':', '{', '}'])
}

/// The value of a column of a result.
pub fn of_result(result: &RunResult, column: &Column) -> Option<ColumnValue> {
    let text = |text: &str| Some(ColumnValue::Text(text.to_owned()));
    let summary = result.summary.as_ref();
    match column {
        Column::Parent => text(result.name.parent().as_str()),
        Column::ResultId => text(result.name.id()),
        Column::Uid => text(&result.uid),
        Column::CreateTime => Some(ColumnValue::Time(result.create_time)),
        Column::UpdateTime => Some(ColumnValue::Time(result.update_time)),
        Column::Duration => {
            let (start, end) = summary?.start_time.zip(summary?.end_time)?;
            Some(ColumnValue::Int(
                end.as_microsecond() - start.as_microsecond(),
            ))
        }
        Column::SummaryRecord => Some(ColumnValue::Text(summary?.record.to_string())),
        Column::SummaryType => text(&summary?.data_type),
        Column::SummaryStartTime => summary?.start_time.map(ColumnValue::Time),
        Column::SummaryEndTime => summary?.end_time.map(ColumnValue::Time),
        Column::SummaryStatus => Some(ColumnValue::Int(i64::from(summary?.status))),
        Column::Annotation(key) => text(result.annotations.get(key)?),
        Column::SummaryAnnotation(key) => text(summary?.annotations.get(key)?),
        Column::Cluster
        | Column::Tier
        | Column::Outcome
        | Column::Began
        | Column::Ended
        | Column::Pipeline
        | Column::Reason
        | Column::Signature
        | Column::RecordId
        | Column::RecordName
        | Column::DataType
        | Column::Object(_)
        | Column::Label(_)
        | Column::Labels
        | Column::ObjectDuration
        | Column::Indexed(_) => None,
    }
}

/// The value of a column of a record that is kept in `tier` and whose payload gives `object`.
pub fn of_record(
    record: &Record,
    tier: Tier,
    object: &ObjectColumns,
    column: &Column,
) -> Option<ColumnValue> {
    let text = |text: &str| Some(ColumnValue::Text(text.to_owned()));
    match column {
        Column::Parent => text(record.name.result().parent().as_str()),
        Column::Cluster => text(record.name.result().parent().cluster()?),
        Column::Tier => text(tier.as_str()),
        Column::ResultId => text(record.name.result().id()),
        Column::Uid => text(&record.uid),
        Column::CreateTime => Some(ColumnValue::Time(record.create_time)),
        Column::UpdateTime => Some(ColumnValue::Time(record.update_time)),
        Column::Duration => object.run.duration().map(ColumnValue::Int),
        Column::Outcome => object.run.outcome.map(ColumnValue::Int),
        Column::Began => moment(object.run.began?),
        Column::Ended => moment(object.run.ended?),
        Column::Pipeline => text(object.pipeline()?),
        Column::Reason => text(object.reason()?),
        Column::Signature => text(object.signature.as_deref()?),
        Column::RecordId => text(record.name.id()),
        Column::RecordName => Some(ColumnValue::Text(record.name.to_string())),
        Column::DataType => text(&record.data.as_ref()?.data_type),
        Column::Object(field) if field.is_time() => object.time(*field).map(ColumnValue::Time),
        Column::Object(field) => text(object.text(*field)?),
        Column::Label(key) => text(object.labels.get(key)?),
        Column::Labels => object.searched_labels().map(ColumnValue::Text),
        Column::ObjectDuration => {
            let end = object.time(ObjectField::CompletionTime)?;
            let start = object.time(ObjectField::StartTime)?;
            Some(ColumnValue::Int(
                end.as_microsecond() - start.as_microsecond(),
            ))
        }
        Column::SummaryRecord
        | Column::SummaryType
        | Column::SummaryStartTime
        | Column::SummaryEndTime
        | Column::SummaryStatus
        | Column::Annotation(_)
        | Column::SummaryAnnotation(_)
        // Of these there may be several.
        | Column::Indexed(_) => None,
    }
}

fn moment(us: i64) -> Option<ColumnValue> {
    Timestamp::from_microsecond(us).ok().map(ColumnValue::Time)
}

/// The value at a pointer whose numbers are indexes of arrays: unlike RFC 6901, a number does
/// not find the member of an object, because `conditions[0]` in a filter would not either.
fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer
        .split('/')
        .skip(1)
        .try_fold(value, |value, part| match part.parse::<usize>() {
            Ok(index) => value.as_array()?.get(index),
            Err(_not_a_number) => value.as_object()?.get(part),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(json: &str) -> ObjectColumns {
        object_columns(&Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            json.as_bytes().to_vec().into(),
        ))
    }

    #[test]
    fn fields_are_found_and_times_are_cut() {
        let columns = columns(
            r#"{"kind":"TaskRun","metadata":{"name":"a","labels":{"x":"1","n":2},
                "creationTimestamp":"2026-01-02T03:04:05.123456789Z"},
                "status":{"conditions":[{"reason":"Failed","status":"False"}],
                "startTime":"2026-01-02T05:04:05+02:00"}}"#,
        );
        assert_eq!(columns.text(ObjectField::Kind), Some("TaskRun"));
        assert_eq!(columns.text(ObjectField::Name), Some("a"));
        assert_eq!(columns.text(ObjectField::Reason), Some("Failed"));
        assert_eq!(columns.text(ObjectField::Namespace), None);
        let created = columns.time(ObjectField::CreationTime).unwrap();
        assert_eq!(created.to_string(), "2026-01-02T03:04:05.123456Z");
        let started = columns.time(ObjectField::StartTime).unwrap();
        assert_eq!(started.to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(
            columns.labels,
            BTreeMap::from([("x".to_owned(), "1".to_owned())])
        );
    }

    #[test]
    fn a_field_of_another_type_is_empty() {
        let odd = columns(
            r#"{"kind":7,"metadata":{"name":null,"creationTimestamp":"soon","labels":["a"]},
                "status":{"conditions":{"0":{"reason":"Failed"}}}}"#,
        );
        let run = RunColumns {
            outcome: Some(0),
            ..RunColumns::default()
        };
        let empty = ObjectColumns::default();
        assert_eq!(odd, ObjectColumns { run, ..empty });
        assert_eq!(columns("not json"), ObjectColumns::default());
    }
}
