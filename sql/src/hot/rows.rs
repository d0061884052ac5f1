//! Rows of messages: what lists tell of runs, records with their payloads, results and logs.

use std::{collections::HashMap, sync::Arc};

use datafusion::error::{DataFusionError, Result};
use hindsight_archive::{CellValue, Row, RowValues};
use hindsight_filter::model::{
    Etag, LogName, Parent, Payload, Record, RecordName, ResultName, RunResult, Summary,
};
use hindsight_proto::{
    time,
    v1::{LogContainer, RunRow},
    v1alpha2 as pb,
};
use jiff::Timestamp;

use crate::columns::{Column, NAMESPACE, Rows, TIER};

/// Columns of records that a list without payloads tells.
const WITHOUT_PAYLOAD: [&str; 10] = [
    "parent",
    "result_id",
    "record_id",
    "uid",
    "etag",
    "create_time",
    "update_time",
    "cluster_id",
    "type",
    "engine",
];

/// What must be read for columns of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) payloads: bool,
    pub(crate) results: bool,
}

pub(crate) fn needs(columns: &[Column]) -> Needs {
    let is_of_result = |name: &str| {
        (name.starts_with("result_") && name != "result_id") || name.starts_with("summary_")
    };
    let is_free = |name: &str| {
        WITHOUT_PAYLOAD.contains(&name) || [NAMESPACE, TIER, "row_number"].contains(&name)
    };
    let mut names = columns.iter().map(|column| column.info.name);
    Needs {
        results: names.clone().any(is_of_result),
        payloads: names.any(|name| !is_free(name) && !is_of_result(name)),
    }
}

/// Where rows are, if that is known.
pub(crate) type Tier = Option<&'static str>;

/// Results by their names.
pub(crate) type Results = HashMap<String, Arc<RunResult>>;

/// What a server sent that it cannot have meant.
fn unclear(what: &str, why: impl std::fmt::Display) -> DataFusionError {
    DataFusionError::Execution(format!(
        "the server sent {what}: {why}; is it older or newer than this program?"
    ))
}

/// Results that the rows of their records repeat.
pub(crate) fn results(all: Vec<pb::Result>) -> Result<Results> {
    all.into_iter()
        .map(|result| {
            let name = result.name.clone();
            Ok((name, Arc::new(to_result(result)?)))
        })
        .collect()
}

fn to_result(result: pb::Result) -> Result<RunResult> {
    let summary = result.summary.map(|summary| {
        Ok::<_, DataFusionError>(Summary {
            record: parsed::<RecordName>(&summary.record)?,
            data_type: summary.r#type,
            start_time: at(summary.start_time.as_ref()),
            end_time: at(summary.end_time.as_ref()),
            status: summary.status,
            annotations: summary.annotations,
        })
    });
    Ok(RunResult {
        name: parsed::<ResultName>(&result.name)?,
        uid: result.uid,
        etag: Etag::from_text(result.etag),
        create_time: required(&result.name, result.create_time.as_ref())?,
        update_time: required(&result.name, result.update_time.as_ref())?,
        annotations: result.annotations,
        summary: summary.transpose()?,
    })
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str) -> Result<T> {
    name.parse().map_err(|error| unclear("a name", error))
}

fn at(time: Option<&prost_types::Timestamp>) -> Option<Timestamp> {
    let time = time?;
    time::at(time.seconds, time.nanos)
}

fn required(name: &str, time: Option<&prost_types::Timestamp>) -> Result<Timestamp> {
    at(time).ok_or_else(|| unclear(&format!("`{name}`"), "without its times"))
}

/// Adds a record, with the result of its name among `results`.
pub(crate) fn of_record(
    rows: &mut Rows,
    record: pb::Record,
    results: &Results,
    tier: Tier,
) -> Result<()> {
    let name: RecordName = parsed(&record.name)?;
    let created = required(&record.name, record.create_time.as_ref())?;
    let updated = required(&record.name, record.update_time.as_ref())?;
    let result = results.get(&name.result().to_string()).map(Arc::clone);
    // One that came after the results were listed, or of which no column is asked for.
    let result = result.unwrap_or_else(|| {
        Arc::new(RunResult {
            name: name.result().clone(),
            uid: String::new(),
            etag: Etag::from_text(""),
            create_time: created,
            update_time: updated,
            annotations: std::collections::BTreeMap::new(),
            summary: None,
        })
    });
    let row = Row {
        record: Record {
            name,
            uid: record.uid,
            etag: Etag::from_text(record.etag),
            create_time: created,
            update_time: updated,
            data: record
                .data
                .map(|data| Payload::new(data.r#type, data.value)),
        },
        result,
        stored: None,
    };
    let values = RowValues::of(&row);
    let parent = row.record.name.result().parent();
    let value = |column: &Column| match column.in_file {
        Some(number) => values.get(number),
        None => of_place(parent, column.info.name, tier),
    };
    Ok(rows.push(&value)?)
}

/// The value of a column that is the same for all rows of a parent and tier.
fn of_place<'p>(parent: &'p Parent, column: &str, tier: Tier) -> Option<CellValue<'p>> {
    match column {
        NAMESPACE => Some(CellValue::Text(parent.namespace().into())),
        TIER => tier.map(|tier| CellValue::Text(tier.into())),
        _ => None,
    }
}

