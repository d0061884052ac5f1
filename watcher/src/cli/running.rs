//! A watcher from its start to its end.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
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
    choose_cryptography();
    let from_uid = launch.cluster_from_uid();
    let Launch {
        settings,
        mut config,
    } = launch;
    let client = cluster(settings.kubeconfig).await?;
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
    launch
        .settings
        .kubeconfig
        .as_deref()
        .map_or(Ok(()), readable)
}

/// The error of [`kube`] repeats the path and the cause.
fn readable(path: &Path) -> anyhow::Result<()> {
    let opened = std::fs::File::open(path);
    opened
        .map(drop)
        .with_context(|| format!("kubeconfig `{}` cannot be read", path.display()))
}

pub(super) async fn cluster(kubeconfig: Option<PathBuf>) -> anyhow::Result<kube::Client> {
    let mut config = match kubeconfig {
        None => kube::Config::infer()
            .await
            .context("no cluster was found; name a kubeconfig with --kubeconfig")?,
        Some(path) => {
            readable(&path)?;
            let read = kube::config::Kubeconfig::read_from(&path)
                .with_context(|| format!("kubeconfig `{}` cannot be read", path.display()))?;
            kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
                .await
                .with_context(|| format!("kubeconfig `{}` leads nowhere", path.display()))?
        }
    };
    // Otherwise a call that meets a busy API server is repeated for minutes, unseen, and keeps a
    // worker that long. What failed is tried again here, later, and others get their turn.
    config.default_retry = false;
    // Longer than a watch lasts. Each request has a deadline of its own besides; this is for what is
    // written to a connection that has died.
    config.read_timeout = Some(Duration::from_mins(5));
    config.reset_reader_on_write = true;
    kube::Client::try_from(config).context("the kubeconfig cannot be used")
}

/// Chooses for the whole process.
pub(super) fn choose_cryptography() {
    // Only fails if somebody chose before, and then that is what is wanted.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .unwrap_or_default();
}
