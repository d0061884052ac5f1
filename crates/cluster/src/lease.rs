//! Being the only replica that works, by a Lease of `coordination.k8s.io`.
//!
//! Every write names the version that it was decided about, so of two that want the lease one
//! gets it. Whether a holder is alive is judged by how long ago its lease changed by our own
//! clock; clocks of different machines are never compared. It protects from work done twice and
//! not from harm: UIDs and versions in everything that is asked of the cluster do that.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease as Object, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{debug, info, warn};

use crate::error::{ClusterError, call};
use hindsight_runtime::clock::Clock;

/// How long giving the lease back may take.
const LAST: Duration = Duration::from_secs(2);

/// A lease that only one replica holds at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Its namespace; `None` for that of the pod or the kubeconfig.
    pub namespace: Option<String>,
    /// Name of the lease; replicas that share it take turns.
    pub name: String,
    /// How this replica calls itself; no other one may.
    pub identity: String,
    /// How long it lasts unless it is renewed; whole seconds to others.
    pub duration: Duration,
    /// How long it is tried to renew it; less than it lasts.
    pub renew_deadline: Duration,
    /// How often it is renewed, or asked for.
    pub retry: Duration,
}

/// A name that no other process has: that of the host, or `program` where it has none, and digits by chance.
#[must_use]
pub fn identity(program: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => program,
        host => host,
    };
    // A new RandomState differs from all others; that is chance enough.
    let chance = RandomState::new().build_hasher().finish();
    format!("{host}_{chance:016x}")
}

/// The lease, held or not.
#[derive(Debug)]
pub struct Lease<'c> {
    api: Api<Object>,
    config: &'c LeaseConfig,
    clock: &'c dyn Clock,
    /// The version seen last, and since when it has been the newest.
    seen: Option<(Option<String>, Instant)>,
}

/// What an attempt came to.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// This replica holds it.
    Ours,
    /// Somebody else has it.
    Theirs(String),
}

impl<'c> Lease<'c> {
    /// The lease that `config` names, among `api`.
    pub fn new(api: Api<Object>, config: &'c LeaseConfig, clock: &'c dyn Clock) -> Self {
        Self {
            api,
            config,
            clock,
            seen: None,
        }
    }

    /// Waits until the lease is ours; tells who has it meanwhile. Returns when it was asked
    /// for, from which it counts. Cancel safe.
    pub async fn acquire(&mut self, standby: impl Fn(&str)) -> Instant {
        let mut known = None;
        let mut is_failing = false;
        loop {
            let began = Instant::now();
            match self.attempt(false).await {
                Ok(Turn::Ours) => return began,
                Ok(Turn::Theirs(holder)) => {
                    is_failing = false;
                    standby(&holder);
                    if known.as_ref() != Some(&holder) {
                        info!("`{holder}` leads; waiting for its lease");
                        known = Some(holder);
                    }
                }
                Err(error) if !is_failing => {
                    is_failing = true;
                    warn!(
                        "the lease `{}` cannot be asked for: {error}",
                        self.config.name
                    );
                }
                Err(error) => debug!("lease: {error}"),
            }
            sleep(self.config.retry).await;
        }
    }

    /// Keeps the lease, which was got at `renewed`, for as long as that works. Returns why it
    /// no longer does, in time before anybody else can have it.
    pub async fn keep(&mut self, mut renewed: Instant) -> String {
        let mut last = None;
        loop {
            sleep(self.config.retry).await;
            let end = renewed + self.config.renew_deadline;
            let began = Instant::now();
            let error = match timeout_at(end, self.attempt(true)).await {
                Ok(Ok(Turn::Ours)) => {
                    renewed = began;
                    last = None;
                    continue;
                }
                Ok(Ok(Turn::Theirs(holder))) if holder.is_empty() => {
                    return "it was taken by another replica".to_owned();
                }
                Ok(Ok(Turn::Theirs(holder))) => return format!("`{holder}` has it"),
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => last.take().unwrap_or_else(|| "no answer".to_owned()),
            };
            if Instant::now() >= end {
                let limit = self.config.renew_deadline;
                return format!("it could not be renewed within {limit:?}: {error}");
            }
            warn!("lease not renewed: {error}");
            last = Some(error);
        }
    }

    /// Gives the lease back, so that nobody has to wait until it is over.
    pub async fn release(self) {
        let name = &self.config.name;
        let give_back = async {
            let mut lease = call(self.api.get(name)).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_ref() != Some(&self.config.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.renew_time = Some(self.now());
            call(self.api.replace(name, &PostParams::default(), &lease))
                .await
                .map(drop)
        };
        let outcome: Result<Result<(), ClusterError>, _> = timeout(LAST, give_back).await;
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!("lease not released: {error}"),
            Err(_elapsed) => warn!("lease not released in time"),
        }
    }

    /// Takes or renews the lease. Whoever `holds` it does not take it from others.
    async fn attempt(&mut self, holds: bool) -> Result<Turn, ClusterError> {
        let name = self.config.name.as_str();
        let found = match call(self.api.get(name)).await {
            Ok(lease) => Some(lease),
            Err(ClusterError::Moved) => None,
            Err(error) => return Err(error),
        };
        let Some(mut lease) = found else {
            if holds {
                return Ok(Turn::Theirs(String::new()));
            }
            let lease = Object {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.taken(&LeaseSpec::default())),
            };
            let created = call(self.api.create(&PostParams::default(), &lease)).await;
            return won(created);
        };
        let spec = lease.spec.take().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let is_ours = holder == self.config.identity;
        if !is_ours && (holds || !self.is_over(&lease, &spec, &holder)) {
            return Ok(Turn::Theirs(holder));
        }
        lease.spec = Some(if is_ours {
            LeaseSpec {
                renew_time: Some(self.now()),
                ..spec
            }
        } else {
            self.taken(&spec)
        });
        // It has the version that was read; the API server refuses it for any other.
        won(call(self.api.replace(name, &PostParams::default(), &lease)).await)
    }

    /// Nobody holds the lease, or its holder has not renewed it for as long as it lasts.
    fn is_over(&mut self, lease: &Object, spec: &LeaseSpec, holder: &str) -> bool {
        let version = &lease.metadata.resource_version;
        let since = match &self.seen {
            Some((known, since)) if known == version => *since,
            _ => {
                let now = Instant::now();
                self.seen = Some((version.clone(), now));
                now
            }
        };
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        holder.is_empty() || since.elapsed() >= lasts
    }

    fn taken(&self, before: &LeaseSpec) -> LeaseSpec {
        let now = self.now();
        let seconds = self.config.duration.as_secs_f64().ceil();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it saturates, and no lease lasts that long"
        )]
        let seconds = seconds as i32;
        LeaseSpec {
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(before.lease_transitions.map_or(0, |n| n.saturating_add(1))),
            ..LeaseSpec::default()
        }
    }

    fn now(&self) -> MicroTime {
        let now: Timestamp = self.clock.now();
        MicroTime(now)
    }
}

/// Somebody else may have been faster.
fn won(written: Result<Object, ClusterError>) -> Result<Turn, ClusterError> {
    match written {
        Ok(_) => Ok(Turn::Ours),
        Err(ClusterError::Moved) => Err(ClusterError::Passing {
            message: "another client wrote it at the same time, or the namespace does not exist"
                .to_owned(),
            retry_after: None,
        }),
        Err(error) => Err(error),
    }
}
