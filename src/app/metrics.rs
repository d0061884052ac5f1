//! What is counted of connections: those of callers, and those to the database.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        gauge::{ConstGauge, Gauge},
    },
};

use super::tls::Tls;
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::{Maintenance, objects::ObjectBackend};

/// Collects what is told of the database, and of the object store if there is one.
pub(super) fn of_storage(
    registry: &mut Registry,
    maintenance: &Arc<dyn Maintenance>,
    objects: Option<Arc<ObjectBackend>>,
) {
    registry.collect(Database(Arc::clone(maintenance)));
    if let Some(objects) = objects {
        registry.collect(Objects(objects));
    }
}

#[derive(Debug)]
struct Database(Arc<dyn Maintenance>);

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

/// `tls_certificate_expiration_timestamp_seconds`, of the certificate that is shown now.
#[derive(Debug)]
pub(super) struct Certificate(pub(super) Arc<Tls>);

impl Collector for Certificate {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let expiration = encoder.encode_descriptor(
            "tls_certificate_expiration_timestamp_seconds",
            "When the certificate of the API ends, in seconds since 1970",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(self.0.expiration().as_second()).encode(expiration)
    }
}

/// What is counted of objects that hold payloads outside the database: `objects_total` and
/// `objects_failed_total` by what was done, `object_bytes_total`, and what there is.
#[derive(Debug)]
struct Objects(Arc<ObjectBackend>);

impl Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.counted();
        let mut done = encoder.encode_descriptor(
            "objects",
            "Objects that were written, read and removed",
            None,
            MetricType::Counter,
        )?;
        for (what, count) in [
            ("write", now.written),
            ("read", now.read),
            ("remove", now.removed),
        ] {
            let labels = [("operation", what)];
            ConstCounter::new(count).encode(done.encode_family(&labels)?)?;
        }
        let mut failed = encoder.encode_descriptor(
            "objects_failed",
            "Writes, reads and removals of objects that did not succeed",
            None,
            MetricType::Counter,
        )?;
        for (what, count) in [
            ("write", now.failed_writes),
            ("read", now.failed_reads),
            ("remove", now.failed_removals),
        ] {
            let labels = [("operation", what)];
            ConstCounter::new(count).encode(failed.encode_family(&labels)?)?;
        }
        let mut bytes = encoder.encode_descriptor(
            "object_bytes",
            "Bytes of objects that were written and read",
            None,
            MetricType::Counter,
        )?;
        for (what, count) in [("write", now.bytes_written), ("read", now.bytes_read)] {
            let labels = [("operation", what)];
            ConstCounter::new(count).encode(bytes.encode_family(&labels)?)?;
        }
        let mut there = encoder.encode_descriptor(
            "objects_there",
            "Objects that payloads refer to, and that wait to be removed",
            None,
            MetricType::Gauge,
        )?;
        for (state, count) in [("held", now.totals.held), ("loose", now.totals.loose)] {
            let labels = [("state", state)];
            gauge(count).encode(there.encode_family(&labels)?)?;
        }
        let held = encoder.encode_descriptor(
            "objects_held_bytes",
            "Bytes of objects that payloads refer to",
            None,
            MetricType::Gauge,
        )?;
        gauge(now.totals.bytes).encode(held)
    }
}

fn gauge(count: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

/// `connections` and `connections_taken_total`. Clones share their values.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    open: Gauge,
    taken: Counter,
}

impl Connections {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            open: registry.register(
                "connections",
                "Connections to the port of the API that are open",
            ),
            taken: registry.register(
                "connections_taken",
                "Connections to the port of the API that were taken",
            ),
        }
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
