//! Who may do what. A [`Grant`] is the only way to the services, and only an [`Authorizer`]
//! makes one, so that forgetting to ask does not compile.

mod cache;
mod kube;
mod metrics;
mod oidc;
mod open;
mod rights;
mod tokens;

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    net::IpAddr,
    sync::Arc,
};

use async_trait::async_trait;

pub use self::kube::{ConnectError, Kubernetes, Options as KubernetesOptions};
pub use self::oidc::{
    Answer, Begun, CodeFlow, CodeFlowOptions, Oidc, Options as OidcOptions,
    SetupError as OidcError, SignInError, SignedIn,
};
pub use self::open::Open;
pub use self::tokens::{FileError, Tokens, token_hash};

use hindsight_proto::names::{Parent, ParentPattern, Resource};
use hindsight_runtime::error::{ErrorKind, HasKind};

/// What a caller asks to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Make a new one.
    Create,
    /// Read one resource by its name.
    Get,
    /// Change a resource that exists already.
    Update,
    /// Remove one resource by its name.
    Delete,
    /// Read many resources: lists, explanations, aggregates and summaries.
    List,
}

impl Verb {
    /// How it is called where roles are written down.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::List => "list",
        }
    }
}

/// A kind of resource, as roles name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guarded {
    /// Results, which group records.
    Results,
    /// Records of runs, and others.
    Records,
    /// Logs of runs.
    Logs,
    /// Clusters of Ray.
    Clusters,
    /// Compute templates of such clusters.
    ComputeTemplates,
    /// Pipelines of Kubeflow.
    Pipelines,
    /// Versions of pipelines of Kubeflow, which have a right of their own as objects of Kubernetes.
    PipelineVersions,
}

impl Guarded {
    /// How it is called where roles are written down.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Records => "records",
            Self::Logs => "logs",
            Self::Clusters => "clusters",
            Self::ComputeTemplates => "computetemplates",
            Self::Pipelines => "pipelines",
            Self::PipelineVersions => "pipelineversions",
        }
    }

    /// The API group under which roles of a cluster name it. Clusters of Ray have one of their own, so that a role for
    /// everything of the history does not make pods; that of pipelines is the one of Kubeflow.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::Results | Self::Records | Self::Logs => "results.tekton.dev",
            Self::Clusters | Self::ComputeTemplates => "ray.hindsight.dev",
            Self::Pipelines | Self::PipelineVersions => "pipelines.kubeflow.org",
        }
    }
}

impl From<Resource> for Guarded {
    fn from(resource: Resource) -> Self {
        match resource {
            Resource::Results => Self::Results,
            Resource::Records => Self::Records,
        }
    }
}

/// What is asked for: a verb on a kind of resource under a parent, or under all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// What the caller wants to do with the resource.
    pub verb: Verb,
    /// The kind of resource.
    pub resource: Guarded,
    /// Parent of the resource, or a pattern that stands for all parents.
    pub parent: ParentPattern,
}

/// How many tokens of one caller are tried.
const TRIED: usize = 4;

/// What a caller showed. `Debug` never shows a token.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The bearer tokens, in the order in which they were sent. Any of the first four may do.
    pub bearer: Vec<String>,
    /// For whom the caller says to act.
    pub acting_for: ActingFor,
    /// From which machine they came, if that is known.
    pub source: Option<IpAddr>,
}

impl Credentials {
    /// Why they are refused.
    fn unknown(&self) -> Error {
        if self.bearer.is_empty() {
            Error::NoToken
        } else {
            Error::BadToken
        }
    }
}

impl Credentials {
    /// The tokens that are tried, in their order.
    fn tried(&self) -> impl Iterator<Item = &str> {
        self.bearer.iter().take(TRIED).map(String::as_str)
    }
}

impl Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("bearer", &self.bearer.len())
            .field("acting_for", &self.acting_for)
            .finish()
    }
}

