//! The typed client of a results server, ours or any that speaks `tekton.results.v1alpha2`.
//!
//! It connects when first used and again after a loss, so that it can be made before the
//! server is up. Every call has a deadline; nothing is retried here but lost races on etags.

mod batched;
mod store;

use std::time::Duration;

use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

pub use batched::Batched;
pub use store::{Effect, Stored};

use hindsight_proto::{
    MAX_MESSAGE_BYTES,
    v1::{
        archive_client::ArchiveClient, holds_client::HoldsClient, ingest_client::IngestClient,
        logs_client::LogsClient, queries_client::QueriesClient, runs_client::RunsClient,
    },
    v1alpha2::{logs_client::LogsClient as UploadsClient, results_client::ResultsClient},
};
use hindsight_run::Kinds;
use hindsight_runtime::traces;

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Base URL of the server: `http://host:port`, or `https://host:port` for TLS.
    pub server: String,
    /// Sent as `authorization: Bearer ...`.
    pub token: Option<String>,
    /// Authorities in PEM that may have signed the server's certificate, besides those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Certificate and key in PEM that are shown to a server which wants a client certificate.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// How long one call may take.
    pub deadline: Duration,
}

impl Options {
    /// Reaches `server` without a token, with 30 seconds a call.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            token: None,
            authorities: None,
            identity: None,
            deadline: DEADLINE,
        }
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is no URL that can be called.
    #[error(
        "`{server}` is not the address of a server: want `http://host:port` or `https://host:port`"
    )]
    Address {
        /// The address as [`Options::server`] gave it.
        server: String,
        /// What the parser said, if it was asked.
        #[source]
        source: Option<tonic::transport::Error>,
    },
    /// The authorities are no certificates.
    #[error("the authorities of the server are no certificates in PEM")]
    Authorities(#[source] Option<tonic::transport::Error>),
    /// The client certificate or its key is not PEM.
    #[error("the client certificate and its key are not a certificate and a key in PEM")]
    Identity(#[source] Option<tonic::transport::Error>),
    /// A client certificate without TLS.
    #[error("a client certificate needs an `https://` server, and `{0}` is not one")]
    IdentityWithoutTls(String),
    /// The token cannot be sent in a header.
    #[error("the token has characters that no header can carry")]
    Token,
}

/// Adds the bearer token and the trace to each call.
#[derive(Debug, Clone)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(trace) = traces::current().and_then(|trace| trace.parse().ok()) {
            request.metadata_mut().insert(traces::HEADER, trace);
        }
        if let Some(token) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// The generated client over our channel.
pub type Rpc = ResultsClient<InterceptedService<Channel, Bearer>>;

/// The generated client of streams of records, over the same channel.
pub type Ingest = IngestClient<InterceptedService<Channel, Bearer>>;

/// The generated client of questions.
pub type Queries = QueriesClient<InterceptedService<Channel, Bearer>>;

/// The generated client of files of the archive.
pub type Archive = ArchiveClient<InterceptedService<Channel, Bearer>>;

/// The generated client of holds.
pub type Holds = HoldsClient<InterceptedService<Channel, Bearer>>;

/// The generated client of questions about single runs.
pub type Runs = RunsClient<InterceptedService<Channel, Bearer>>;

/// The generated client of logs.
pub type Logs = LogsClient<InterceptedService<Channel, Bearer>>;

/// The generated client of logs as Tekton Results has them, which are uploaded whole.
pub type Uploads = UploadsClient<InterceptedService<Channel, Bearer>>;

/// How long one call may take unless told otherwise.
const DEADLINE: Duration = Duration::from_secs(30);

/// A client; clones share one connection.
#[derive(Debug, Clone)]
pub struct Client {
    rpc: Rpc,
    ingest: Ingest,
    queries: Queries,
    runs: Runs,
    archive: Archive,
    holds: Holds,
    logs: Logs,
    uploads: Uploads,
    deadline: Duration,
    kinds: Kinds,
}

