//! Order, merging, waiting and bounds of the queue.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Done, Full, Job, Queue, Work};
use crate::ledger::Uid;

fn state(text: &str) -> Work {
    Work {
        object: Some(text.into()),
        ..Work::default()
    }
}

fn last(text: &str) -> Work {
    Work {
        gone: true,
        ..state(text)
    }
}

fn gone() -> Work {
    Work {
        gone: true,
        ..Work::default()
    }
}

async fn is_empty(queue: &Queue) -> bool {
    timeout(Duration::from_millis(1), queue.pop())
        .await
        .is_err()
}

async fn next(queue: &Queue) -> Job {
    timeout(Duration::from_secs(10), queue.pop())
        .await
        .expect("there is work")
}

fn uid(text: &str) -> Uid {
    Uid::from(text)
}

#[tokio::test]
async fn runs_are_worked_on_in_order_and_each_by_one() {
    let queue = Queue::new(1000, 1000);
    queue.push(&uid("a"), state("1")).unwrap();
    queue.push(&uid("b"), state("2")).unwrap();
    queue.push(&uid("a"), state("3")).unwrap();
    let a = next(&queue).await;
    assert_eq!((a.uid.as_str(), a.work), ("a", state("3")));
    queue.push(&uid("a"), state("4")).unwrap();
    assert_eq!(next(&queue).await.uid.as_str(), "b");
    assert!(is_empty(&queue).await);
    queue.done(&uid("a"), Done::Finished);
    assert_eq!(next(&queue).await.work, state("4"));
}

#[tokio::test]
async fn the_last_state_of_a_run_that_is_gone_is_kept() {
    let queue = Queue::new(1000, 1000);
    queue.push(&uid("a"), state("1")).unwrap();
    queue.push(&uid("a"), gone()).unwrap();
    assert_eq!(next(&queue).await.work, last("1"));
    // Also when it was in work at that time, and failed.
    queue.push(&uid("a"), gone()).unwrap();
    queue.done(&uid("a"), Done::Failed(Instant::now(), state("1")));
    let job = next(&queue).await;
    assert_eq!((job.work, job.failures), (last("1"), 1));
    queue.push(&uid("a"), last("2")).unwrap();
    queue.done(&uid("a"), Done::Failed(Instant::now(), state("1")));
    assert_eq!(next(&queue).await.work, last("2"));
}

#[tokio::test]
async fn a_failed_run_waits_unless_there_are_news() {
    let queue = Queue::new(1000, 1000);
    let hour = Instant::now() + Duration::from_secs(3600);
    queue.push(&uid("a"), state("1")).unwrap();
    next(&queue).await;
    queue.done(&uid("a"), Done::Failed(hour, state("1")));
    assert!(is_empty(&queue).await);
    queue.push(&uid("a"), state("2")).unwrap();
    assert_eq!(next(&queue).await.work, state("2"));
    queue.done(&uid("a"), Done::Until(hour));
    assert!(is_empty(&queue).await);
    assert_eq!(queue.held(), 0);
}

#[tokio::test]
async fn a_run_comes_back_when_its_time_has_come() {
    let queue = Queue::new(1000, 1000);
    queue.push(&uid("a"), Work::default()).unwrap();
    next(&queue).await;
    queue.done(
        &uid("a"),
        Done::Until(Instant::now() + Duration::from_millis(5)),
    );
    assert_eq!(next(&queue).await.work, Work::default());
}

#[tokio::test]
async fn no_more_is_held_than_was_agreed() {
    let queue = Queue::new(10, 10);
    queue.push(&uid("a"), state("1234567890")).unwrap();
    queue.push(&uid("b"), state("x")).unwrap();
    assert_eq!(queue.push(&uid("c"), last("x")), Err(Full));
    assert_eq!(queue.held(), 10);
    queue.push(&uid("a"), state("123")).unwrap();
    assert_eq!(queue.held(), 3);
    queue.push(&uid("c"), last("x")).unwrap();
    // What is gone goes first.
    assert_eq!(next(&queue).await.work, last("x"));
    assert_eq!(next(&queue).await.work, state("123"));
    assert_eq!(next(&queue).await.work, Work::default());
    assert_eq!(queue.held(), 0);
}

