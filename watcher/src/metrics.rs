//! What the watcher measures. Names are those of Tekton Results where it has the same metric;
//! counters get their `_total` when they are written.

mod idle;
mod labels;
mod logs;

use std::{hash::Hash, sync::atomic::AtomicU64, time::Duration};

pub(crate) use prometheus_client::registry::Registry;
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};

use idle::Forgetful;

pub use labels::{OfCode, OfDelete, OfHole, OfKind, OfRefusal, OfRun, OfState, OfWatch};
pub use logs::LogMetrics;

/// Everything in `registry`, as Prometheus reads it.
pub(crate) fn render(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// A gauge of seconds.
pub type Seconds = Gauge<f64, AtomicU64>;

type Histograms<L> = Forgetful<L, Histogram>;
type Counters<L> = Forgetful<L, Counter>;

/// What was not counted for so long is forgotten: its namespace may be gone.
const IDLE: Duration = Duration::from_hours(24);

/// Deletes of one kind.
#[derive(Debug)]
struct Deletes {
    kind: &'static str,
    count: Counters<OfDelete>,
    duration: Histograms<OfDelete>,
}

/// A handle for every metric.
#[derive(Debug)]
pub struct Metrics {
    /// From the end of a run until it is stored.
    pub storage_latency: Histograms<OfRun>,
    /// Runs that left the cluster before they were stored.
    pub not_stored: Counters<OfRun>,
    /// Runs that cannot be stored as things are.
    pub refused: Counters<OfRun>,
    /// Errors of the server.
    pub store_errors: Family<OfCode, Counter>,
    /// What was refused, and would be for other runs as well.
    pub refusals: Family<OfRefusal, Counter>,
    /// Runs that wait to be annotated.
    pub annotations_waiting: Gauge,
    /// Stores that the server has confirmed.
    pub stores: Counter,
    /// Runs that were deleted because they are stored.
    pub collected: Family<OfKind, Counter>,
    /// Runs by state and kind; set anew at each scrape.
    pub ledger: Family<OfState, Gauge>,
    /// Runs that wait to be worked on.
    pub queue_depth: Gauge,
    /// Bytes of objects that wait.
    pub held_bytes: Gauge,
    /// Whether this watcher works, and does not stand by.
    pub leading: Gauge,
    /// Runs whose last states are on disk.
    pub spool_runs: Gauge,
    /// Bytes that they take.
    pub spool_bytes: Gauge,
    /// Whether the server answers.
    pub server_up: Gauge,
    /// Lists that were begun.
    pub lists: Family<OfKind, Counter>,
    /// How long ago the API server was heard over each watch.
    pub last_event: Family<OfWatch, Seconds>,
    /// What was read of logs of containers.
    pub logs: LogMetrics,
    deletes: [Deletes; 4],
}

fn latencies() -> Histogram {
    Histogram::new([
        0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
    ])
}

fn ages() -> Histogram {
    Histogram::new([
        10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 5400.0, 10_800.0, 21_600.0, 43_200.0,
        86_400.0,
    ])
}

fn histograms<L: Clone + Hash + Eq>(make: fn() -> Histogram) -> Histograms<L> {
    Forgetful::new(Family::new_with_constructor(make))
}

fn counters<L: Clone + Hash + Eq>() -> Counters<L> {
    Forgetful::new(Family::new_with_constructor(
        Counter::default as fn() -> Counter,
    ))
}

impl Metrics {
    /// Registers all of them.
    pub fn register(registry: &mut Registry) -> Self {
        let deletes = ["pipelinerun", "taskrun", "customrun", "workflow"].map(|kind| {
            let count = counters();
            let duration = histograms(ages);
            registry.register(
                format!("watcher_{kind}_delete_count"),
                format!("{kind}s deleted because they are stored"),
                count.family(),
            );
            registry.register(
                format!("watcher_{kind}_delete_duration_seconds"),
                format!("from the end of {kind}s until they are deleted"),
                duration.family(),
            );
            Deletes {
                kind,
                count,
                duration,
            }
        });
        let metrics = Self {
            storage_latency: histograms(latencies),
            not_stored: counters(),
            refused: counters(),
            store_errors: Family::default(),
            refusals: Family::default(),
            annotations_waiting: Gauge::default(),
            stores: Counter::default(),
            collected: Family::default(),
            ledger: Family::default(),
            queue_depth: Gauge::default(),
            held_bytes: Gauge::default(),
            leading: Gauge::default(),
            spool_runs: Gauge::default(),
            spool_bytes: Gauge::default(),
            server_up: Gauge::default(),
            lists: Family::default(),
            last_event: Family::default(),
            logs: LogMetrics::register(registry),
            deletes,
        };
        metrics.name(registry);
        metrics
    }

    fn name(&self, registry: &mut Registry) {
        registry.register(
            "watcher_run_storage_latency_seconds",
            "from the end of runs until they are stored",
            self.storage_latency.family(),
        );
        registry.register(
            "watcher_runs_not_stored_count",
            "runs that left the cluster before they were stored",
            self.not_stored.family(),
        );
        registry.register(
            "hindsight_watcher_refused",
            "runs that cannot be stored as things are, each counted once",
            self.refused.family(),
        );
        registry.register(
            "hindsight_watcher_store_errors",
            "errors of the server by gRPC code",
            self.store_errors.clone(),
        );
        registry.register(
            "hindsight_watcher_refusals",
            "attempts that the server or the cluster has denied",
            self.refusals.clone(),
        );
        registry.register(
            "hindsight_watcher_annotations_waiting",
            "stored runs that wait to be annotated",
            self.annotations_waiting.clone(),
        );
        registry.register(
            "hindsight_watcher_stores",
            "stores that the server has confirmed",
            self.stores.clone(),
        );
        registry.register(
            "hindsight_watcher_collected",
            "runs deleted because they are stored",
            self.collected.clone(),
        );
        registry.register(
            "hindsight_watcher_ledger",
            "runs by state; collected, left and lost ones are no longer in the cluster",
            self.ledger.clone(),
        );
        self.name_gauges(registry);
    }

    fn name_gauges(&self, registry: &mut Registry) {
        registry.register(
            "hindsight_watcher_queue_depth",
            "runs that wait to be worked on",
            self.queue_depth.clone(),
        );
        registry.register(
            "hindsight_watcher_held_bytes",
            "bytes of objects that wait to be stored",
            self.held_bytes.clone(),
        );
        registry.register(
            "hindsight_watcher_leading",
            "1 unless this watcher stands by for another one",
            self.leading.clone(),
        );
        registry.register(
            "hindsight_watcher_spool_runs",
            "runs whose last states are kept on disk until they are stored",
            self.spool_runs.clone(),
        );
        registry.register(
            "hindsight_watcher_spool_bytes",
            "bytes of objects on disk",
            self.spool_bytes.clone(),
        );
        registry.register(
            "hindsight_watcher_server_up",
            "1 while the server answers, 0 before it was asked first",
            self.server_up.clone(),
        );
        registry.register(
            "hindsight_watcher_lists",
            "lists of a kind that were begun; one at the start, and one whenever a watch was lost",
            self.lists.clone(),
        );
        registry.register(
            "hindsight_watcher_last_event_seconds",
            "since the API server was heard over the watch of a kind, be it only by a bookmark",
            self.last_event.clone(),
        );
    }

    /// Forgets what was not counted for long.
    pub fn forget_idle(&self) {
        self.storage_latency.forget(IDLE);
        self.not_stored.forget(IDLE);
        self.refused.forget(IDLE);
        for deletes in &self.deletes {
            deletes.count.forget(IDLE);
            deletes.duration.forget(IDLE);
        }
    }

    /// Counts a delete. `seconds` is how long ago the run ended, if it says.
    pub fn deleted(&self, kind: &'static str, labels: &OfDelete, seconds: Option<f64>) {
        self.collected.get_or_create(&OfKind { kind }).inc();
        if let Some(deletes) = self
            .deletes
            .iter()
            .find(|d| d.kind.eq_ignore_ascii_case(kind))
        {
            deletes.count.get_or_create(labels).inc();
            if let Some(seconds) = seconds {
                deletes.duration.get_or_create(labels).observe(seconds);
            }
        }
    }
}
