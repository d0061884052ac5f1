//! Who is refused, when they may come again, and whose turn it is.

use futures::FutureExt as _;

use super::*;
use crate::clock::ManualClock;

fn budgets(limits: Limits, slots: usize) -> (Budgets, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let own: Arc<dyn Clock> = Arc::clone(&clock) as _;
    (
        Budgets::new(limits, slots, own, &mut Registry::new()),
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
        Spent::InFlight { limit: 2 }
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
    let spent = budgets.enter("ann").unwrap_err();
    assert_eq!(
        spent,
        Spent::Rate {
            limit: 2,
            after: Duration::from_millis(500)
        }
    );
    assert_eq!(spent.retry_after(), Some(Duration::from_millis(500)));
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
    let payer = budgets.enter("ann").unwrap();
    payer.scanned(500).unwrap();
    payer.scanned(400).unwrap();
    let spent = payer.scanned(1).unwrap_err();
    assert_eq!(
        spent,
        Spent::Scan {
            limit: 600,
            after: Duration::from_millis(30_100)
        }
    );
    clock.advance(Duration::from_secs(31));
    payer.scanned(1).unwrap();
    budgets.set(NONE);
    payer.scanned(1_000_000).unwrap();
    budgets.enter("").unwrap().scanned(1_000_000).unwrap();
    Payer::default().scanned(1).unwrap();
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
