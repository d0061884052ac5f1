//! How long answers live, how many, and how often a question is asked.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::*;
use crate::auth::metrics::Metrics;
use hindsight_runtime::clock::ManualClock;
use hindsight_runtime::telemetry::Registry;

const KEEP: CachePolicy = CachePolicy {
    allowed: Duration::from_secs(10),
    denied: Duration::from_secs(5),
    most: 4,
};

struct Bench {
    clock: Arc<ManualClock>,
    cache: Cache<u8>,
    asked: Arc<AtomicUsize>,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
        Self {
            cache: Cache::new(
                Arc::clone(&clock) as Arc<dyn Clock>,
                KEEP,
                Counts::default(),
            ),
            clock,
            asked: Arc::default(),
        }
    }

    /// Asks under `key`; the truth, if it is asked for, is `truth`.
    async fn ask(&self, key: u8, truth: Answer<u8>) -> Answer<u8> {
        let asked = Arc::clone(&self.asked);
        let question = || async move {
            asked.fetch_add(1, Ordering::SeqCst);
            truth
        };
        self.cache.ask([key; 32], question).await
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn away() -> Answer<u8> {
    Err(Error::Unavailable {
        source: Arc::new(fmt::Error),
    })
}

#[tokio::test]
async fn yes_lives_longer_than_no_and_both_end() {
    let bench = Bench::new();
    assert_eq!(bench.ask(1, Ok(Some(7))).await.unwrap(), Some(7));
    assert_eq!(bench.ask(2, Ok(None)).await.unwrap(), None);
    bench.clock.advance(Duration::from_micros(4_999_999));
    assert_eq!(bench.ask(1, Ok(None)).await.unwrap(), Some(7));
    assert_eq!(bench.ask(2, Ok(Some(7))).await.unwrap(), None);
    bench.clock.advance(Duration::from_micros(1));
    assert_eq!(bench.ask(1, Ok(None)).await.unwrap(), Some(7));
    assert_eq!(bench.ask(2, Ok(Some(8))).await.unwrap(), Some(8));
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(bench.ask(1, Ok(None)).await.unwrap(), None);
    assert_eq!(bench.asked(), 4);
}

#[tokio::test]
async fn where_answers_come_from_and_how_many_are_held_is_counted() {
    let mut registry = Registry::new();
    let counts = Metrics::new(&mut registry).of("tokens");
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let cache: Cache<u8> = Cache::new(clock, KEEP, counts);
    let (tell, told) = oneshot::channel();
    let asking = cache.ask([1; 32], || async move { told.await.unwrap() });
    let beside = cache.ask([1; 32], || async { away() });
    let (first, second, ()) = tokio::join!(asking, beside, async {
        tell.send(Ok(Some(7))).unwrap();
    });
    assert_eq!((first.unwrap(), second.unwrap()), (Some(7), Some(7)));
    for (key, truth) in [(1, None), (1, None), (2, None), (3, None), (2, None)] {
        let answer = cache.ask([key; 32], || async move { Ok(truth) }).await;
        answer.unwrap();
    }
    let page = registry.render();
    for line in [
        "auth_cache_answers_total{cache=\"tokens\",answer=\"miss\"} 3",
        "auth_cache_answers_total{cache=\"tokens\",answer=\"shared\"} 1",
        "auth_cache_answers_total{cache=\"tokens\",answer=\"hit\"} 3",
        "auth_cache_entries{cache=\"tokens\",says=\"yes\"} 1",
        "auth_cache_entries{cache=\"tokens\",says=\"no\"} 2",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_nothing_alive() {
    let bench = Bench::new();
    assert_eq!(bench.ask(1, Ok(Some(7))).await.unwrap(), Some(7));
    bench.clock.set("2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(bench.ask(1, Ok(None)).await.unwrap(), None);
}

#[tokio::test]
async fn a_missing_answer_is_not_remembered() {
    let bench = Bench::new();
    assert!(bench.ask(1, away()).await.is_err());
    assert_eq!(bench.ask(1, Ok(Some(7))).await.unwrap(), Some(7));
}

#[tokio::test]
async fn a_flood_of_refusals_pushes_out_refusals_alone() {
    let bench = Bench::new();
    assert_eq!(bench.ask(0, Ok(Some(7))).await.unwrap(), Some(7));
    for key in 1..=100 {
        assert_eq!(bench.ask(key, Ok(None)).await.unwrap(), None);
    }
    assert_eq!(bench.ask(0, Ok(None)).await.unwrap(), Some(7));
    assert_eq!(bench.asked(), 101);
    let held = format!("{:?}", bench.cache);
    assert!(held.contains("allowed: 1, denied: 4, pending: 0"), "{held}");
}

#[tokio::test]
async fn what_is_put_again_outlives_what_it_replaced() {
    let bench = Bench::new();
    assert!(bench.ask(1, Ok(Some(1))).await.is_ok());
    bench.clock.advance(Duration::from_secs(10));
    assert!(bench.ask(1, Ok(Some(2))).await.is_ok());
    for key in 2..=4 {
        assert!(bench.ask(key, Ok(Some(key))).await.is_ok());
    }
    assert_eq!(bench.ask(1, away()).await.unwrap(), Some(2));
}

#[tokio::test]
async fn many_who_ask_at_once_wait_for_one_answer_even_if_the_first_goes_away() {
    let bench = Bench::new();
    let (tell, told) = oneshot::channel::<()>();
    let asked = Arc::clone(&bench.asked);
    let mut first = Box::pin(bench.cache.ask([1; 32], || async move {
        asked.fetch_add(1, Ordering::SeqCst);
        told.await.unwrap();
        Ok(Some(7))
    }));
    assert!((&mut first).now_or_never().is_none());
    let others: Vec<_> = (0..50)
        .map(|_| {
            let mut other = Box::pin(bench.ask(1, Ok(None)));
            assert!((&mut other).now_or_never().is_none());
            other
        })
        .collect();
    drop(first);
    tell.send(()).unwrap();
    for answer in futures::future::join_all(others).await {
        assert_eq!(answer.unwrap(), Some(7));
    }
    assert_eq!(bench.asked(), 1);
}

#[test]
fn parts_that_join_to_the_same_text_have_different_digests() {
    let digests = [
        digest([b"ab".as_slice(), b"c"]),
        digest([b"a".as_slice(), b"bc"]),
        digest([b"abc".as_slice()]),
        digest([b"abc".as_slice(), b""]),
    ];
    for (position, one) in digests.iter().enumerate() {
        assert!(!digests[position + 1..].contains(one));
    }
}