/// The identity that a caller impersonates; empty without impersonation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActingFor {
    /// The name of the user.
    pub user: Option<String>,
    /// The groups, if not those that follow from the name.
    pub groups: Vec<String>,
    /// User id from the key `impersonate-uid`; `None` if it is not sent.
    pub uid: Option<String>,
    /// Anything else, by key.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Whether part of it cannot be read: then no identity is assumed.
    pub unreadable: bool,
}

impl ActingFor {
    /// Whether the caller speaks for itself.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Somebody who was let in, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Name of the caller; empty where callers are not told apart.
    pub name: String,
    /// Name of the impersonating caller, if there is one.
    pub by: Option<String>,
}

/// Proof that the caller may perform this verb on this resource. Only this module makes one.
#[derive(Debug, Clone)]
pub struct Grant {
    access: Access,
    caller: Arc<Caller>,
}

impl Grant {
    fn new(access: Access, caller: Arc<Caller>) -> Self {
        Self { access, caller }
    }

    /// The caller who may do it.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The error for the same caller doing something else.
    #[must_use]
    pub fn denied(&self) -> Error {
        Error::Denied {
            caller: Arc::clone(&self.caller),
        }
    }

    /// Confirms that this grant is for `verb` on `resource` under `parent`.
    ///
    /// # Errors
    /// If it was made for something else.
    pub fn check(
        &self,
        verb: Verb,
        resource: impl Into<Guarded>,
        parent: &Parent,
    ) -> Result<(), Error> {
        let covers = match &self.access.parent {
            ParentPattern::Any => true,
            ParentPattern::Exact(granted) => granted == parent,
        };
        if covers && self.access.verb == verb && self.access.resource == resource.into() {
            Ok(())
        } else {
            Err(self.denied())
        }
    }

    /// Confirms that this grant is for `verb` on `resource`, and says where.
    ///
    /// # Errors
    /// If it was made for something else.
    pub fn scope(&self, verb: Verb, resource: impl Into<Guarded>) -> Result<&ParentPattern, Error> {
        if self.access.verb == verb && self.access.resource == resource.into() {
            Ok(&self.access.parent)
        } else {
            Err(self.denied())
        }
    }
}

/// Why access is refused. The texts say nothing of who the caller is, of what exists,
/// or of what others may do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// They showed no token.
    #[error("a bearer token is required: send `authorization: Bearer TOKEN`")]
    NoToken,
    /// No token that they showed is known.
    #[error("the bearer token is not valid")]
    BadToken,
    /// What they say about for whom they act makes no sense.
    #[error("the impersonation headers are not valid: {0}")]
    Impersonation(&'static str),
    /// They are known and may not.
    #[error("permission denied")]
    Denied {
        /// Who; for the audit log alone.
        caller: Arc<Caller>,
    },
    /// Whoever decides does not answer.
    #[error("access cannot be checked at the moment; try again")]
    Unavailable {
        /// Why; for the log alone.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoToken | Self::BadToken | Self::Impersonation(_) => ErrorKind::Unauthenticated,
            Self::Denied { .. } => ErrorKind::Denied,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
        }
    }
}

impl Error {
    /// Of two reasons why two tokens did not do, the one that helps the caller more.
    fn or(self, other: Self) -> Self {
        let weight = |error: &Self| match error {
            Self::NoToken => 0,
            Self::BadToken => 1,
            Self::Impersonation(_) => 2,
            Self::Denied { .. } => 3,
            // It may be the missing answer that would have allowed it.
            Self::Unavailable { .. } => 4,
        };
        if weight(&other) > weight(&self) {
            other
        } else {
            self
        }
    }
}

/// Decides who may do what.
#[async_trait]
pub trait Authorizer: Debug + Send + Sync + 'static {
    /// Says whose `credentials` are, before anything is known of what they want.
    async fn identify(&self, credentials: &Credentials) -> Result<Arc<Caller>, Error>;

    /// Grants `access` to the caller of `credentials`.
    async fn authorize(&self, credentials: &Credentials, access: Access) -> Result<Grant, Error>;
}
