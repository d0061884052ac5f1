//! Why a server does not start, or stopped.

use std::net::SocketAddr;

use hindsight_access::auth;
use hindsight_storage as storage;
use hindsight_transcode as rest;

use crate::{
    app::tls::TlsError,
    config::{self},
    events, retention,
};

/// Why a server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be used.
    #[error("the database {db} cannot be used")]
    Store {
        /// Which, without its password.
        db: String,
        /// What is wrong with the database, or with the way to it.
        #[source]
        source: storage::Error,
    },
    /// Nobody can be asked about callers.
    #[error("auth `{method}` cannot be used")]
    Auth {
        /// How callers were to be told apart.
        method: config::Auth,
        /// What keeps this way of judging callers from being set up.
        #[source]
        source: auth::ConnectError,
    },
    /// The users cannot be known.
    #[error("the file of users cannot be used")]
    Users(#[source] auth::FileError),
    /// Changes cannot be told.
    #[error("cannot write the audit log")]
    Audit(#[source] std::io::Error),
    /// Tokens of an issuer cannot be judged.
    #[error("auth `oidc` cannot be used")]
    Oidc(#[source] auth::OidcError),
    /// Events cannot be sent.
    #[error("the receivers of events (events_file) cannot be used")]
    Events(#[source] events::Error),
    /// Old runs cannot be deleted.
    #[error("the policies of retention (retention_file) cannot be used")]
    Retention(#[source] retention::FileError),
    /// Logs of another system cannot be read.
    #[error("logs of another system (logs_loki_url, logs_objects_url) cannot be read: {0}")]
    LogHomes(String),
    /// Clusters of Ray cannot be made anywhere.
    #[error("the cluster service of KubeRay (enable_ray) cannot be offered")]
    Ray(#[source] hindsight_ray::ConnectError),
    /// Pipelines cannot be kept in a cluster.
    #[error("the pipelines store of Kubeflow (enable_pipelines) cannot be offered")]
    Pipelines(#[source] hindsight_cluster::ConnectError),
    /// Packages of pipelines cannot be downloaded.
    #[error("packages of pipelines (enable_pipelines) cannot be downloaded")]
    Downloads(#[source] hindsight_kfp::download::Error),
    /// The admission webhooks have no certificate.
    #[error("the admission webhooks of pipelines cannot be served")]
    Webhooks(#[source] hindsight_runtime::tls::Error),
    /// Connections cannot be secured.
    #[error("secure connections (TLS) cannot be offered")]
    Tls(#[source] TlsError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}; choose another with --{flag}")]
    Listen {
        /// The address and port that the configuration names.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The descriptors do not decode; the binary was built wrong.
    #[error("the service descriptors are broken")]
    Descriptors(#[source] prost_reflect::DescriptorError),
    /// The descriptors ask for routes that cannot be; the binary was built wrong.
    #[error("the REST routes cannot be made")]
    Rest(#[source] rest::Error),
    /// The metrics page failed.
    #[error("serving metrics stopped")]
    Admin(#[source] std::io::Error),
}
