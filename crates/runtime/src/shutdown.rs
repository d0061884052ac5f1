//! Signals that ask a program to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// SIGTERM and SIGINT cancel `shutdown`, from now on. It fails if the system takes no handler for one of them.
pub fn on_signal(shutdown: CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => info!("SIGTERM received; draining"),
            _ = interrupt.recv() => info!("SIGINT received; draining"),
        }
        shutdown.cancel();
    });
    Ok(())
}
