//! The pages for those who operate the server: metrics, liveness, readiness.
//!
//! They have a listener of their own, so that watching a server needs no access to what it
//! stores. Nothing here changes anything or shows a record.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{StatusCode, Uri, header},
    response::IntoResponse,
    routing::get,
};

use crate::telemetry::Registry;

/// How long a check of readiness may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(5);

type Checking = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Whether the server can do its work, asked anew for every visit to `/readyz`.
#[derive(Clone)]
pub struct Readiness(Arc<dyn Fn() -> Checking + Send + Sync>);

impl Readiness {
    /// `check` answers `Ok`, or why not, as a text for the operator. It may be cancelled at
    /// any await, and counts as failed after five seconds.
    pub fn new<F, C>(check: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(check())))
    }

    async fn ask(&self, patience: Duration) -> Result<(), String> {
        match tokio::time::timeout(patience, (self.0)()).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(format!("no answer within {patience:?}")),
        }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").finish_non_exhaustive()
    }
}

/// `/metrics`, `/livez` and `/readyz`; everything else is 404 and says so.
///
/// `/livez` answers whenever the process does; it asks nothing, since no restart mends a
/// database.
pub fn router(registry: Arc<Registry>, readiness: Readiness) -> Router {
    Router::new()
        .route("/metrics", get(move || async move { metrics(&registry) }))
        .route("/livez", get(|| async { "alive\n" }))
        .route(
            "/readyz",
            get(move || async move { readyz(&readiness).await }),
        )
        .fallback(unknown)
}

fn metrics(registry: &Registry) -> impl IntoResponse + use<> {
    (
        [(header::CONTENT_TYPE, Registry::content_type())],
        registry.render(),
    )
}

async fn readyz(readiness: &Readiness) -> (StatusCode, String) {
    match readiness.ask(PATIENCE).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {why}\n"),
        ),
    }
}

async fn unknown(uri: Uri) -> (StatusCode, String) {
    let text = format!(
        "no page `{}` here; there are /metrics, /livez and /readyz, and the API has a port of \
         its own\n",
        uri.path()
    );
    (StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests;
