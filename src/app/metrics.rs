//! What is counted of connections: those of callers, and those to the database.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::Counter, gauge::ConstGauge, gauge::Gauge},
};

use crate::{storage::Maintenance, telemetry::Registry};

/// `db_connections` and `db_connections_most`.
#[derive(Debug)]
pub(super) struct Database(pub(super) Arc<dyn Maintenance>);

impl Collector for Database {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.connections();
        let mut family = encoder.encode_descriptor(
            "db_connections",
            "Connections to the database",
            None,
            MetricType::Gauge,
        )?;
        for (state, count) in [("busy", now.busy), ("idle", now.idle)] {
            let labels = [("state", state)];
            let one = family.encode_family(&labels)?;
            ConstGauge::new(i64::from(count)).encode(one)?;
        }
        let most = encoder.encode_descriptor(
            "db_connections_most",
            "Connections to the database that may be open at once",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(i64::from(now.most)).encode(most)
    }
}

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
