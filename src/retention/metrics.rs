//! What is counted of retention.

use hindsight_runtime::telemetry::Registry;
use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    policy: String,
}

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    runs: Family<Labels, Counter>,
    bytes: Family<Labels, Counter>,
    archived: Family<Labels, Counter>,
    failures: Counter,
    finished: Gauge,
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            runs: registry.register(
                "retention_deleted_runs",
                "Results that retention deleted with all their records",
            ),
            bytes: registry.register(
                "retention_deleted_bytes",
                "Bytes of payloads, as they were sent, and of logs, as they were kept, that retention deleted",
            ),
            archived: registry.register(
                "retention_archived_runs",
                "Results whose records retention moved to the archive",
            ),
            failures: registry.register(
                "retention_failures",
                "Passes of retention that broke off, and results that it could not judge",
            ),
            finished: registry.register(
                "retention_last_pass_timestamp_seconds",
                "When this server finished a pass of retention, 0 if it has not",
            ),
        }
    }

    pub(super) fn deleted(&self, policy: &str, bytes: u64) {
        let labels = Labels {
            policy: policy.to_owned(),
        };
        self.runs.get_or_create(&labels).inc();
        self.bytes.get_or_create(&labels).inc_by(bytes);
    }

    pub(super) fn archived(&self, policy: &str) {
        let labels = Labels {
            policy: policy.to_owned(),
        };
        self.archived.get_or_create(&labels).inc();
    }

    pub(super) fn failed(&self) {
        self.failures.inc();
    }

    pub(super) fn finished(&self, now: Timestamp) {
        self.finished.set(now.as_second());
    }
}
