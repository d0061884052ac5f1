//! What is counted of the audit log.

use prometheus_client::metrics::counter::Counter;

use hindsight_runtime::telemetry::Registry;

/// The counters `audit_lines_total` and `audit_lost_total` of one audit log.
#[derive(Debug)]
pub(super) struct Metrics {
    lines: Counter,
    lost: Counter,
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            lines: registry.register("audit_lines", "Lines written to the audit log"),
            lost: registry.register(
                "audit_lost",
                "Lines that could not be written to the audit log",
            ),
        }
    }

    pub(super) fn written(&self, lines: u64) {
        self.lines.inc_by(lines);
    }

    pub(super) fn lost(&self, lines: u64) {
        self.lost.inc_by(lines);
    }
}
