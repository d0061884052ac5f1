//! Taking finalizers off all runs in a cluster, so that a watcher can be uninstalled. It needs no
//! server, and asks nothing about what is stored.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use tokio::time::sleep;

use hindsight_run::Kind;

use crate::{
    backoff::Backoff,
    cluster::{Address, Cluster, ClusterError, Held},
    plan::finalizer,
};
use hindsight_cluster::Pace;
use hindsight_runtime::clock::Clock;

/// How often a call is tried that may work in a while.
const TRIES: u32 = 8;

/// What is taken off, and how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wish {
    /// Only in this namespace.
    pub(crate) namespace: Option<String>,
    /// Also finalizers that Tekton Results' watcher puts on as well.
    pub(crate) tekton: bool,
    /// Report what would come off, and take nothing off.
    pub(crate) dry_run: bool,
    /// How many runs are written to a second.
    pub(crate) per_second: Option<f64>,
}

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// These finalizers are off, or would be.
    Released(&'a str, &'a [String]),
    /// It has only finalizers that were not asked for.
    Left(&'a str),
    /// Its finalizers stay, for this reason.
    Failed(&'a str, &'a str),
    /// No run of this kind was looked at, for this reason.
    Unseen(&'a str, &'a str),
}

/// How many runs there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// Their finalizers are off, or would be.
    pub(crate) released: usize,
    /// They have only finalizers that were not asked for.
    pub(crate) left: usize,
    /// Their finalizers could not be taken off.
    pub(crate) failed: usize,
    /// Kinds that could not be looked at.
    pub(crate) unseen: usize,
}

/// Takes finalizers off the runs of `kinds` in the cluster behind `client`, and calls `report` for each.
pub(crate) async fn release(
    client: Client,
    kinds: &[&'static Kind],
    wish: &Wish,
    clock: Arc<dyn Clock>,
    report: &mut (dyn FnMut(Outcome<'_>) + Send),
) -> Summary {
    let mut work = Release {
        cluster: Cluster::new(client, wish.namespace.clone()),
        pace: Pace::new(wish.per_second, 1),
        wish,
        clock,
        report,
        summary: Summary::default(),
    };
    for kind in kinds {
        if let Err(error) = work.kind(kind).await {
            let name = format!("{}.{}", kind.plural, kind.group);
            work.summary.unseen += 1;
            (work.report)(Outcome::Unseen(&name, &error.to_string()));
        }
    }
    work.summary
}

struct Release<'a> {
    cluster: Cluster,
    pace: Pace,
    wish: &'a Wish,
    clock: Arc<dyn Clock>,
    report: &'a mut (dyn FnMut(Outcome<'_>) + Send),
    summary: Summary,
}

impl Release<'_> {
    async fn kind(&mut self, kind: &'static Kind) -> Result<(), ClusterError> {
        let cluster = self.cluster.clone();
        let mut token = None;
        loop {
            let from = token.clone();
            let page = patiently(|| Box::pin(cluster.held(kind, from.clone()))).await;
            let (page, next) = match page {
                Ok(page) => page,
                // The cluster does not have the kind.
                Err(ClusterError::Moved) if token.is_none() => return Ok(()),
                // The list took too long; what is done is not on the next one.
                Err(ClusterError::Moved) => {
                    token = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for run in page {
                self.run(kind, run).await;
            }
            match next {
                Some(next) => token = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn run(&mut self, kind: &'static Kind, run: Held) {
        let at = Address {
            kind,
            namespace: run.namespace.clone(),
            name: run.name.clone(),
        };
        let name = format!("{} {}/{}", kind.kind, at.namespace, at.name);
        let taken = self.ours(&run.finalizers);
        if taken.is_empty() {
            if run.finalizers.iter().any(|known| finalizer::is_ours(known)) {
                self.summary.left += 1;
                (self.report)(Outcome::Left(&name));
            }
            return;
        }
        match self.take_off(&at, run).await {
            Ok(()) => {
                self.summary.released += 1;
                (self.report)(Outcome::Released(&name, &taken));
            }
            Err(error) => {
                self.summary.failed += 1;
                (self.report)(Outcome::Failed(&name, &error.to_string()));
            }
        }
    }

    /// Those of the finalizers that come off.
    fn ours(&self, finalizers: &[String]) -> Vec<String> {
        let is_meant =
            |name: &str| finalizer::is_ours(name) && (self.wish.tekton || finalizer::is_own(name));
        finalizers
            .iter()
            .filter(|name| is_meant(name))
            .cloned()
            .collect()
    }

    async fn take_off(&self, at: &Address, mut run: Held) -> Result<(), ClusterError> {
        for failures in 1.. {
            let taken = self.ours(&run.finalizers);
            if taken.is_empty() || self.wish.dry_run {
                break;
            }
            self.turn().await;
            let left: Vec<String> = run
                .finalizers
                .iter()
                .filter(|f| !taken.contains(f))
                .cloned()
                .collect();
            let nothing = std::collections::BTreeMap::new();
            let (uid, version) = (run.uid.as_str(), run.version.as_str());
            match self
                .cluster
                .remove_finalizers(at, uid, version, &left, &nothing)
                .await
            {
                Ok(_) => break,
                Err(error) if failures == TRIES => return Err(error),
                Err(ClusterError::Moved) => {}
                Err(error @ ClusterError::Passing { .. }) => {
                    sleep(wait(&error, failures)).await;
                }
                Err(error) => return Err(error),
            }
            // It changed, went, or made room for another one of its name.
            let cluster = &self.cluster;
            let newer = patiently(|| Box::pin(cluster.held_by(at))).await?;
            match newer.filter(|newer| newer.uid == run.uid) {
                Some(newer) => run = newer,
                None => break,
            }
        }
        Ok(())
    }

    async fn turn(&self) {
        let now = self.clock.now();
        let turn: Timestamp = self.pace.turn(now);
        sleep(turn.duration_since(now).try_into().unwrap_or_default()).await;
    }
}

/// Asks again while it may work in a while.
async fn patiently<'c, T>(
    call: impl Fn() -> BoxFuture<'c, Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    for failures in 1..TRIES {
        match call().await {
            Err(error @ ClusterError::Passing { .. }) => sleep(wait(&error, failures)).await,
            answer => return answer,
        }
    }
    call().await
}

fn wait(error: &ClusterError, failures: u32) -> Duration {
    let backoff = Backoff {
        first: Duration::from_millis(200),
        most: Duration::from_secs(10),
    };
    let wished = error.retry_after().unwrap_or_default();
    backoff.after(failures).max(wished)
}
