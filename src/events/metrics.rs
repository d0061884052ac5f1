//! What is counted of events, by the name of their receiver.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

use hindsight_runtime::telemetry::Registry;

/// Labels of one receiver.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    receiver: String,
}

/// The metrics of all receivers.
#[derive(Debug)]
pub(super) struct Metrics {
    delivered: Family<Labels, Counter>,
    failed: Family<Labels, Counter>,
    skipped: Family<Labels, Counter>,
    gaps: Family<Labels, Counter>,
    behind: Family<Labels, Gauge>,
    sends: Family<Labels, Gauge>,
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            delivered: registry.register(
                "events_delivered",
                "Events that a receiver acknowledged to this server",
            ),
            failed: registry.register(
                "events_failed_requests",
                "Requests to a receiver that it did not acknowledge",
            ),
            skipped: registry.register(
                "events_skipped",
                "Events that a receiver refused or failed at for too long, and will not get",
            ),
            gaps: registry.register(
                "events_gaps",
                "Times that changes had been removed before a receiver got their events",
            ),
            behind: registry.register(
                "events_behind_seconds",
                "Age of the oldest change that this server is delivering, 0 if there is none",
            ),
            sends: registry.register(
                "events_sending",
                "Whether this server is the one that sends to a receiver",
            ),
        }
    }

    /// Those of one receiver.
    pub(super) fn of(&self, receiver: &str) -> OfReceiver {
        let labels = Labels {
            receiver: receiver.to_owned(),
        };
        OfReceiver {
            delivered: self.delivered.get_or_create_owned(&labels),
            failed: self.failed.get_or_create_owned(&labels),
            skipped: self.skipped.get_or_create_owned(&labels),
            gaps: self.gaps.get_or_create_owned(&labels),
            behind: self.behind.get_or_create_owned(&labels),
            sends: self.sends.get_or_create_owned(&labels),
        }
    }
}

/// The metrics of one receiver.
#[derive(Debug)]
pub(super) struct OfReceiver {
    delivered: Counter,
    failed: Counter,
    skipped: Counter,
    gaps: Counter,
    behind: Gauge,
    sends: Gauge,
}

impl OfReceiver {
    pub(super) fn delivered(&self) {
        self.delivered.inc();
    }

    pub(super) fn failed(&self) {
        self.failed.inc();
    }

    pub(super) fn skipped(&self) {
        self.skipped.inc();
    }

    pub(super) fn gap(&self) {
        self.gaps.inc();
    }

    pub(super) fn behind(&self, seconds: i64) {
        self.behind.set(seconds);
    }

    pub(super) fn sends(&self, does: bool) {
        self.sends.set(i64::from(does));
    }
}
