//! What is counted of budgets.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use super::QuotaExceeded;
use hindsight_runtime::telemetry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    budget: &'static str,
}

/// The counters `budget_refusals_total{budget}` and `scanned_records_total`, shared by clones.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    refusals: Family<Of, Counter>,
    scanned: Counter,
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            refusals: registry.register(
                "budget_refusals",
                "Requests refused because a caller has used up a budget",
            ),
            scanned: registry.register(
                "scanned_records",
                "Records read for filters that the database does not answer by itself",
            ),
        }
    }

    pub(super) fn refused(&self, exceeded: &QuotaExceeded) {
        let budget = match exceeded {
            QuotaExceeded::InFlight { .. } => "in_flight",
            QuotaExceeded::Streams { .. } => "streams",
            QuotaExceeded::Memory => "memory",
            QuotaExceeded::Rate { .. } => "rate",
            QuotaExceeded::Scan { .. } => "scan",
        };
        self.refusals.get_or_create(&Of { budget }).inc();
    }

    pub(super) fn scanned(&self, records: u64) {
        self.scanned.inc_by(records);
    }
}
