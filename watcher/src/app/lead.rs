//! One term of leading: everything that works on runs, from its start to its orderly end.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use hindsight_cluster::Lease;

use super::Error;
use crate::{
    config::{LeaseConfig, Logs},
    log_tasks,
    shared::{Role, Shared},
    watch, work,
};

/// How long tasks get to notice that they are abandoned.
pub(super) const LAST: Duration = Duration::from_secs(2);

/// How many runs get their finalizers at once, whatever else there is to do.
const PROTECTORS: usize = 16;

/// How many overdue runs are let go at once.
const RELEASERS: usize = 16;

/// How many stored runs are written on at once; how fast is said by the configuration.
const MARKERS: usize = 16;

/// Works while the lease is held.
pub(super) async fn lead(
    shared: &Arc<Shared>,
    config: &LeaseConfig,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let leases = shared.cluster.api.leases(config.namespace.as_deref());
    let mut lease = Lease::new(leases, config, shared.clock.as_ref());
    let standby = |leader: &str| {
        let leader = leader.to_owned();
        shared.set_role(Role::Standby { leader });
    };
    let spooled = async {
        work::store_spooled(shared).await;
        std::future::pending().await
    };
    let since = tokio::select! {
        biased;
        () = shutdown.cancelled() => return Ok(()),
        since = lease.acquire(standby) => since,
        () = spooled => return Ok(()),
    };
    info!("`{}` leads", config.identity);
    shared.set_role(Role::Leader);
    let result = tokio::select! {
        biased;
        // All tasks are aborted with the other branch.
        why = lease.keep(since) => {
            let leader = String::new();
            shared.set_role(Role::Standby { leader });
            return Err(Error::Lease { name: config.name.clone(), why });
        }
        result = watch_and_work(shared, shutdown) => result,
    };
    lease.release().await;
    result
}

pub(super) async fn watch_and_work(
    shared: &Arc<Shared>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let stop = shutdown.child_token();
    let mut tasks = JoinSet::new();
    for kind in &shared.config.kinds {
        tasks.spawn(watch::follow(Arc::clone(shared), kind, stop.clone()));
    }
    for _ in 0..shared.config.threadiness.get() {
        tasks.spawn(work::store(Arc::clone(shared), stop.clone()));
    }
    let collect = shared.config.policy.collect.as_ref();
    if collect.is_some_and(|collect| collect.namespaces) {
        tasks.spawn(watch::follow_namespaces(Arc::clone(shared), stop.clone()));
    }
    if shared.config.policy.finalizers {
        for _ in 0..PROTECTORS {
            tasks.spawn(work::protect(Arc::clone(shared), stop.clone()));
        }
    }
    for _ in 0..RELEASERS {
        tasks.spawn(work::release_overdue(Arc::clone(shared), stop.clone()));
    }
    for _ in 0..MARKERS {
        tasks.spawn(work::annotate(Arc::clone(shared), stop.clone()));
    }
    tasks.spawn(work::close_vanished(Arc::clone(shared), stop.clone()));
    if shared.config.logs != Logs::Off {
        tasks.spawn(log_tasks::collect(Arc::clone(shared), stop.clone()));
    }
    tasks.spawn(work::retry_refused(Arc::clone(shared), stop.clone()));
    if shared.server.spool.is_some() {
        tasks.spawn(work::spool_backlog(Arc::clone(shared), stop.clone()));
    }
    let result = tokio::select! {
        // Once it is cancelled the tasks end as well, and that is no surprise.
        biased;
        () = shutdown.cancelled() => Ok(()),
        ended = tasks.join_next() => Err(Error::Task {
            source: ended.and_then(std::result::Result::err),
        }),
    };
    stop.cancel();
    drain(shared, &mut tasks).await;
    result
}

/// Waits until all that was begun is done, or the grace is over.
async fn drain(shared: &Shared, tasks: &mut JoinSet<()>) {
    let grace = shared.config.shutdown_grace;
    if timeout(grace, ended(tasks)).await.is_ok() {
        return;
    }
    warn!(
        "not everything was stored within {grace:?}; what is in the cluster, or in the spool, is \
         stored after the next start"
    );
    shared.abandon.cancel();
    if timeout(LAST, ended(tasks)).await.is_err() {
        tasks.shutdown().await;
    }
}

async fn ended(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
