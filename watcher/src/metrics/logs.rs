//! What is measured of logs.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Seconds, labels::OfHole};

/// A handle for each metric of logs.
#[derive(Debug)]
pub struct LogMetrics {
    /// Lines that the server has confirmed.
    pub lines: Counter,
    /// Bytes of the lines that the server has confirmed.
    pub bytes: Counter,
    /// Containers that are followed.
    pub followed: Gauge,
    /// Containers that wait to be read.
    pub waiting: Gauge,
    /// Lines that stand for lines that are missing.
    pub holes: Family<OfHole, Counter>,
    /// Bytes of lines on disk.
    pub spool_bytes: Gauge,
    /// Since when the oldest line waits that was sent last.
    pub behind: Seconds,
}

impl LogMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            lines: Counter::default(),
            bytes: Counter::default(),
            followed: Gauge::default(),
            waiting: Gauge::default(),
            holes: Family::default(),
            spool_bytes: Gauge::default(),
            behind: Seconds::default(),
        };
        registry.register(
            "hindsight_watcher_log_lines",
            "lines of logs that the server has confirmed",
            metrics.lines.clone(),
        );
        registry.register(
            "hindsight_watcher_log_bytes",
            "bytes of these lines",
            metrics.bytes.clone(),
        );
        registry.register(
            "hindsight_watcher_log_followed",
            "containers whose logs are followed",
            metrics.followed.clone(),
        );
        registry.register(
            "hindsight_watcher_log_waiting",
            "containers whose logs wait to be read",
            metrics.waiting.clone(),
        );
        registry.register(
            "hindsight_watcher_log_holes",
            "lines that stand for lines that are missing, by reason",
            metrics.holes.clone(),
        );
        registry.register(
            "hindsight_watcher_log_spool_bytes",
            "bytes of lines of logs on disk that are not stored",
            metrics.spool_bytes.clone(),
        );
        registry.register(
            "hindsight_watcher_log_behind_seconds",
            "how long the oldest line that was sent last had waited",
            metrics.behind.clone(),
        );
        metrics
    }
}
