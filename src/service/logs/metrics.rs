//! What is counted of logs.

use hindsight_runtime::telemetry::Registry;
use prometheus_client::metrics::counter::Counter;

/// Counters whose names begin with `hindsight_log_`.
#[derive(Debug, Clone)]
pub struct LogMetrics {
    bytes: Counter,
    lines: Counter,
    redactions: Counter,
    reads: Counter,
    failures: Counter,
    quota: Counter,
}

impl LogMetrics {
    /// Counters in `registry`.
    pub fn new(registry: &mut Registry) -> Self {
        Self {
            bytes: registry.register("log_bytes", "Bytes of logs that were taken to be stored"),
            lines: registry.register("log_lines", "Lines of logs that were taken to be stored"),
            redactions: registry.register(
                "log_redactions",
                "Texts in logs that a pattern of logs_redact matched and that were replaced",
            ),
            reads: registry.register(
                "log_home_reads",
                "Logs that another system was asked for because they are not stored",
            ),
            failures: registry.register(
                "log_home_failures",
                "Logs of another system that were not read because it failed",
            ),
            quota: registry.register(
                "log_quota_refusals",
                "Appends of lines and uploads that were refused because of logs_quota",
            ),
        }
    }

    pub(super) fn read_elsewhere(&self, succeeded: bool) {
        self.reads.inc();
        if !succeeded {
            self.failures.inc();
        }
    }

    pub(super) fn redacted(&self, redactions: u64) {
        self.redactions.inc_by(redactions);
    }

    pub(super) fn refused(&self) {
        self.quota.inc();
    }

    pub(super) fn took(&self, lines: usize, bytes: usize, redactions: u64) {
        self.lines.inc_by(lines as u64);
        self.bytes.inc_by(bytes as u64);
        self.redactions.inc_by(redactions);
    }
}
