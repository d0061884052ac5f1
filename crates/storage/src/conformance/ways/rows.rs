//! The rows that lists are asked for in all ways.

use serde_json::json;

use crate::conformance::fixtures::{record, time};
use hindsight_filter::model::Record;

/// More than any database calls near.
pub(super) const ROWS: i64 = 12_500;
pub(super) const SECOND: i64 = 1_000_000;
/// Between rows: all are stored within forty days.
pub(super) const STEP: i64 = 555 * SECOND;

/// How long before it was stored row `at` began, where that is not 3,000 seconds: some were stored a month
/// late, and some half a day early.
fn began_before(at: i64) -> i64 {
    match at % 1_000 {
        547 => 4_600 * STEP,
        102 => -100 * STEP,
        _ => 0,
    }
}

/// When row `at` began, as if all were stored at once.
pub(super) fn began(at: i64) -> i64 {
    at / 2 * STEP - began_before(at)
}

/// What ends the names of some rows. Names of rows have the order of their numbers all the same.
fn suffix(at: i64) -> String {
    match at {
        11 => "-röhre \"q\" 'e'%_".to_owned(),
        12 => format!("-{}-needle", "x".repeat(300)),
        14 => "-🚢🚀🚢".to_owned(),
        _ => String::new(),
    }
}

/// Row `at`, of which two were made at each moment.
pub(super) fn row(at: i64) -> Record {
    let made = at / 2 * STEP;
    let (began, ended) = (began(at), began(at) + at % 700 * SECOND);
    let (began, ended) = (time(began - 3_000 * SECOND), time(ended - 3_000 * SECOND));
    let (status, reason) = match at % 40 {
        7 => ("False", "Failed"),
        8 if at < 100 => ("False", "Rare"),
        9 if at < 200 => ("Unknown", "Running"),
        _ => ("True", "Succeeded"),
    };
    let tier = if at % 100 == 47 { "gold" } else { "tin" };
    let era = if at < 400 { "old" } else { "new" };
    let mut labels = json!({"tier": tier, "era": era});
    if at < 40 {
        labels["tekton.dev/pipeline"] = json!("labelled");
    }
    let mut object = json!({
        "metadata": {"name": format!("run-{at}{}", suffix(at)), "labels": labels},
        "spec": {"pipelineRef": {"name": format!("pipeline-{}", at % 50)}},
        "status": {
            "startTime": began.to_string(),
            "completionTime": ended.to_string(),
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
        },
    });
    if at % 40 == 27 {
        // The word for what became of it is in another place.
        object["status"]["phase"] = json!("Failed");
        object["status"]["conditions"][0]["reason"] = json!(null);
    }
    let mut row = record(
        &format!("p{}/results/r/records/{at}", at % 3),
        made,
        &object,
    );
    // Updated in another order.
    row.update_time = time(at * 7_919 % ROWS * SECOND);
    if let (Some(data), true) = (&mut row.data, at < 60) {
        "tekton.dev/v1.CustomRun".clone_into(&mut data.data_type);
    }
    row
}
