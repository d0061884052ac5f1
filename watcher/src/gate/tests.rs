//! Who is let through while the server is away.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Gate;
use crate::{
    backoff::Backoff,
    sink::{Severity, SinkError},
};

fn gate() -> Gate {
    Gate::new(Backoff {
        first: Duration::from_millis(20),
        most: Duration::from_millis(40),
    })
}

fn away() -> SinkError {
    SinkError {
        code: "UNAVAILABLE",
        message: "gone".into(),
        severity: Severity::Unavailable,
        retry_after: None,
    }
}

async fn is_let_through(gate: &Gate) -> bool {
    timeout(Duration::from_millis(1), gate.enter())
        .await
        .is_ok()
}

#[tokio::test]
async fn everybody_passes_while_the_server_answers() {
    let gate = gate();
    let (a, b) = (gate.enter().await, gate.enter().await);
    a.answered();
    b.answered();
    assert!(gate.is_open());
}

#[tokio::test]
async fn one_at_a_time_passes_while_it_does_not() {
    let gate = gate();
    gate.enter().await.refused(&away());
    assert!(!gate.is_open());
    assert!(gate.state().borrow().as_ref().unwrap().contains("gone"));
    let probe = gate.enter().await;
    assert!(!is_let_through(&gate).await);
    probe.refused(&away());
    assert!(!is_let_through(&gate).await);
    gate.enter().await.answered();
    assert!(gate.is_open());
    assert!(is_let_through(&gate).await);
}

#[tokio::test]
async fn a_probe_that_gives_up_leaves_it_to_the_next() {
    let gate = gate();
    gate.enter().await.refused(&away());
    drop(gate.enter().await);
    gate.enter().await.answered();
    assert!(gate.is_open());
}

#[tokio::test]
async fn a_late_failure_does_not_disturb_the_probe() {
    let gate = gate();
    let late = gate.enter().await;
    gate.enter().await.refused(&away());
    let probe = gate.enter().await;
    late.refused(&away());
    assert!(!is_let_through(&gate).await);
    probe.answered();
    assert!(gate.is_open());
}

#[tokio::test]
async fn a_server_that_names_a_time_is_not_called_before_but_not_believed_everything() {
    for (wished, waits) in [(5, 5), (86_400, 60)] {
        let gate = gate();
        let busy = SinkError {
            retry_after: Some(Duration::from_secs(wished)),
            ..away()
        };
        gate.enter().await.refused(&busy);
        let wait = gate.lock().as_ref().unwrap().next - Instant::now();
        let waits = Duration::from_secs(waits);
        assert!(
            wait <= waits && waits - wait < Duration::from_secs(1),
            "{wait:?}"
        );
        assert!(!is_let_through(&gate).await);
    }
}
