//! Who is refused, when they may come again, and whose turn it is.

use futures::FutureExt as _;

use super::*;
use hindsight_runtime::clock::ManualClock;

fn budgets(limits: Limits, slots: usize) -> (Budgets, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let own: Arc<dyn Clock> = Arc::clone(&clock) as _;
    (
        Budgets::new(limits, slots, 1 << 20, own, &mut Registry::new()),
        clock,
    )
}

const NONE: Limits = Limits {
    in_flight: 1000,
    per_second: None,
    scan_per_minute: None,
};

#[test]
fn requests_in_flight_are_counted_for_each_caller_until_they_end() {
    let (budgets, _) = budgets(
        Limits {
            in_flight: 2,
            ..NONE
        },
        1,
    );
    let first = budgets.enter("ann").unwrap();
    let second = budgets.enter("ann").unwrap();
    assert_eq!(
        budgets.enter("ann").unwrap_err(),
        QuotaExceeded::InFlight { limit: 2 }
    );
    assert!(budgets.enter("bob").is_ok());
    drop(first.clone());
    assert!(budgets.enter("ann").is_err(), "a clone is the same request");
    drop(first);
    assert!(budgets.enter("ann").is_ok());
    drop(second);
    for _ in 0..5 {
        std::mem::forget(budgets.enter("").unwrap());
    }
}

#[tokio::test]
async fn an_upsert_waits_until_another_request_of_its_caller_is_over() {
    let (budgets, _) = budgets(
        Limits {
            in_flight: 1,
            ..NONE
        },
        1,
    );
    let first = budgets.enter("ann").unwrap();
    let mut second = Box::pin(budgets.enter_in_turn("ann"));
    assert!(second.now_or_never_again().is_none());
    assert!(budgets.enter_in_turn("bob").now_or_never().is_some());
    drop(first);
    assert!(second.now_or_never_again().is_some());
}

#[tokio::test]
async fn a_request_counts_from_its_head_to_the_end_of_its_answer() {
    let (budgets, _) = budgets(
        Limits {
            in_flight: 1,
            ..NONE
        },
        1,
    );
    let arrival = budgets.arrive("ann", 100).unwrap();
    assert_eq!(
        budgets.arrive("ann", 100).unwrap_err(),
        QuotaExceeded::InFlight { limit: 1 }
    );
    let quota = budgets.enter("ann").unwrap();
    arrival.hold_quota(&quota);
    drop(quota);
    assert!(budgets.enter("ann").is_err(), "the answer is on its way");
    let again = arrival.clone();
    drop(arrival);
    assert!(budgets.enter("ann").is_err());
    drop(again);
    assert!(budgets.enter("ann").is_ok() && budgets.arrive("ann", 100).is_ok());
}

#[tokio::test]
async fn a_large_head_takes_memory_too() {
    let (budgets, _) = budgets(NONE, 1);
    let large = budgets.arrive("ann", 200 << 10).unwrap();
    let refused = budgets.arrive("ann", 200 << 10).unwrap_err();
    assert_eq!(refused, QuotaExceeded::Memory);
    assert_eq!(refused.retry_after(), Some(SOON));
    assert!(budgets.arrive("bob", 200 << 10).is_ok());
    drop(large);
    assert!(budgets.arrive("ann", 200 << 10).is_ok());
}

#[tokio::test]
async fn a_caller_has_a_limited_number_of_streams() {
    let (budgets, _) = budgets(NONE, 1);
    let arrival = budgets.arrive("ann", 1).unwrap();
    let mut open: Vec<_> = (0..32).map(|_| arrival.streams().unwrap()).collect();
    assert_eq!(
        arrival.streams().unwrap_err(),
        QuotaExceeded::Streams { limit: 32 }
    );
    open.pop();
    arrival.streams().unwrap();
}

#[test]
fn a_rate_comes_back_with_time() {
    let (budgets, clock) = budgets(
        Limits {
            per_second: Some(2),
            ..NONE
        },
        1,
    );
    assert!(budgets.enter("ann").is_ok());
    assert!(budgets.enter("ann").is_ok());
    let exceeded = budgets.enter("ann").unwrap_err();
    assert_eq!(
        exceeded,
        QuotaExceeded::Rate {
            limit: 2,
            after: Duration::from_millis(500)
        }
    );
    assert_eq!(exceeded.retry_after(), Some(Duration::from_millis(500)));
    assert!(budgets.enter("bob").is_ok());
    clock.advance(Duration::from_millis(499));
    assert!(budgets.enter("ann").is_err());
    clock.advance(Duration::from_millis(1));
    assert!(budgets.enter("ann").is_ok());
    clock.advance(Duration::from_hours(1));
    let lasts = (0..9).take_while(|_| budgets.enter("ann").is_ok()).count();
    assert_eq!(lasts, 2, "what is not used is not saved up");
}

#[test]
fn records_that_were_read_are_paid_for_until_none_are_left() {
    let (budgets, clock) = budgets(
        Limits {
            scan_per_minute: Some(600),
            ..NONE
        },
        1,
    );
    let quota = budgets.enter("ann").unwrap();
    quota.scanned(500).unwrap();
    quota.scanned(400).unwrap();
    let exceeded = quota.scanned(1).unwrap_err();
    assert_eq!(
        exceeded,
        QuotaExceeded::Scan {
            limit: 600,
            after: Duration::from_millis(30_100)
        }
    );
    clock.advance(Duration::from_secs(31));
    quota.scanned(1).unwrap();
    budgets.set(NONE);
    quota.scanned(1_000_000).unwrap();
    budgets.enter("").unwrap().scanned(1_000_000).unwrap();
    QuotaGuard::default().scanned(1).unwrap();
}

#[tokio::test]
async fn callers_take_turns_however_many_requests_they_have() {
    let (budgets, _) = budgets(NONE, 1);
    let heavy = budgets.enter("heavy").unwrap();
    let light = budgets.enter("light").unwrap();
    let turn = heavy.turn().await;
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(heavy.turn())).collect();
    for wait in &mut waiting {
        assert!(wait.now_or_never_again().is_none());
    }
    let mut single = Box::pin(light.turn());
    assert!(single.now_or_never_again().is_none());
    drop(turn);
    let turn = waiting[0]
        .now_or_never_again()
        .expect("who came first is first");
    assert!(single.now_or_never_again().is_none());
    drop(turn);
    let turn = single.now_or_never_again().expect("then the other caller");
    drop(waiting.remove(1));
    drop(turn);
    let turn = waiting[1]
        .now_or_never_again()
        .expect("who left is passed over");
    drop(turn);
    assert!(budgets.enter("").unwrap().turn().now_or_never().is_some());
}

trait Again: Future + Unpin {
    /// What it gives now, if anything.
    fn now_or_never_again(&mut self) -> Option<Self::Output> {
        self.now_or_never()
    }
}

impl<F: Future + Unpin> Again for F {}

#[tokio::test]
async fn memory_of_a_part_is_given_back_before_the_request_ends() {
    let (budgets, _) = budgets(NONE, 1);
    let request = budgets.enter("ann").unwrap();
    for _ in 0..3 {
        let part = request.part();
        let mut held = part.expect(0).await.unwrap();
        assert!(part.holds(&mut held, 128 << 10));
        part.keep(held);
    }
    let mut held = request.expect(0).await.unwrap();
    assert!(request.holds(&mut held, 128 << 10));
    request.keep(held);
    let mut more = request.expect(0).await.unwrap();
    assert!(!request.holds(&mut more, 200 << 10));
}
