//! Kinds that a cluster may have: followed for as long as it has them, and looked for otherwise.

use std::{convert::Infallible, future::ready, pin::pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use hindsight_cluster::{ClusterError, classify};
use kube::runtime::watcher;
use tokio::{sync::mpsc::UnboundedReceiver, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Follows a kind until `shutdown`, while the cluster has it and shows it. Otherwise looks for it every `poll`.
pub(crate) async fn follow_while_there<H, F>(
    name: &str,
    poll: Duration,
    shutdown: &CancellationToken,
    has: impl Fn() -> H,
    follow: impl Fn() -> F,
) where
    H: Future<Output = Result<bool, ClusterError>>,
    F: Future<Output = ()>,
{
    let mut said = None;
    while !shutdown.is_cancelled() {
        let found = tokio::select! {
            () = shutdown.cancelled() => return,
            found = has() => found,
        };
        let state = match &found {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(ClusterError::Refused { .. }) => 2,
            Err(_) => 3,
        };
        if said.replace(state) != Some(state) {
            match &found {
                Ok(true) => info!("following {name}"),
                Ok(false) => info!("{name} is not installed; looking for it every {poll:?}"),
                Err(error) => {
                    warn!("{name} cannot be listed; trying again every {poll:?}: {error}")
                }
            }
        }
        if matches!(found, Ok(true)) {
            follow().await;
            // Whatever it is that ended, it is said again.
            said = None;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(poll) => {}
        }
    }
}

/// Passes for as long as `watches` go on; then cancels `ending`, by which their queue ends, and waits for those
/// that are under way.
pub(crate) async fn pass_beside<T>(
    passes: impl Stream<Item = T>,
    watches: impl Future<Output = ()>,
    ending: &CancellationToken,
) {
    let mut passes = pin!(passes.for_each(|_| ready(())));
    let is_over = tokio::select! {
        () = &mut passes => true,
        () = watches => false,
    };
    if !is_over {
        ending.cancel();
        passes.await;
    }
}

/// The names in a queue, until `ending`.
pub(crate) fn queued<N>(
    queue: UnboundedReceiver<N>,
    ending: CancellationToken,
) -> impl Stream<Item = Result<N, Infallible>> {
    let names = stream::unfold(queue, |mut queue| async move {
        let name = queue.recv().await?;
        Some((Ok(name), queue))
    });
    names.take_until(ending.cancelled_owned())
}

/// Whether a watch fails until the cluster is changed: the kind is gone, or may not be read.
pub(crate) fn is_lasting(error: &watcher::Error) -> bool {
    let refused = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => classify(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => return false,
    };
    let is_gone = matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 404
    );
    is_gone || matches!(refused, ClusterError::Refused { .. })
}
