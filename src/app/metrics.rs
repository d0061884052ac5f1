//! What is counted of connections.

use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use crate::telemetry::Registry;

/// `connections` and `connections_taken_total`. Clones share their values.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    open: Gauge,
    taken: Counter,
}

impl Connections {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            open: Gauge::default(),
            taken: Counter::default(),
        };
        registry.register(
            "connections",
            "Connections to the port of the API that are open",
            metrics.open.clone(),
        );
        registry.register(
            "connections_taken",
            "Connections to the port of the API that were taken",
            metrics.taken.clone(),
        );
        metrics
    }

    /// Counts a connection as open for as long as the answer lives.
    pub(super) fn open(&self) -> Open {
        self.taken.inc();
        self.open.inc();
        Open(self.open.clone())
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(super) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