#[tokio::test]
async fn whoever_brings_too_much_waits_for_room() {
    let queue = Queue::new(6400, 6400);
    for n in 0..100 {
        queue
            .push(&uid(&format!("{n}")), state("123456789012"))
            .unwrap();
    }
    assert!(
        timeout(Duration::from_millis(1), queue.room())
            .await
            .is_err()
    );
    for _ in 0..92 {
        let job = next(&queue).await;
        queue.done(&job.uid, Done::Finished);
    }
    timeout(Duration::from_secs(10), queue.room())
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_waits_for_room_because_of_what_is_tried_again_later() {
    let queue = Queue::new(40, 40);
    queue.push(&uid("a"), last("123456789012")).unwrap();
    let job = next(&queue).await;
    let hour = Instant::now() + Duration::from_secs(3600);
    queue.done(&job.uid, Done::Failed(hour, job.work));
    assert_eq!(queue.held(), 12);
    timeout(Duration::from_secs(10), queue.room())
        .await
        .unwrap();
}

#[tokio::test]
async fn what_can_be_read_again_leaves_room_for_what_is_gone() {
    let queue = Queue::new(10, 5);
    queue.push(&uid("a"), state("12345")).unwrap();
    queue.push(&uid("b"), state("x")).unwrap();
    queue.push(&uid("c"), last("12345")).unwrap();
    assert_eq!(queue.held(), 10);
    assert_eq!(next(&queue).await.work, last("12345"));
    assert_eq!(next(&queue).await.work, state("12345"));
    assert_eq!(next(&queue).await.work, Work::default());
}

#[tokio::test]
async fn bare_runs_are_taken_out_of_either_line_and_given_back() {
    let queue = Queue::new(1000, 1000);
    let unprotected = |is_final| Work {
        is_final,
        needs_finalizer: true,
        ..state("x")
    };
    queue.push(&uid("end"), unprotected(true)).unwrap();
    queue.push(&uid("other"), state("o")).unwrap();
    queue.push(&uid("new"), unprotected(false)).unwrap();
    queue.push(&uid("held"), unprotected(false)).unwrap();
    // It got one meanwhile.
    queue.push(&uid("held"), state("h")).unwrap();
    let end = queue.pop_unprotected().await;
    assert_eq!((end.uid.as_str(), end.work), ("end", unprotected(true)));
    assert_eq!(queue.pop_unprotected().await.uid.as_str(), "new");
    assert!(
        timeout(Duration::from_millis(1), queue.pop_unprotected())
            .await
            .is_err()
    );
    queue.done(&uid("new"), Done::Finished);
    let rest = Work {
        is_final: true,
        ..state("y")
    };
    queue.done(&uid("end"), Done::Rest(rest.clone()));
    assert_eq!(next(&queue).await.work, rest);
    assert_eq!(next(&queue).await.uid.as_str(), "other");
    assert_eq!(next(&queue).await.work, state("h"));
    assert_eq!(queue.depth(), 0);
}

#[tokio::test]
async fn lines_do_not_grow_while_only_bare_runs_are_taken() {
    let queue = Queue::new(1 << 20, 1 << 20);
    let unprotected = Work {
        needs_finalizer: true,
        ..Work::default()
    };
    queue.push(&uid("stays"), Work::default()).unwrap();
    for n in 0..10_000 {
        let uid = uid(&format!("new-{n}"));
        queue.push(&uid, unprotected.clone()).unwrap();
        assert_eq!(queue.pop_unprotected().await.uid, uid);
        queue.done(&uid, Done::Finished);
    }
    let (second, unprotected, slots) = {
        let inner = queue.lock();
        (
            inner.second.len(),
            inner.unprotected.len(),
            inner.slots.len(),
        )
    };
    assert!(second < 1100, "{second}");
    assert_eq!((unprotected, slots), (0, 1));
    assert_eq!(next(&queue).await.uid.as_str(), "stays");
}

#[tokio::test]
async fn what_only_we_know_can_be_asked_for() {
    let queue = Queue::new(1000, 1000);
    queue.push(&uid("a"), state("1")).unwrap();
    queue.push(&uid("b"), gone()).unwrap();
    queue.push(&uid("c"), last("3")).unwrap();
    let hour = Instant::now() + Duration::from_secs(3600);
    let job = queue.pop_gone().unwrap();
    assert_eq!(job.uid.as_str(), "c");
    assert_eq!(queue.pop_gone(), None);
    queue.done(&job.uid, Done::Failed(hour, job.work));
    assert_eq!(queue.pop_gone().unwrap().uid.as_str(), "c");
}

#[tokio::test]
async fn ends_of_runs_go_before_updates_but_not_for_ever() {
    let queue = Queue::new(1000, 1000);
    let end = |text: &str| Work {
        is_final: true,
        ..state(text)
    };
    queue.push(&"update".into(), state("u")).unwrap();
    // What was an update has become an end.
    queue.push(&"becomes".into(), state("b")).unwrap();
    for n in 0..20 {
        queue
            .push(&format!("end-{n}").as_str().into(), end("e"))
            .unwrap();
    }
    queue.push(&"becomes".into(), end("b")).unwrap();
    assert_eq!(queue.depth(), 22);
    let mut order = Vec::new();
    for _ in 0..22 {
        order.push(queue.pop().await.uid.to_string());
    }
    assert_eq!(order.iter().position(|uid| uid == "update"), Some(16));
    assert_eq!(order.iter().position(|uid| uid == "becomes"), Some(21));
    assert_eq!(queue.depth(), 0);
}

fn progress(text: &str) -> Work {
    Work {
        is_progress: true,
        ..state(text)
    }
}

#[tokio::test]
async fn progress_is_worked_on_while_nothing_else_waits() {
    let queue = Queue::new(1000, 1000);
    queue.push(&uid("progress"), progress("p")).unwrap();
    for n in 0..40 {
        let end = Work {
            is_final: true,
            ..state("e")
        };
        queue.push(&uid(&format!("end-{n}")), end).unwrap();
    }
    queue.push(&uid("update"), state("u")).unwrap();
    let mut order = Vec::new();
    for _ in 0..42 {
        order.push(next(&queue).await.uid.to_string());
    }
    assert_eq!(order.last().map(String::as_str), Some("progress"));
    assert_eq!(queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn progress_waits_until_it_may_be_stored_again_and_an_end_does_not() {
    let queue = Queue::new(1000, 1000);
    let a = uid("a");
    let soon = || Instant::now() + Duration::from_secs(10);
    queue.push(&a, progress("1")).unwrap();
    next(&queue).await;
    // What comes meanwhile waits as well.
    queue.push(&a, progress("2")).unwrap();
    let until = soon();
    queue.done(&a, Done::Paced(until));
    queue.push(&a, progress("3")).unwrap();
    assert!(is_empty(&queue).await);
    let job = timeout(Duration::from_secs(20), queue.pop()).await.unwrap();
    assert_eq!((job.work, Instant::now() >= until), (progress("3"), true));
    queue.done(&a, Done::Paced(soon()));
    queue.push(&a, progress("4")).unwrap();
    let end = Work {
        is_final: true,
        ..state("5")
    };
    queue.push(&a, end.clone()).unwrap();
    assert_eq!(next(&queue).await.work, end);
    queue.done(&a, Done::Paced(soon()));
    queue.push(&a, last("6")).unwrap();
    assert_eq!(next(&queue).await.work, last("6"));
    // Without news nothing is left of it.
    queue.done(&a, Done::Paced(soon()));
    let later = timeout(Duration::from_secs(60), queue.pop()).await;
    assert!(later.is_err());
    assert!(queue.lock().slots.is_empty());
}
