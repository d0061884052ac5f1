//! Trying to deliver one event until it is delivered, or until that is given up.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::rand;
use hindsight_runtime::clock::Clock;
use tokio::time::Instant;

use super::{
    client::Client,
    event::Event,
    metrics::OfReceiver,
    verdict::{Outcome, Verdict},
};

/// Of how many failures of an event one is logged, besides the first.
const LOGGED: u32 = 20;

/// The way to one receiver.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) receiver: String,
    pub(super) client: Client,
    /// For how long an event is tried that the receiver fails at; none: for ever.
    pub(super) skip_after: Option<Duration>,
    pub(super) metrics: OfReceiver,
    pub(super) clock: Arc<dyn Clock>,
}

impl Way {
    /// Returns once the receiver has the event or will never get it.
    pub(super) async fn deliver(&self, event: &Event) {
        let (mut failures, mut failing) = (0, Duration::ZERO);
        let mut before: Option<Instant> = None;
        loop {
            let outcome = self.client.post(event, &*self.clock).await;
            let now = Instant::now();
            match outcome.verdict() {
                Verdict::Delivered => {
                    self.metrics.delivered();
                    if failures > 0 {
                        let (receiver, id) = (&self.receiver, &event.id);
                        tracing::info!(receiver, id, failures, "an event is delivered at last");
                    }
                    return;
                }
                Verdict::Refused if self.skip_after.is_some() => {
                    self.metrics.failed();
                    return self.skip(event, &outcome);
                }
                Verdict::Refused | Verdict::Failing => {
                    self.metrics.failed();
                    // Times at which the receiver was away do not count.
                    if let Some(before) = before {
                        failing += now.duration_since(before);
                    }
                    before = Some(now);
                    if self.skip_after.is_some_and(|most| failing >= most) {
                        return self.skip(event, &outcome);
                    }
                }
                Verdict::Away => {
                    self.metrics.failed();
                    before = None;
                }
            }
            failures += 1;
            let pause = outcome.pause(failures, chance());
            if failures % LOGGED == 1 {
                let (receiver, id, why) = (&self.receiver, &event.id, outcome.said());
                tracing::warn!(
                    receiver,
                    id,
                    why,
                    failures,
                    "cannot deliver an event; retrying"
                );
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn skip(&self, event: &Event, outcome: &Outcome) {
        self.metrics.skipped();
        let (receiver, id, why) = (&self.receiver, &event.id, outcome.said());
        tracing::error!(
            receiver,
            id,
            why,
            "an event is skipped; the receiver will not get it"
        );
    }
}

/// A number between 0 and 1; half of it if there is no chance to be had.
fn chance() -> f64 {
    let mut bytes = [0; 2];
    match rand::fill(&mut bytes) {
        Ok(()) => f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX),
        Err(_) => 0.5,
    }
}
