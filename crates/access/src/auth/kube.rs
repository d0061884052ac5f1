//! Access as a Kubernetes cluster decides it: who holds a token is asked by TokenReview, what
//! they may do by SubjectAccessReview. Nothing is decided here, and without an answer nothing is
//! allowed.

mod access_review;
mod impersonation;
mod token_review;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Semaphore;

use self::{
    access_review::{Attributes, Subject},
    impersonation::Impersonation,
};
use super::{
    Access, Authorizer, Caller, Credentials, Error, Grant,
    cache::{Cache, CachePolicy, digest},
    metrics::Metrics,
};
use crate::budget::FairSemaphore;
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;

/// How long the API server is waited for, in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many reviews of callers who are known are under way at once; others wait.
const AT_ONCE: usize = 64;
/// How many reviews of tokens that were never good are under way at once. Those of one machine do
/// not keep those of others waiting.
const UNKNOWN_AT_ONCE: usize = 16;
/// How many such tokens of one machine wait; more are turned away.
const UNKNOWN_WAITING: usize = 64;
/// How many answers are remembered, of each kind.
const REMEMBERED: usize = 10_000;

/// How a cluster is asked.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// For how long a yes is believed.
    pub keep_allowed: Duration,
    /// For how long a no is believed.
    pub keep_denied: Duration,
    /// Whether callers may act for others, if the cluster lets them.
    pub impersonate: bool,
}

/// Why no cluster can be asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig does not lead anywhere.
    #[error("the kubeconfig `{}` cannot be used", path.display())]
    Kubeconfig {
        /// Configured path of the kubeconfig.
        path: PathBuf,
        /// Why the file cannot be read, or which part is invalid.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// This is no pod, or one without a service account.
    #[error("this is no pod with a service account; name a cluster with --auth-kubeconfig")]
    NoCluster(#[source] Box<kube::config::InClusterError>),
    /// The configuration makes no client.
    #[error("the cluster cannot be reached as configured")]
    Client(#[source] Box<kube::Error>),
}

/// Access by the tokens and the RBAC of a cluster.
#[derive(Debug)]
pub struct Kubernetes {
    reviewer: Reviewer,
    tokens: Cache<Arc<Subject>>,
    rights: Cache<()>,
    impersonate: bool,
}

impl Kubernetes {
    /// Asks the cluster of `kubeconfig`, or the one that this pod runs in. Nothing is sent yet.
    ///
    /// # Errors
    /// If it is not said, or said wrongly, where the cluster is.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        options: Options,
        clock: Arc<dyn Clock>,
        registry: &mut Registry,
    ) -> Result<Self, ConnectError> {
        let mut config = match kubeconfig {
            Some(path) => from_file(path)
                .await
                .map_err(|source| ConnectError::Kubeconfig {
                    path: path.to_owned(),
                    source: Box::new(source),
                })?,
            None => {
                Config::incluster().map_err(|error| ConnectError::NoCluster(Box::new(error)))?
            }
        };
        config.connect_timeout = Some(PATIENCE);
        config.read_timeout = Some(PATIENCE);
        let client =
            Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))?;
        Ok(Self::over(client, options, clock, &Metrics::new(registry)))
    }

    fn over(client: Client, options: Options, clock: Arc<dyn Clock>, metrics: &Metrics) -> Self {
        let keep = CachePolicy {
            allowed: options.keep_allowed,
            denied: options.keep_denied,
            most: REMEMBERED,
        };
        Self {
            reviewer: Reviewer {
                client,
                turns: Arc::new(Semaphore::new(AT_ONCE)),
                unknown: FairSemaphore::new(UNKNOWN_AT_ONCE),
            },
            tokens: Cache::new(Arc::clone(&clock), keep, metrics.of("tokens")),
            rights: Cache::new(clock, keep, metrics.of("rights")),
            impersonate: options.impersonate,
        }
    }

    async fn decide(
        &self,
        credentials: &Credentials,
        access: &Access,
    ) -> Result<Arc<Caller>, Error> {
        let acting = self.acting(credentials)?;
        let mut refusal = Error::NoToken;
        for token in credentials.tried() {
            match self
                .with(token, credentials.source, acting.as_ref(), access)
                .await
            {
                Ok(caller) => return Ok(caller),
                Err(error) => refusal = refusal.or(error),
            }
        }
        Err(refusal)
    }

    /// For whom the caller acts, checked as far as that needs no cluster.
    fn acting(&self, credentials: &Credentials) -> Result<Option<Impersonation>, Error> {
        if credentials.acting_for.is_empty() {
            return Ok(None);
        }
        if !self.impersonate {
            // To answer as the caller itself would give away what only the caller may see.
            return Err(Error::Impersonation("this server does not take them"));
        }
        Impersonation::read(&credentials.acting_for).map(Some)
    }

    async fn with(
        &self,
        token: &str,
        source: Option<IpAddr>,
        acting: Option<&Impersonation>,
        access: &Access,
    ) -> Result<Arc<Caller>, Error> {
        let caller = self.subject(token, source).await?;
        let wanted = Attributes::of(access);
        let Some(acting) = acting else {
            self.check(&caller, &wanted, caller.caller()).await?;
            return Ok(Arc::clone(caller.caller()));
        };
        for needed in acting.needed() {
            self.check(&caller, needed, caller.caller()).await?;
        }
        let both = Arc::new(Caller {
            name: acting.subject().caller().name.clone(),
            by: Some(caller.caller().name.clone()),
        });
        self.check(acting.subject(), &wanted, &both).await?;
        Ok(both)
    }

    async fn subject(&self, token: &str, source: Option<IpAddr>) -> Result<Arc<Subject>, Error> {
        let key = digest([token.as_bytes()]);
        let queue = match self.tokens.was_allowed(&key) {
            true => ReviewQueue::Known,
            false => ReviewQueue::Unknown(network(source)),
        };
        let question = || {
            let (reviewer, token) = (self.reviewer.clone(), token.to_owned());
            async move { reviewer.token(token, &queue).await }
        };
        self.tokens.ask(key, question).await?.ok_or(Error::BadToken)
    }

    /// Asks whether `subject` may do this; if not, it is `caller` who may not.
    async fn check(
        &self,
        subject: &Arc<Subject>,
        wanted: &Attributes,
        caller: &Arc<Caller>,
    ) -> Result<(), Error> {
        let question = || {
            let reviewer = self.reviewer.clone();
            let (subject, wanted) = (Arc::clone(subject), wanted.clone());
            async move { reviewer.access(&subject, &wanted).await }
        };
        self.rights
            .ask(wanted.key(subject), question)
            .await?
            .ok_or_else(|| Error::Denied {
                caller: Arc::clone(caller),
            })
    }
}

