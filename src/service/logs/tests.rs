//! What looking at the record of a run takes of the caller.

use std::time::Duration;

use hindsight_access::auth::{Access, Authorizer as _, Credentials, Open};
use hindsight_access::budget::{Budgets, Limits};
use hindsight_filter::model::{ParentPattern, Payload};
use hindsight_runtime::{clock::SystemClock, telemetry::Registry};
use hindsight_storage::{
    resolve::{Opened, Options, Schema, open},
    testing::{Database as _, SqliteFile},
};

use super::*;
use crate::query::{Engine, Tokens};

/// Memory of all callers, of which one may have half.
const MEMORY: usize = 8 << 20;
/// Bytes of a payload that takes all of that.
const LARGE: usize = 3 << 20;
/// How long something is seen to wait.
const WAIT: Duration = Duration::from_millis(200);

/// A service over a database of its own, which goes with the first of these.
async fn fresh() -> (SqliteFile, Opened, Service) {
    let file = SqliteFile::fresh().await;
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(&file.url(), &options).await.unwrap();
    let metrics = LogMetrics::new(&mut Registry::new());
    let homes = LogHomes::new(Vec::new(), Duration::from_secs(1), 1);
    let logs = Arc::clone(&opened.logs);
    let logs = Logs::new(logs, homes, Redaction::default(), metrics);
    let store = Arc::clone(&opened.store);
    let engine = Engine::new(Arc::clone(&store), Tokens::new(b"key"), 1_000, 1 << 20);
    let service = Service::new(store, logs, engine, Arc::new(SystemClock));
    (file, opened, service)
}

async fn grant(verb: Verb, resource: impl Into<Guarded>) -> Grant {
    let access = Access {
        verb,
        resource: resource.into(),
        parent: ParentPattern::Any,
    };
    let nobody = Credentials::default();
    Open.authorize(&nobody, access).await.unwrap()
}

/// Stores a record of the result `ci/results/r`.
async fn given(service: &Service, id: &str, data_type: &str, value: String) -> RecordName {
    let by = RequestContext::default();
    let name: RecordName = format!("ci/results/r/records/{id}").parse().unwrap();
    let may = grant(Verb::Create, Resource::Results).await;
    let result = name.result().clone();
    service.make_result(&by, &may, result).await.unwrap();
    let may = grant(Verb::Create, Resource::Records).await;
    let data = Payload::new(data_type.to_owned(), value.into_bytes().into());
    let created = service.create_record(&by, &may, name.clone(), Some(data));
    created.await.unwrap();
    name
}

async fn waits<T>(work: impl Future<Output = T>) -> bool {
    tokio::time::timeout(WAIT, work).await.is_err()
}

#[tokio::test]
async fn a_large_record_behind_a_log_waits_for_memory_and_turns_and_keeps_neither() {
    let (_file, opened, service) = fresh().await;
    let ones = format!("[{}1]", "1,".repeat(LARGE / 2));
    let record = given(&service, "large", "t", ones).await;
    let log = LogName::from(record.clone());
    let may = grant(Verb::Get, Guarded::Logs).await;
    let may_get = grant(Verb::Get, Resource::Records).await;

    let limits = Limits {
        in_flight: 10,
        per_second: None,
        scan_per_minute: None,
    };
    let clock = Arc::new(SystemClock);
    let budgets = Budgets::new(limits, 1, MEMORY, clock, &mut Registry::new());
    let quota = budgets.enter("ann").unwrap();
    let other = budgets.enter("ann").unwrap();
    let by = RequestContext {
        quota,
        ..RequestContext::default()
    };
    let describe = || service.describe_log(&by, &may, &log, false);

    let mut all = other.expect(usize::MAX).await.unwrap();
    other.was_read(&mut all, MEMORY).unwrap();
    let reading = service.get_record(&by, &may_get, &record);
    assert!(waits(reading).await, "a record waits for memory");
    assert!(waits(describe()).await, "DescribeLog");
    assert!(
        waits(service.log_text(&by, &may, &log)).await,
        "GetLog waits, too"
    );
    let reading = service.read_log(&by, &may, &log, ReadAsk::default());
    assert!(waits(reading).await, "ReadLog waits, too");
    drop(all);

    let turn = other.turn().await;
    assert!(waits(describe()).await, "what is parsed waits for its turn");
    drop(turn);
    let found = describe().await.unwrap();
    assert!(found.sources.is_empty());
    // The call goes on, and the payload is gone.
    assert!(other.expect_more(usize::MAX).is_some());
    drop(by);
    opened.maintenance.close().await;
}

#[tokio::test]
async fn columns_say_whether_a_run_goes_on() {
    let (_file, opened, service) = fresh().await;
    let run = |end: &str| {
        format!(
            r#"{{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {{"name": "a"}},
            "status": {{"startTime": "2026-03-02T09:00:00Z"{end}}}}}"#
        )
    };
    let ended = run(r#", "completionTime": "2026-03-02T09:01:00Z""#);
    let task = "tekton.dev/v1.TaskRun";
    for (id, data_type, value, goes_on) in [
        ("going", task, run(""), true),
        ("ended", task, ended, false),
        ("empty", task, "{}".to_owned(), false),
        ("other", "t", run(""), false),
    ] {
        let name = given(&service, id, data_type, value).await;
        assert_eq!(service.is_going_on(&name).await.unwrap(), goes_on, "{id}");
    }
    let missing: RecordName = "ci/results/r/records/missing".parse().unwrap();
    assert!(!service.is_going_on(&missing).await.unwrap());
    opened.maintenance.close().await;
}
