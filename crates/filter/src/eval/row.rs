//! A row as filters see it: its fields, and its body, which is read once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hindsight_run::json;
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::{
    columns::{ObjectColumns, columns_of},
    condition::ObjectField,
    expr::Field,
    model::{Record, RunResult, Tier},
    prune::prune,
    reads::Reads,
    value::{Shared, Value},
};

/// One row to judge.
#[derive(Debug, Clone, Copy)]
pub enum Row<'r> {
    /// A result, with everything that filters may read of it.
    Result(&'r RunResult),
    /// A record. Of its data only the type is read from it.
    Record {
        /// The record; its `data` may lack the bytes.
        record: &'r Record,
        /// Where it is kept.
        tier: Tier,
        /// The payload, from which `data` in filters is read.
        body: &'r Body,
    },
}

/// A record's payload, parsed when it is first needed.
#[derive(Debug)]
pub struct Body {
    bytes: Option<Bytes>,
    reads: Option<Arc<Reads>>,
    json: OnceLock<Option<Json>>,
    columns: OnceLock<ObjectColumns>,
}

impl Body {
    /// The payload of `record`.
    pub fn of(record: &Record) -> Self {
        let bytes = record.data.as_ref().map(|data| data.value.clone());
        Self {
            bytes,
            reads: None,
            json: OnceLock::new(),
            columns: OnceLock::new(),
        }
    }

    /// The payload of `record`, cut to what is read of it.
    pub(crate) fn cut_to(record: &Record, reads: &Arc<Reads>) -> Self {
        Self {
            reads: Some(Arc::clone(reads)),
            ..Self::of(record)
        }
    }

    /// The JSON, unless there is none.
    pub fn json(&self) -> Option<&Json> {
        let parse = || {
            let bytes = self.bytes.as_deref()?;
            let cut = self.reads.as_ref().and_then(|reads| prune(bytes, reads));
            cut.or_else(|| json::parse(bytes).ok())
        };
        self.json.get_or_init(parse).as_ref()
    }

    /// What stores keep in columns of the payload, which is of this type.
    fn columns(&self, data_type: &str) -> &ObjectColumns {
        let columns = || {
            let json = self.json();
            json.map_or_else(ObjectColumns::default, |json| columns_of(data_type, json))
        };
        self.columns.get_or_init(columns)
    }

    /// Whether it was looked at and is no JSON.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.json.get(), Some(None))
    }
}

pub(super) fn result_field(result: &RunResult, field: Field) -> Option<Value<'_>> {
    let summary = result.summary.as_ref();
    Some(match field {
        Field::Parent => Value::text(result.name.parent().as_str()),
        Field::Uid => Value::text(&result.uid),
        Field::CreateTime => Value::Time(result.create_time),
        Field::UpdateTime => Value::Time(result.update_time),
        Field::Annotations => Value::Texts(&result.annotations),
        Field::Summary => summary.map(|_| Value::Map([].into()))?,
        Field::SummaryRecord => Value::Text(Shared::own(summary?.record.to_string())),
        Field::SummaryType => Value::text(&summary?.data_type),
        Field::SummaryStartTime => Value::Time(summary?.start_time?),
        Field::SummaryEndTime => Value::Time(summary?.end_time?),
        Field::SummaryStatus => Value::Int(i64::from(summary?.status)),
        Field::SummaryAnnotations => Value::Texts(&summary?.annotations),
        _ => return None,
    })
}

pub(super) fn record_field<'r>(
    record: &'r Record,
    tier: Tier,
    body: &'r Body,
    field: Field,
) -> Option<Value<'r>> {
    let data_type = record.data.as_ref().map_or("", |data| &data.data_type);
    Some(match field {
        Field::Parent => Value::text(record.name.result().parent().as_str()),
        Field::Uid => Value::text(&record.uid),
        Field::CreateTime => Value::Time(record.create_time),
        Field::UpdateTime => Value::Time(record.update_time),
        Field::ResultName => Value::text(record.name.result().id()),
        Field::Name => Value::Text(Shared::own(record.name.to_string())),
        Field::DataType => Value::text(&record.data.as_ref()?.data_type),
        Field::Tier => Value::text(tier.as_str()),
        Field::RunCluster => Value::text(record.name.result().parent().cluster()?),
        field => run_field(body.columns(data_type), field)?,
    })
}

fn run_field(columns: &ObjectColumns, field: Field) -> Option<Value<'_>> {
    let moment = |us| Timestamp::from_microsecond(us).ok().map(Value::Time);
    Some(match field {
        Field::Run => columns.run.outcome.map(|_| Value::Map([].into()))?,
        Field::RunOutcome => Value::Int(columns.run.outcome?),
        Field::RunPipeline => Value::text(columns.pipeline()?),
        Field::RunTask => Value::text(columns.text(ObjectField::TaskRef)?),
        Field::RunReason => Value::text(columns.reason()?),
        Field::RunPhase => Value::text(columns.text(ObjectField::Phase)?),
        Field::RunStartTime => moment(columns.run.began?)?,
        Field::RunEndTime => moment(columns.run.ended?)?,
        Field::RunLabels => Value::Texts(&columns.labels),
        Field::RunSignature => Value::text(columns.signature.as_deref()?),
        _ => return None,
    })
}
