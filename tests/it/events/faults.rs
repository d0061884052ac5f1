//! Receivers that fail, hang, reset, are slow, refuse, or ask to wait.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{File, metrics, nothing_is_missed, played, sends};
use crate::support::{
    Database, TestServer, each_database,
    receiver::{Act, Receiver},
};

const RUNS: usize = 40;
/// How often at most a receiver fails at one event: pauses double with each failure.
const MOST_FAILURES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_whatever_a_receiver_does() {
    for database in each_database().await {
        let tries = Mutex::new(HashMap::<String, usize>::new());
        let receiver = Receiver::start(move |number, got| {
            let mut tries = tries.lock().unwrap();
            let tries = tries.entry(got.id().to_owned()).or_default();
            *tries += 1;
            match number % 9 {
                _ if *tries > MOST_FAILURES => Act::status(202),
                0 => Act::status(500),
                2 => Act::Hang,
                3 => Act::Reset,
                5 => Act::Slow(Duration::from_millis(100)),
                6 => Act::Answer(503, vec![("retry-after", "0".to_owned())]),
                7 => Act::status(429),
                _ => Act::status(202),
            }
        })
        .await;
        let more = "timeout = '300ms'\nconcurrency = 8";
        let file = File::of(&[("one", &receiver.url(), more)]);
        let path = file.path();
        let server = TestServer::start_with(&database, &[("events_file", path.as_str())]).await;
        sends(&server, "one").await;
        let names: BTreeSet<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
        for name in &names {
            played(&server, name).await;
        }
        let taken = receiver.until_taken(2 * RUNS).await;
        nothing_is_missed(&taken, &names);
        let text = metrics(&server).await;
        assert!(
            text.contains("hindsight_events_skipped_total{receiver=\"one\"} 0"),
            "{text}"
        );
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn what_a_receiver_will_never_take_is_skipped() {
    let database = Database::sqlite();
    let receiver = Receiver::start(|_, got| match (got.run(), got.moment()) {
        ("refused", "started") => Act::status(413),
        ("poison", "finished") => Act::status(500),
        _ => Act::status(204),
    })
    .await;
    let stubborn = Receiver::start(|number, _| match number {
        0..3 => Act::status(400),
        _ => Act::status(204),
    })
    .await;
    let file = File::of(&[
        ("one", &receiver.url(), "skip_after = '700ms'"),
        ("stubborn", &stubborn.url(), "skip_after = 'never'"),
    ]);
    let path = file.path();
    let more = [("events_file", path.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    sends(&server, "one").await;
    sends(&server, "stubborn").await;
    for name in ["refused", "poison", "good"] {
        played(&server, name).await;
    }
    receiver.until_taken(4).await;
    let all = receiver
        .until(|all| all.iter().filter(|got| got.run() == "poison").count() > 2)
        .await;
    let tries = |name: &str, moment: &str| {
        let tries = all
            .iter()
            .filter(|got| (got.run(), got.moment()) == (name, moment));
        tries.count()
    };
    assert_eq!(tries("refused", "started"), 1);
    assert!(tries("poison", "finished") > 1);
    assert_eq!(
        stubborn.until_taken(6).await.len(),
        6,
        "it is tried for ever"
    );
    loop {
        let text = metrics(&server).await;
        if text.contains("hindsight_events_skipped_total{receiver=\"one\"} 2") {
            assert!(text.contains("hindsight_events_skipped_total{receiver=\"stubborn\"} 0"));
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It does not come again after a restart.
    let before = receiver.all().len();
    server.stop().await;
    let server = TestServer::start_with(&database, &more).await;
    played(&server, "last").await;
    receiver.until_taken(6).await;
    assert_eq!(receiver.all().len(), before + 2);
    server.stop().await;
}

#[tokio::test]
async fn a_receiver_that_was_away_gets_what_happened_meanwhile() {
    for database in each_database().await {
        let first = Receiver::start(|_, _| Act::status(202)).await;
        let (address, url) = (first.address, first.url());
        let file = File::of(&[("one", &url, "")]);
        let path = file.path();
        let more = [("events_file", path.as_str())];
        let server = TestServer::start_with(&database, &more).await;
        let is_there = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_there);
        sends(&server, "one").await;
        drop(first);
        let names: BTreeSet<_> = (0..10).map(|number| format!("run-{number}")).collect();
        for name in &names {
            played(&server, name).await;
        }
        // The server changes as well.
        server.stop().await;
        let server = TestServer::start_with(&database, &more).await;
        let again = loop {
            // The port is free once the last connection of the one before is closed.
            if let Ok(free) = tokio::net::TcpListener::bind(address).await {
                drop(free);
                break Receiver::at(address, None, move |_, _| {
                    match told.load(Ordering::SeqCst) {
                        true => Act::status(202),
                        false => Act::status(503),
                    }
                })
                .await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        again.until(|all| !all.is_empty()).await;
        is_there.store(true, Ordering::SeqCst);
        again
            .until(|all| {
                let runs = all
                    .iter()
                    .filter(|got| got.taken && got.moment() == "finished");
                runs.map(|got| got.run().to_owned())
                    .collect::<BTreeSet<_>>()
                    .len()
                    == names.len()
            })
            .await;
        let taken = again.taken();
        let of_runs: Vec<_> = taken
            .into_iter()
            .filter(|got| got.run().starts_with("run-"))
            .collect();
        nothing_is_missed(&of_runs, &names);
        server.stop().await;
        database.remove().await;
    }
}
