//! What the watcher tells about itself: metrics, probes and the ledger, on a port of their own.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use jiff::Timestamp;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    ledger::{Announced, Unstored},
    metrics::{OfState, OfWatch, Registry, render},
    progress::Handle,
    refusals::Refused,
    shared::{Role, Shared},
};

/// Twice as long as any request may take.
const STUCK: Duration = Duration::from_mins(10);

/// How many runs `/ledger` names in each of its lists.
const NAMED: usize = 500;

#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) handle: Handle,
    pub(crate) registry: Arc<Registry>,
}

pub(crate) async fn serve(
    admin: Admin,
    listener: TcpListener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/ledger", get(ledger))
        .with_state(admin);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn metrics(State(admin): State<Admin>) -> impl IntoResponse {
    let shared = &admin.handle.shared;
    let metrics = &shared.metrics;
    metrics.ledger.clear();
    for ((state, kind), count) in shared.ledger().counts() {
        let gauge = metrics.ledger.get_or_create(&OfState { state, kind });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let spool = shared.server.spool.as_ref();
    let (runs, bytes) = spool.map_or((0, 0), |spool| spool.size());
    let lines = spool.map_or(0, |spool| spool.lines().size());
    for (gauge, value) in [
        (&metrics.queue_depth, shared.queues.runs.depth()),
        (
            &metrics.annotations_waiting,
            shared.queues.annotations.len(),
        ),
        (&metrics.held_bytes, shared.queues.runs.held()),
        (&metrics.spool_runs, runs),
    ] {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }
    for (gauge, value) in [
        (&metrics.spool_bytes, bytes),
        (&metrics.logs.spool_bytes, lines),
    ] {
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    }
    metrics.forget_idle();
    metrics.last_event.clear();
    for (kind, age) in shared.cluster.health.ages() {
        let gauge = metrics.last_event.get_or_create(&OfWatch { kind });
        gauge.set(age.as_secs_f64());
    }
    let is_leading = shared.role() == Role::Leader;
    metrics.leading.set(i64::from(is_leading));
    metrics.server_up.set(i64::from(shared.server.gate.is_up()));
    match render(&admin.registry) {
        Ok(text) => {
            const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, TYPE)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Whether its tasks still move. Whoever is stuck is helped by nothing but a new start.
async fn alive(State(admin): State<Admin>) -> impl IntoResponse {
    let shared = &admin.handle.shared;
    // It waits as everybody would, if the ledger were never given back.
    drop(shared.ledger());
    match shared.cluster.health.slowest() {
        Some((kind, time)) if time > STUCK => {
            let seconds = time.as_secs();
            let text = format!("the watch of {kind} has stood still for {seconds} s\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
        _ => (StatusCode::OK, "ok\n".to_owned()),
    }
}

/// One that stands by is ready to take over, which is all that it has to be.
async fn ready(State(admin): State<Admin>) -> impl IntoResponse {
    if let Role::Standby { leader } = admin.handle.shared.role() {
        return match leader.as_str() {
            "" => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the lease was not asked for yet\n".to_owned(),
            ),
            leader => (StatusCode::OK, format!("standby; {leader} leads\n")),
        };
    }
    match stuck(&admin.handle.shared) {
        None => (StatusCode::OK, hidden(&admin.handle.shared)),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// What is not stored for lack of a right, which is no reason not to go on with the rest.
fn hidden(shared: &Shared) -> String {
    match shared.cluster.kinds.hidden().join(", ") {
        none if none.is_empty() => "ok\n".to_owned(),
        kinds => format!("ok, but these kinds cannot be read: {kinds}; see the log\n"),
    }
}

/// Why runs that finish are not stored now, if that is not for a moment only.
fn stuck(shared: &Shared) -> Option<String> {
    let unlisted = shared.cluster.kinds.unlisted();
    if !unlisted.is_empty() {
        return Some(format!("not yet listed: {}", unlisted.join(", ")));
    }
    let patience = shared.config.tuning.ready_for;
    let is_long = |time: &Duration| *time > patience;
    if let Some((kind, time)) = shared
        .cluster
        .health
        .worst()
        .filter(|(_, time)| is_long(time))
    {
        let seconds = time.as_secs();
        return Some(format!(
            "the watch of {kind} has not worked for {seconds} s"
        ));
    }
    let outage = shared.server.gate.outage().filter(is_long)?;
    let seconds = outage.as_secs();
    Some(format!("server unavailable for {seconds} s"))
}

#[derive(Debug, Serialize)]
struct Report {
    /// Why the server cannot be reached, if so.
    server_away: Option<String>,
    counts: Vec<Count>,
    unstored: Vec<Unstored>,
    lost: Vec<Unstored>,
    /// What is denied, to the runs of a kind in a namespace.
    refused: Vec<Refusal>,
    /// In how many namespaces and for how many kinds.
    refused_scopes: usize,
    /// Stored runs on which the cluster takes no annotations.
    not_annotated: usize,
    /// What a dry run would have deleted.
    would_collect: Vec<Announced>,
}

#[derive(Debug, Serialize)]
struct Count {
    kind: &'static str,
    state: &'static str,
    runs: u64,
}

#[derive(Debug, Serialize)]
struct Refusal {
    action: &'static str,
    kind: &'static str,
    namespace: String,
    since: Timestamp,
    waiting: usize,
    reason: String,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self {
            action: refused.scope.action.name(),
            kind: refused.scope.kind,
            namespace: refused.scope.namespace.to_string(),
            since: refused.since,
            waiting: refused.waiting,
            reason: refused.message,
        }
    }
}

async fn ledger(State(admin): State<Admin>) -> impl IntoResponse {
    let shared = &admin.handle.shared;
    let server_away = shared.server.gate.state().borrow().clone();
    let (refused, refused_scopes) = shared.queues.refusals.all(NAMED);
    let ledger = shared.ledger();
    let counts = ledger.counts().into_iter();
    let report = Report {
        server_away,
        counts: counts
            .map(|((state, kind), runs)| Count { kind, state, runs })
            .collect(),
        unstored: ledger.unstored_finals(NAMED),
        lost: ledger.lost(NAMED),
        refused: refused.into_iter().map(Refusal::from).collect(),
        refused_scopes,
        not_annotated: ledger.unmarked(),
        would_collect: ledger.announced(),
    };
    drop(ledger);
    let text = serde_json::to_string_pretty(&report).expect("the report has only text keys");
    ([(header::CONTENT_TYPE, "application/json")], text)
}
