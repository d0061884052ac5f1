//! What is read is what was written.

use std::{collections::BTreeMap, sync::Arc};

use hindsight_archive::{Partition, Reader, Row, Stored};
use hindsight_filter::model::{Etag, Payload, Record, ResultName, RunResult, Summary};
use jiff::Timestamp;
use proptest::{collection::btree_map, option, prelude::*};

use crate::support::{read, runs, written};

fn times() -> impl Strategy<Value = Timestamp> {
    let seconds = Timestamp::MIN.as_second()..Timestamp::MAX.as_second();
    (seconds, 0..1_000_000_i64)
        .prop_map(|(seconds, us)| Timestamp::from_microsecond(seconds * 1_000_000 + us).unwrap())
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z0-9-]{1,20}",
        "\\PC{0,40}",
        Just("a\0b".to_owned())
    ]
}

fn pairs() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(texts(), texts(), 0..4)
}

fn etag(odd: Option<String>, uid: &str, updated: Timestamp) -> Etag {
    odd.map_or_else(|| Etag::new(uid, updated), Etag::from_text)
}

fn payloads() -> impl Strategy<Value = Payload> {
    let objects = (pairs(), texts(), option::of(texts())).prop_map(|(labels, text, name)| {
        let object = serde_json::json!({"kind": text, "metadata": {"labels": labels, "name": name,
            "creationTimestamp": text, "uid": text}, "status": {"startTime": "soon"}});
        object.to_string().into_bytes()
    });
    let values = prop_oneof![
        4 => objects,
        2 => prop::collection::vec(any::<u8>(), 0..300),
        1 => Just(b"{\"metadata\":{\"labels\":{}}}".to_vec()),
    ];
    let types = prop_oneof![texts(), Just("tekton.dev/v1.TaskRun".to_owned())];
    (types, values).prop_map(|(data_type, value)| Payload::new(data_type, value.into()))
}

prop_compose! {
    fn results()(
        parent in prop_oneof![Just("shop"), Just("cluster/east/namespace/shop"), Just("other")],
        id in "[a-z0-9]{1,12}", uid in texts(), odd in option::of(texts()), create_time in times(),
        update_time in times(), annotations in pairs(),
        summary in option::of((texts(), option::of(times()), option::of(times()), any::<i32>(), pairs())),
    ) -> RunResult {
        let name: ResultName = format!("{parent}/results/{id}").parse().unwrap();
        let summary = summary.map(|(data_type, start_time, end_time, status, annotations)| Summary {
            record: name.record("summed-up").unwrap(), data_type, start_time, end_time, status, annotations,
        });
        let etag = etag(odd, &uid, update_time);
        RunResult { name, uid, etag, create_time, update_time, annotations, summary }
    }
}

type Parts = (
    String,
    Option<String>,
    Timestamp,
    Timestamp,
    Option<Payload>,
);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let parts = (
        texts(),
        option::of(texts()),
        times(),
        times(),
        option::of(payloads()),
    );
    let runs = prop::collection::vec((results(), prop::collection::vec(parts, 1..6)), 0..8);
    runs.prop_map(|runs| {
        let mut rows = Vec::new();
        for (number, (mut result, parts)) in runs.into_iter().enumerate() {
            // Names are given once.
            let parent = result.name.parent().clone();
            result.name = format!("{parent}/results/{}-{number}", result.name.id())
                .parse()
                .unwrap();
            let result = Arc::new(result);
            rows.extend(
                parts
                    .into_iter()
                    .enumerate()
                    .map(|(at, parts)| row(&result, at, parts)),
            );
        }
        rows
    })
}

fn row(result: &Arc<RunResult>, at: usize, parts: Parts) -> Row {
    let (uid, odd, create_time, update_time, data) = parts;
    let record = Record {
        name: result.name.record(&format!("record-{at}")).unwrap(),
        etag: etag(odd, &uid, update_time),
        uid,
        create_time,
        update_time,
        data,
    };
    let stored = at.is_multiple_of(2).then(|| Stored {
        number: i64::try_from(at).unwrap() * 1_000_000_007,
        signature: at.is_multiple_of(3).then(|| "0123456789abcdef".to_owned()),
        message: at
            .is_multiple_of(5)
            .then(|| "the node ran out of memory".to_owned()),
    });
    Row {
        record,
        result: Arc::clone(result),
        stored,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_are_read_as_they_were_written(mut rows in rows(), rows_of_a_group in 1..12_usize) {
        let (file, tally) = written(&rows, rows_of_a_group);
        rows.sort_by_key(|row| row.record.name.to_string());
        prop_assert_eq!(read(&file), rows);
        prop_assert_eq!(Reader::open(file).unwrap().verify().unwrap(), tally);
    }
}

#[test]
fn a_payload_of_a_mebibyte_is_one_of_many() {
    let mut rows = runs(3);
    let noise: Vec<u8> = (0..1_u32 << 20)
        .map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    for row in rows.iter_mut().step_by(2) {
        row.record.data.as_mut().unwrap().value = noise.clone().into();
    }
    let (file, _) = written(&rows, 100);
    rows.sort_by_key(|row| row.record.name.to_string());
    assert!(read(&file) == rows);
}

#[test]
fn a_tally_tells_rows_apart() {
    let rows = runs(2);
    let (_, tally) = written(&rows, 100);
    let mut turned = rows.clone();
    turned.reverse();
    assert_eq!(written(&turned, 2).1, tally);
    turned[3].record.etag = Etag::from_text("other");
    assert_ne!(written(&turned, 100).1, tally);
    assert_ne!(written(&rows[1..], 100).1, tally);
}

#[test]
fn a_partition_is_a_directory_of_hive() {
    let mut result = RunResult::clone(&runs(1)[0].result);
    let path = |result: &RunResult| Partition::of(result).to_string();
    assert_eq!(
        path(&result),
        "cluster=__HIVE_DEFAULT_PARTITION__/namespace=shop/date=2026-01-01"
    );
    result.name = "cluster/a~b/namespace/shop/results/x".parse().unwrap();
    result.create_time = "2026-01-02T23:59:59-02:00".parse().unwrap();
    assert_eq!(
        path(&result),
        "cluster=a%7Eb/namespace=shop/date=2026-01-03"
    );
}
