//! Reads that others give up, and go on.

use futures::FutureExt as _;
use hindsight_filter::model::RunResult;
use hindsight_logs::{Redaction, ends};
use hindsight_runtime::{clock::SystemClock, telemetry::Registry};
use hindsight_storage::{
    Batch, Change, LogAppend, LogKey,
    resolve::{Options, Schema, open},
    testing::{Database as _, SqliteFile},
};
use jiff::Timestamp;

use super::*;
use crate::query::{Engine, Tokens};
use crate::service::{LogHomes, LogMetrics, Logs};

const PARTS: i64 = 6;
const LINES: i64 = 20_000;

/// Lines of one chunk and more.
fn part(number: i64) -> Lines {
    let first = number * LINES;
    let line = |at| format!("line {at} {}\n", "x".repeat(60)).into_bytes();
    let text: Vec<u8> = (first..first + LINES).flat_map(line).collect();
    let times = (first..first + LINES).collect();
    assert_eq!(ends(&text).count(), 20_000);
    Lines::new(first, text.into(), times, Vec::new()).unwrap()
}

#[tokio::test]
async fn a_read_whose_wait_was_given_up_goes_on_where_it_was() {
    let file = SqliteFile::fresh().await;
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(&file.url(), &options).await.unwrap();
    let run: RecordName = "p/results/r/records/run".parse().unwrap();
    let result = RunResult {
        name: run.result().clone(),
        uid: "uid".to_owned(),
        etag: hindsight_filter::model::Etag::new("uid", Timestamp::UNIX_EPOCH),
        create_time: Timestamp::UNIX_EPOCH,
        update_time: Timestamp::UNIX_EPOCH,
        annotations: std::collections::BTreeMap::default(),
        summary: None,
    };
    let batch = Batch::from(Change::InsertResult(result));
    opened.store.commit(&batch).await.unwrap();
    let key = LogKey {
        run: run.clone(),
        kind: LogKind::Container,
        source: LogSource::default(),
    };
    let parts = (0..PARTS).map(part).collect();
    let append = [LogAppend { key, parts }];
    let stored = opened.logs.append_logs(&append, Timestamp::UNIX_EPOCH);
    let stored = stored.await.pop().unwrap().unwrap();
    let metrics = LogMetrics::new(&mut Registry::new());
    let homes = LogHomes::new(Vec::new(), Duration::from_secs(1), 1);
    let logs = Logs::new(
        Arc::clone(&opened.logs),
        homes,
        Redaction::default(),
        metrics,
    );
    let engine = Engine::new(
        Arc::clone(&opened.store),
        Tokens::new(b"key"),
        1_000,
        1 << 20,
    );
    let service = Service::new(opened.store, logs, engine, Arc::new(SystemClock));
    let mut reading = LogReading {
        waker: service.logs.waker(&run),
        place: Place::Stored(Arc::clone(&opened.logs)),
        service,
        run,
        ask: ReadAsk::default(),
        left: u64::MAX,
        open: Vec::new(),
        at: 0,
        ready: VecDeque::new(),
    };
    reading.take(vec![stored], 0).await.unwrap();
    let (mut next, mut given_up) = (0, 0);
    loop {
        // A wait that is polled once and dropped, as by a timer that fires.
        let piece = match reading.next().now_or_never() {
            Some(piece) => piece.unwrap(),
            None => {
                given_up += 1;
                reading.next().await.unwrap()
            }
        };
        let Some((_, lines)) = piece else { break };
        assert_eq!(
            lines.first, next,
            "no line is missing, and none comes twice"
        );
        next = lines.end();
    }
    assert_eq!(next, PARTS * LINES);
    assert!(given_up > 0, "no wait was given up");
    opened.maintenance.close().await;
}