impl Client {
    /// Prepares a client; nothing is connected yet.
    ///
    /// # Errors
    /// If the address or the token cannot be used.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let refuse = |source| Error::Address {
            server: options.server.clone(),
            source,
        };
        let scheme = options.server.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("http" | "https")) {
            return Err(refuse(None));
        }
        let mut endpoint = Endpoint::from_shared(options.server.clone())
            .map_err(|e| refuse(Some(e)))?
            .connect_timeout(Duration::from_secs(5))
            .timeout(options.deadline)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_while_idle(true);
        if scheme == Some("http") && options.identity.is_some() {
            return Err(Error::IdentityWithoutTls(options.server.clone()));
        }
        if scheme == Some("https") {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if let Some(pem) = &options.authorities {
                // Of a text without any there would be no complaint.
                if !String::from_utf8_lossy(pem).contains("-----BEGIN CERTIFICATE-----") {
                    return Err(Error::Authorities(None));
                }
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            if let Some((certificate, key)) = &options.identity {
                let is_pem = |pem: &[u8], what| String::from_utf8_lossy(pem).contains(what);
                if !is_pem(certificate, "-----BEGIN CERTIFICATE-----")
                    || !is_pem(key, "PRIVATE KEY-----")
                {
                    return Err(Error::Identity(None));
                }
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            let (authorities, identity) =
                (options.authorities.is_some(), options.identity.is_some());
            endpoint = endpoint.tls_config(tls).map_err(|error| match () {
                () if identity => Error::Identity(Some(error)),
                () if authorities => Error::Authorities(Some(error)),
                () => refuse(Some(error)),
            })?;
        }
        let client = Self::over(endpoint.connect_lazy(), options.token.as_deref())?;
        Ok(Self {
            deadline: options.deadline,
            ..client
        })
    }

    /// A client over a channel that is there already; 30 seconds a batched write.
    ///
    /// # Errors
    /// If the token cannot be used.
    pub fn over(channel: Channel, token: Option<&str>) -> Result<Self, Error> {
        let token = match token {
            // The parser's error repeats the secret; ours does not.
            Some(token) => Some(
                format!("Bearer {token}")
                    .parse()
                    .map_err(|_secret| Error::Token)?,
            ),
            None => None,
        };
        let bearer = Bearer(token);
        let rpc = ResultsClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let queries = QueriesClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let runs = RunsClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let archive = ArchiveClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let holds = HoldsClient::with_interceptor(channel.clone(), bearer.clone());
        let logs = LogsClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let uploads = UploadsClient::with_interceptor(channel.clone(), bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let ingest = IngestClient::with_interceptor(channel, bearer)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self {
            rpc,
            ingest,
            queries,
            runs,
            archive,
            holds,
            logs,
            uploads,
            deadline: DEADLINE,
            kinds: Kinds::built_in(),
        })
    }

    /// The same client for runs of `kinds`, of which it tells earlier states from later ones.
    #[must_use]
    pub fn with_kinds(self, kinds: Kinds) -> Self {
        Self { kinds, ..self }
    }

    /// The generated client of questions about many records.
    pub fn queries(&self) -> Queries {
        self.queries.clone()
    }

    /// The generated client of questions about single runs.
    pub fn runs(&self) -> Runs {
        self.runs.clone()
    }

    /// The generated client of files of the archive.
    pub fn archive(&self) -> Archive {
        self.archive.clone()
    }

    /// The generated client of holds.
    pub fn holds(&self) -> Holds {
        self.holds.clone()
    }

    /// The generated client of logs.
    pub fn logs(&self) -> Logs {
        self.logs.clone()
    }

    /// The generated client of logs that are uploaded whole.
    pub fn uploads(&self) -> Uploads {
        self.uploads.clone()
    }

    /// The generated client of streams of records, for streams that need something else.
    pub fn ingest(&self) -> Ingest {
        self.ingest.clone()
    }

    /// A way to store many runs at once, over a stream of its own.
    pub fn batched(&self) -> Batched {
        Batched::new(self.clone())
    }

    /// The generated client, for calls that need nothing more.
    pub fn rpc(&self) -> Rpc {
        self.rpc.clone()
    }
}