/// Adds a run of a list.
pub(crate) fn of_run(rows: &mut Rows, run: &RunRow, tier: Tier) -> Result<()> {
    let name: RecordName = parsed(&run.record)?;
    let (result, parent) = (name.result(), name.result().parent());
    let text = |text: &'_ str| (!text.is_empty()).then(|| CellValue::Text(text.to_owned().into()));
    let moment = |time: &Option<prost_types::Timestamp>| at(time.as_ref()).map(CellValue::Time);
    let took = || {
        let (start, end) = (at(run.start_time.as_ref())?, at(run.end_time.as_ref())?);
        end.as_microsecond().checked_sub(start.as_microsecond())
    };
    let value = |column: &Column| match column.info.name {
        "parent" => text(parent.as_str()),
        "result_id" => text(result.id()),
        "record_id" => text(name.id()),
        "create_time" => moment(&run.create_time),
        "update_time" => moment(&run.update_time),
        "cluster_id" => text(&run.cluster),
        "type" => text(&run.r#type),
        "engine" => text(&run.engine),
        "kind" => text(&run.kind),
        "name" => text(&run.name),
        "object_namespace" => text(&run.namespace),
        "object_uid" => text(&run.uid),
        "pipeline" => text(&run.pipeline),
        "parent_run" => text(&run.parent_run),
        "outcome" => text(&run.outcome),
        "reason" => text(&run.reason),
        "message" => text(&run.message),
        "signature" => text(&run.signature),
        "attempt" => run.attempt.map(|attempt| CellValue::Int(attempt.into())),
        "created" => moment(&run.created),
        "start_time" => moment(&run.start_time),
        "end_time" => moment(&run.end_time),
        "duration_us" => took().map(CellValue::Int),
        "labels" => Some(CellValue::Map(&run.labels)),
        other => of_place(parent, other, tier),
    };
    Ok(rows.push(&value)?)
}

/// Adds a result.
pub(crate) fn of_result(rows: &mut Rows, result: &pb::Result) -> Result<()> {
    let name: ResultName = parsed(&result.name)?;
    let parent = name.parent();
    let text = |text: &'_ str| (!text.is_empty()).then(|| CellValue::Text(text.to_owned().into()));
    let moment = |time: Option<&prost_types::Timestamp>| at(time).map(CellValue::Time);
    let summary = result.summary.as_ref();
    let status = |summary: &pb::RecordSummary| {
        let status = pb::record_summary::Status::try_from(summary.status).ok()?;
        Some(CellValue::Text(status.as_str_name().into()))
    };
    let value = |column: &Column| match column.info.name {
        "parent" => text(parent.as_str()),
        "result_id" => text(name.id()),
        "uid" => text(&result.uid),
        "etag" => text(&result.etag),
        "create_time" => moment(result.create_time.as_ref()),
        "update_time" => moment(result.update_time.as_ref()),
        "cluster_id" => text(parent.cluster()?),
        "annotations" => Some(CellValue::Map(&result.annotations)),
        "summary_record" => text(&summary?.record),
        "summary_type" => text(&summary?.r#type),
        "summary_start_time" => moment(summary?.start_time.as_ref()),
        "summary_end_time" => moment(summary?.end_time.as_ref()),
        "summary_status" => Some(CellValue::Int(summary?.status.into())),
        "summary_outcome" => status(summary?),
        "summary_annotations" => Some(CellValue::Map(&summary?.annotations)),
        other => of_place(parent, other, None),
    };
    Ok(rows.push(&value)?)
}

/// Adds what is stored of a log.
pub(crate) fn of_log(rows: &mut Rows, log: &LogContainer) -> Result<()> {
    let name: LogName = parsed(&log.name)?;
    let (record, result) = (name.record(), name.record().result());
    let source = log.source.clone().unwrap_or_default();
    let text = |text: &'_ str| (!text.is_empty()).then(|| CellValue::Text(text.to_owned().into()));
    let digest = match log.sha256.as_slice() {
        [] => None,
        bytes => Some(<[u8; 32]>::try_from(bytes).map_err(|_other| {
            let why = format!("a digest of {} bytes, want 32", bytes.len());
            unclear(&format!("`{}`", log.name), why)
        })?),
    };
    let value = |column: &Column| match column.info.name {
        "parent" => text(result.parent().as_str()),
        "result_id" => text(result.id()),
        "record_id" => text(record.id()),
        "cluster_id" => text(result.parent().cluster()?),
        "pod" => text(&source.pod),
        "container" => text(&source.container),
        "restart" => Some(CellValue::Int(source.restart.into())),
        "lines" => Some(CellValue::Int(log.lines)),
        "bytes" => Some(CellValue::Int(log.bytes)),
        "first_time" => at(log.first_time.as_ref()).map(CellValue::Time),
        "last_time" => at(log.last_time.as_ref()).map(CellValue::Time),
        "is_sealed" => Some(CellValue::Int(log.sealed.into())),
        "holes" => Some(CellValue::Int(log.holes)),
        "sha256" => digest.map(CellValue::Digest),
        other => of_place(result.parent(), other, None),
    };
    Ok(rows.push(&value)?)
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::LogSource;

    use super::*;
    use crate::columns::{HOT, Table};

    fn columns(names: &[&str]) -> Vec<Column> {
        let all = Table::Records.columns().iter();
        all.filter(|column| names.contains(&column.info.name))
            .copied()
            .collect()
    }

    #[test]
    fn payloads_are_read_for_what_they_alone_tell() {
        let needs = |names: &[&str]| {
            let needs = needs(&columns(names));
            (needs.payloads, needs.results)
        };
        assert_eq!(
            needs(&["parent", "type", "create_time", "tier"]),
            (false, false)
        );
        assert_eq!(needs(&["parent", "kind"]), (true, false));
        assert_eq!(needs(&["result_id", "result_uid"]), (false, true));
        assert_eq!(needs(&["summary_type", "payload"]), (true, true));
    }

    #[test]
    fn a_record_has_the_columns_that_its_file_would_have() {
        let payload = br#"{"kind":"TaskRun","metadata":{"name":"a","labels":{"team":"blue"}},
            "status":{"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:05:05Z",
            "conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded"}]}}"#;
        let time = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let record = pb::Record {
            name: "cluster/east/namespace/ci/results/r/records/a".to_owned(),
            uid: "u".to_owned(),
            etag: "u-5000000000".to_owned(),
            create_time: time(4),
            update_time: time(5),
            data: Some(pb::Any {
                r#type: "tekton.dev/v1.TaskRun".to_owned(),
                value: payload.to_vec().into(),
            }),
            ..pb::Record::default()
        };
        let names = [
            "cluster_id",
            "etag",
            "kind",
            "outcome",
            "duration_us",
            "labels",
            "namespace",
            "tier",
        ];
        let mut rows = Rows::new(columns(&names));
        of_record(&mut rows, record, &Results::new(), Some(HOT)).unwrap();
        let batch = rows.finish().unwrap();
        let text = arrow::util::pretty::pretty_format_batches(&[batch]).unwrap();
        let row = text.to_string();
        let row = row.lines().nth(3).unwrap();
        let row: Vec<_> = row.split('|').map(str::trim).collect();
        let wanted = [
            "",
            "",
            "east",
            "TaskRun",
            "SUCCESS",
            "60000000",
            "{team: blue}",
            "ci",
            "hot",
            "",
        ];
        assert_eq!(row, wanted);
    }

    fn log(sealed: bool) -> LogContainer {
        LogContainer {
            name: "cluster/east/namespace/ci/results/r/logs/run".to_owned(),
            source: Some(LogSource {
                pod: "pod".to_owned(),
                container: "step".to_owned(),
                restart: 2,
            }),
            lines: 7,
            bytes: 99,
            first_time: Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 0,
            }),
            sealed,
            sha256: if sealed { vec![0xab; 32] } else { Vec::new() },
            ..LogContainer::default()
        }
    }

    #[test]
    fn a_log_has_a_digest_once_it_is_sealed() {
        let mut rows = Rows::new(Table::Logs.columns().to_vec());
        of_log(&mut rows, &log(true)).unwrap();
        of_log(&mut rows, &log(false)).unwrap();
        let batch = rows.finish().unwrap();
        assert_eq!(batch.schema(), Table::Logs.schema());
        let text = arrow::util::pretty::pretty_format_batches(&[batch]).unwrap();
        let text = text.to_string();
        let row = |at| -> Vec<String> {
            let line = text.lines().nth(at).unwrap().split('|');
            line.map(|cell| cell.trim().to_owned()).collect()
        };
        let (parent, digest) = ("cluster/east/namespace/ci", "ab".repeat(32));
        let wanted = |sealed: &str, digest: &str| {
            let cells = [
                "",
                parent,
                "r",
                "run",
                "east",
                "pod",
                "step",
                "2",
                "7",
                "99",
                "1970-01-01T00:00:01Z",
                "",
                sealed,
                "0",
                digest,
                "ci",
                "",
            ];
            cells.map(str::to_owned).to_vec()
        };
        assert_eq!(row(3), wanted("true", &digest));
        assert_eq!(row(4), wanted("false", ""));
    }

    #[test]
    fn a_digest_of_another_length_is_refused() {
        let mut rows = Rows::new(Table::Logs.columns().to_vec());
        let log = LogContainer {
            sha256: vec![1, 2],
            ..log(true)
        };
        let error = of_log(&mut rows, &log).unwrap_err().to_string();
        assert!(error.contains("a digest of 2 bytes, want 32"), "{error}");
    }
}
