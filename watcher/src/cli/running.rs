//! A watcher from its start to its end.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    app::{App, identify},
    config::Launch,
    sink::GrpcSink,
};

/// Watches as `launch` says and stores into `sink`, until `shutdown`; `server` is how its server is
/// called in logs. What `launch` says about that server is for whoever makes the sink.
///
/// # Errors
/// If no cluster is named or the watcher cannot run; see [`App::bind`] and [`App::run`].
pub async fn watch(
    launch: Launch,
    sink: GrpcSink,
    server: &str,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    hindsight_cluster::choose_cryptography();
    let from_uid = launch.cluster_from_uid();
    let Launch {
        settings,
        mut config,
    } = launch;
    let client = hindsight_cluster::connect(settings.kubeconfig).await?;
    if from_uid {
        let backoff = config.tuning.cluster;
        config.policy.cluster = identify(client.clone(), backoff, &shutdown).await?;
        if config.policy.cluster.is_none() {
            return Ok(());
        }
    }
    let collecting = match (&config.policy.collect, config.dry_run) {
        (None, _) => "nothing is deleted from the cluster",
        (Some(_), true) => "what would be deleted from the cluster is only logged",
        (Some(_), false) => "stored runs are deleted from the cluster",
    };
    info!(server, "storing into {server}; {collecting}");
    let app = App::bind(config, client, Arc::new(sink)).await?;
    let handle = app.handle();
    app.run(shutdown).await?;
    let progress = handle.progress();
    info!(
        stored = progress.stored,
        collected = progress.collected,
        lost = progress.lost,
        "ended in order"
    );
    Ok(())
}

/// Whether the kubeconfig that `launch` names can be read, before anything is made or opened.
///
/// # Errors
/// If it cannot.
pub fn check_kubeconfig(launch: &Launch) -> anyhow::Result<()> {
    let path = launch.settings.kubeconfig.as_deref();
    Ok(path.map_or(Ok(()), hindsight_cluster::readable)?)
}
