//! What the store must look like afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hindsight_proto::v1alpha2 as pb;
use hindsight_run::View;
use jiff::Timestamp;
use kubesim::Finished;
use serde_json::Value;

use super::blows::Stage;

/// When the record was made. Only ends are stored, so that was an end already.
fn made(record: &pb::Record) -> Timestamp {
    let at = record.create_time.unwrap();
    Timestamp::new(at.seconds, at.nanos).unwrap()
}

/// The object of a record.
pub fn object(record: &pb::Record) -> Value {
    serde_json::from_slice(&record.data.as_ref().unwrap().value).unwrap()
}

/// Nothing is missing, unfinished or doubled, and nothing was collected before it was stored.
pub fn all(stage: &Stage, finished: &[Finished], records: &[pb::Record]) {
    let wanted: BTreeMap<&str, &Finished> =
        finished.iter().map(|run| (run.uid.as_str(), run)).collect();
    // Of the watcher; what others delete is no call.
    let calls = stage.sim.calls().verb("delete").status(200);
    let mut deletes: HashMap<(&str, &str), Timestamp> = HashMap::new();
    for call in calls.all() {
        deletes
            .entry((&call.namespace, &call.name))
            .or_insert(call.at);
    }
    let (mut seen, mut unfinished, mut doubled, mut unproven) =
        (BTreeSet::new(), Vec::new(), Vec::new(), Vec::new());
    let mut compared = 0;
    for record in records {
        let object = object(record);
        let view = View::new(&object);
        let uid = view.uid().unwrap().to_owned();
        assert!(record.name.ends_with(&uid), "{} holds {uid}", record.name);
        assert!(wanted.contains_key(uid.as_str()), "{uid} was not played");
        if !view.finish().done {
            unfinished.push(record.name.clone());
        }
        let name = (view.namespace().unwrap(), view.name().unwrap());
        if let Some(deleted) = deletes.get(&name) {
            compared += 1;
            if made(record) > *deleted {
                unproven.push(record.name.clone());
            }
        }
        if !seen.insert(uid) {
            doubled.push(record.name.clone());
        }
    }
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(uid, _)| !seen.contains(**uid))
        .collect();
    eprintln!(
        "{} ended, {} stored: {} missing, {} unfinished, {} doubled, {} of {compared} collected \
         before they were stored",
        wanted.len(),
        records.len(),
        missing.len(),
        unfinished.len(),
        doubled.len(),
        unproven.len(),
    );
    let log = || stage.scene.log();
    assert!(missing.is_empty(), "missing: {missing:#?}\n{}", log());
    assert!(unfinished.is_empty(), "unfinished: {unfinished:?}");
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
    assert!(unproven.is_empty(), "unproven: {unproven:?}");
    assert!(compared > 0, "something was collected");
}

/// Seconds from the end of a run until it is durable, of all but the slowest hundredth.
pub fn latency(finished: &[Finished], records: &[pb::Record]) -> f64 {
    let ended: HashMap<&str, Timestamp> = finished
        .iter()
        .map(|run| (run.uid.as_str(), run.at))
        .collect();
    let mut all: Vec<f64> = records
        .iter()
        .map(|record| {
            let object = object(record);
            let uid = View::new(&object).uid().unwrap();
            // The account is made a moment after the end.
            made(record)
                .duration_since(ended[uid])
                .as_secs_f64()
                .max(0.0)
        })
        .collect();
    assert_eq!(all.len(), finished.len(), "all are stored");
    all.sort_by(f64::total_cmp);
    let (median, p99) = (all[all.len() / 2], all[all.len() * 99 / 100]);
    eprintln!(
        "calm: {} ends durable after {median:.3} s (median), {p99:.3} s (p99)",
        all.len()
    );
    p99
}
