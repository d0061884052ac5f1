//! The port for those who operate the controller.

use std::sync::Arc;

use hindsight_runtime::{
    admin::{Readiness, router},
    telemetry::Registry,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves metrics and probes until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    registry: Arc<Registry>,
    readiness: Readiness,
    stop: CancellationToken,
) -> std::io::Result<()> {
    axum::serve(listener, router(registry, readiness))
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}
