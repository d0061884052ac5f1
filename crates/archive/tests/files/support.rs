//! Rows like those of a server, and files of them in memory, to be read back.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use bytes::Bytes;
use hindsight_archive::{Limits, Reader, Row, Tally, Writer};
use hindsight_filter::condition::{Column, Condition, Is, Test, Value};
use hindsight_filter::model::{Etag, Payload, Record, ResultName, RunResult};
use jiff::{Timestamp, ToSpan as _};
use serde_json::json;

pub(crate) fn time(us: i64) -> Timestamp {
    Timestamp::from_microsecond(1_767_225_600_000_000 + us).unwrap()
}

/// A file of these rows, with so many of them in a row group.
pub(crate) fn written(rows: &[Row], rows_of_a_group: usize) -> (Bytes, Tally) {
    let limits = Limits {
        rows: rows_of_a_group,
        ..Limits::default()
    };
    let mut writer = Writer::new(Vec::new(), limits).unwrap();
    for row in rows {
        writer.push(row.clone()).unwrap();
    }
    let (file, tally) = writer.finish().unwrap();
    (file.into(), tally)
}

/// All rows of a file, in the order of their names.
pub(crate) fn read(file: &Bytes) -> Vec<Row> {
    let reader = Reader::open(file.clone()).unwrap();
    let groups = (0..reader.groups()).flat_map(|group| reader.group(group).unwrap());
    let mut rows: Vec<Row> = groups.collect();
    rows.sort_by_key(|row| row.record.name.to_string());
    rows
}

/// Asks for a text.
pub(crate) fn is(column: Column, text: &str) -> Condition {
    Condition::Test(Test {
        column,
        is: Is::Equal(Value::Text(text.to_owned())),
        negated: false,
    })
}

/// Asks for a time of storing from the first up to but without the second.
pub(crate) fn stored(range: Range<Timestamp>) -> Condition {
    let test = |is| {
        Condition::Test(Test {
            column: Column::CreateTime,
            is,
            negated: false,
        })
    };
    Condition::And(vec![
        test(Is::AtLeast(Value::Time(range.start))),
        test(Is::Less(Value::Time(range.end))),
    ])
}

/// Runs of a PipelineRun and two TaskRuns, one an hour, each with a payload of some 4 KB.
pub(crate) fn runs(count: i64) -> Vec<Row> {
    (0..count).flat_map(run).collect()
}

fn run(number: i64) -> Vec<Row> {
    let made = time(number * 3_600_000_000);
    let name: ResultName = format!("shop/results/run-{number:05}").parse().unwrap();
    let result = Arc::new(RunResult {
        uid: format!("result-{number:05}"),
        etag: Etag::new(&format!("result-{number:05}"), made),
        create_time: made,
        update_time: made,
        annotations: BTreeMap::from([("repo".to_owned(), "org/shop".to_owned())]),
        summary: None,
        name,
    });
    let row = |part: i64| {
        let uid = format!("uid-{number:05}-{part}");
        let made = made + part.seconds();
        let kind = if part == 0 { "PipelineRun" } else { "TaskRun" };
        let object = json!({"kind": kind, "metadata": {"name": format!("run-{number}-{part}"),
                "namespace": "shop", "uid": uid, "labels": {"team": format!("team-{}", number % 10),
                    "tekton.dev/pipeline": format!("pipeline-{}", number % 3)}},
            "spec": {"noise": noise(number * 3 + part)},
            "status": {"startTime": made.to_string(), "completionTime": (made + 90.seconds()).to_string(),
                "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]}});
        let record = Record {
            name: result.name.record(&uid).unwrap(),
            etag: Etag::new(&uid, made),
            create_time: made,
            update_time: made,
            data: Some(Payload::new(
                format!("tekton.dev/v1.{kind}"),
                object.to_string().into(),
            )),
            uid,
        };
        Row {
            record,
            result: Arc::clone(&result),
            stored: None,
        }
    };
    (0..3).map(row).collect()
}

/// Text that does not compress well.
fn noise(seed: i64) -> String {
    let mut state = seed.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < 4000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    text
}