#[async_trait]
impl Authorizer for Kubernetes {
    async fn identify(&self, credentials: &Credentials) -> Result<Arc<Caller>, Error> {
        in_time(async {
            let mut refusal = Error::NoToken;
            for token in credentials.tried() {
                match self.subject(token, credentials.source).await {
                    Ok(subject) => return Ok(Arc::clone(subject.caller())),
                    Err(error) => refusal = refusal.or(error),
                }
            }
            Err(refusal)
        })
        .await
    }

    async fn authorize(&self, credentials: &Credentials, access: Access) -> Result<Grant, Error> {
        let caller = in_time(self.decide(credentials, &access)).await?;
        Ok(Grant::new(access, caller))
    }
}

/// A client of the reviews, with their limits.
#[derive(Clone)]
struct Reviewer {
    client: Client,
    turns: Arc<Semaphore>,
    unknown: FairSemaphore,
}

/// The queue in which a review waits.
#[derive(Debug)]
enum ReviewQueue {
    /// Those who are known, or were lately.
    Known,
    /// Anybody, by where they come from.
    Unknown(String),
}

/// Where a caller comes from, as far as one who has a whole network cannot choose it.
fn network(source: Option<IpAddr>) -> String {
    match source {
        None => String::new(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => format!("{:x?}", &address.segments()[..4]),
        },
    }
}

/// Too many wait already.
#[derive(Debug, thiserror::Error)]
#[error("{UNKNOWN_WAITING} unknown tokens from one machine wait to be reviewed")]
struct QueueFull;

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

impl Reviewer {
    /// Waits for a turn and does `review` in it, all within the patience.
    async fn in_turn<T>(
        &self,
        queue: &ReviewQueue,
        review: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        in_time(async {
            match queue {
                ReviewQueue::Known => {
                    let _turn = self.turns.acquire().await.map_err(unanswered)?;
                    review.await.map_err(unanswered)
                }
                ReviewQueue::Unknown(network) => {
                    let turn = self.unknown.acquire_among(network, UNKNOWN_WAITING).await;
                    let _turn = turn.ok_or_else(|| unanswered(QueueFull))?;
                    review.await.map_err(unanswered)
                }
            }
        })
        .await
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, work)
        .await
        .map_err(unanswered)?
}

fn unanswered(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable {
        source: Arc::new(error),
    }
}

async fn from_file(path: &Path) -> Result<Config, kube::config::KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

#[cfg(test)]
mod tests;
