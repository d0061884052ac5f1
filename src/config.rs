//! The configuration of `hindsight serve`: typed, checked as a whole, every value knowing
//! where it came from.
//!
//! Defaults give way to the file, the file to `HINDSIGHT_*` variables, those to flags.
//! [`Config::load`] is a function of a [`Sources`] value; only `config/sources.rs` reads
//! the environment and files. Nothing here opens a socket or a database.

mod amount;
mod audit;
mod ciphers;
mod database;
mod durability;
mod endpoint;
mod flags;
mod given;
mod hosts;
mod key;
mod keys;
mod language;
mod objects;
mod origins;
mod print;
mod problem;
mod reference;
mod secret;
mod sources;
mod units;
mod value;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use self::given::Reader;
pub use self::{
    amount::{Amount, Percent},
    audit::AuditLog,
    ciphers::CipherSuites,
    database::DbUrl,
    durability::Synchronous,
    endpoint::Endpoint,
    flags::{flags, flags_of},
    hosts::Hosts,
    key::Key,
    keys::KEYS,
    language::FilterLanguage,
    objects::{CloudOptions, Keep, ObjectsUrl},
    origins::Origins,
    problem::{BadValue, Origin, Problem, Problems},
    reference::reference_markdown,
    secret::Secret,
    sources::{File, Sources},
    units::{ByteSize, Span},
    value::{Auth, TlsVersion},
};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

/// What `hindsight serve` runs with. Made only by [`Config::load`], so every value has
/// been checked, alone and against the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where results and records are kept.
    pub db: DbUrl,
    /// Address of gRPC and REST.
    pub listen: SocketAddr,
    /// Address of metrics and health pages, unless they are off.
    pub metrics_listen: Option<SocketAddr>,
    /// How callers are told apart.
    pub auth: Auth,
    /// The cluster that is asked about callers, unless it is the one we run in.
    pub auth_kubeconfig: Option<PathBuf>,
    /// Whether callers may act for others.
    pub auth_impersonate: bool,
    /// How long a yes about a caller is believed.
    pub auth_cache_allow: Span,
    /// How long a no about a caller is believed.
    pub auth_cache_deny: Span,
    /// The users; there, and only there, where callers are told apart by tokens of a file.
    pub auth_tokens_file: Option<PathBuf>,
    /// Who issues tokens.
    pub oidc_issuer: Option<Endpoint>,
    /// Who certifies the issuer; the authorities of the system if absent.
    pub oidc_issuer_ca: Option<PathBuf>,
    /// For whom tokens are issued.
    pub oidc_audience: Option<String>,
    /// The claim that says who a caller is.
    pub oidc_name_claim: String,
    /// The claim that says to which groups a caller belongs.
    pub oidc_groups_claim: String,
    /// What groups and users may do.
    pub oidc_roles_file: Option<PathBuf>,
    /// The certificate of the port; there exactly where its key is.
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// Who must have certified every client, if anybody.
    pub tls_client_ca: Option<PathBuf>,
    /// Oldest version of TLS that is spoken.
    pub tls_min_version: TlsVersion,
    /// Cipher suites that are spoken; all safe ones where none are named.
    pub tls_cipher_suites: Option<CipherSuites>,
    /// Most connections to the API at once.
    pub max_connections: NonZeroU32,
    /// Largest head of a request.
    pub max_header_bytes: ByteSize,
    /// How long a client may do nothing where it is its turn.
    pub client_timeout: Span,
    /// After how much silence a client is asked whether it is there; zero for never.
    pub keepalive: Span,
    /// About how long a connection is used; zero for ever.
    pub connection_age: Span,
    /// Whose pages may ask from a browser.
    pub cors_origins: Option<Origins>,
    /// Names by which a server is asked that asks nobody who they are.
    pub allowed_hosts: Option<Hosts>,
    /// Most requests of one caller in flight.
    pub caller_max_requests: Amount,
    /// Most requests of one caller in a second.
    pub caller_max_rate: Option<Amount>,
    /// Most records that filters of one caller may read in a minute.
    pub caller_max_scan: Option<Amount>,
    /// How many filters are evaluated at once; unless it follows from the processors.
    pub scan_slots: Option<Amount>,
    /// Where writes and deletes are told.
    pub audit_log: AuditLog,
    /// Whether reads that are denied are told there too.
    pub audit_denied_reads: bool,
    /// Which log events are written.
    pub log_level: LogFilter,
    /// How log events are written.
    pub log_format: LogFormat,
    /// The collector that spans are sent to.
    pub trace_endpoint: Option<Endpoint>,
    /// How many of a hundred traces that begin here are sent.
    pub trace_percent: Percent,
    /// Largest message accepted or sent.
    pub max_message_bytes: ByteSize,
    /// Memory of requests and their answers.
    pub max_request_memory: ByteSize,
    /// How many records one call may read to answer a filter.
    pub scan_budget: NonZeroU64,
    /// How long a request that is no stream is worked on.
    pub request_timeout: Span,
    /// What filters are written in where callers do not say.
    pub filter_language: FilterLanguage,
    /// What page tokens are sealed with; without it the database keeps a key.
    pub page_token_key: Option<Secret>,
    /// How long requests in flight may take to finish once the server is told to stop.
    pub shutdown_grace: Span,
    /// Most connections held to the database at once.
    pub db_max_connections: NonZeroU32,
    /// How many of them are for what may take long.
    pub db_long_connections: NonZeroU32,
    /// How long PostgreSQL may work on one statement; for ever, if it is nothing.
    pub db_statement_timeout: Span,
    /// How long a call waits for a connection.
    pub db_wait: Span,
    /// What a write waits for before it is answered.
    pub db_synchronous: Synchronous,
    /// Where big payloads lie, if not in the database.
    pub objects_url: Option<ObjectsUrl>,
    /// Above how many stored bytes a payload is big.
    pub objects_above: ByteSize,
    /// How long objects stay that no row refers to.
    pub objects_keep: Keep,
    /// How buckets are reached.
    pub cloud: CloudOptions,
    /// Whether strangers may reach a server that asks nobody who they are.
    pub allow_unauthenticated_remote: bool,
    origins: BTreeMap<&'static str, Origin>,
}

impl Config {
    /// Reads and checks everything.
    ///
    /// # Errors
    ///
    /// All problems at once, also those of values that a later source overrides.
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let mut reader = Reader::over(sources);
        let mut config = Self {
            db: reader.read("db"),
            listen: reader.read("listen"),
            metrics_listen: reader.read("metrics_listen"),
            auth: reader.read("auth"),
            auth_kubeconfig: reader.read_optional("auth_kubeconfig"),
            auth_impersonate: reader.read("auth_impersonate"),
            auth_cache_allow: reader.read("auth_cache_allow"),
            auth_cache_deny: reader.read("auth_cache_deny"),
            auth_tokens_file: reader.read_optional("auth_tokens_file"),
            oidc_issuer: reader.read_optional("oidc_issuer"),
            oidc_issuer_ca: reader.read_optional("oidc_issuer_ca"),
            oidc_audience: reader.read_optional("oidc_audience"),
            oidc_name_claim: reader.read("oidc_name_claim"),
            oidc_groups_claim: reader.read("oidc_groups_claim"),
            oidc_roles_file: reader.read_optional("oidc_roles_file"),
            tls_cert: reader.read_optional("tls_cert"),
            tls_key: reader.read_optional("tls_key"),
            tls_client_ca: reader.read_optional("tls_client_ca"),
            tls_min_version: reader.read("tls_min_version"),
            tls_cipher_suites: reader.read_optional("tls_cipher_suites"),
            max_connections: reader.read("max_connections"),
            max_header_bytes: reader.read("max_header_bytes"),
            client_timeout: reader.read("client_timeout"),
            keepalive: reader.read("keepalive"),
            connection_age: reader.read("connection_age"),
            cors_origins: reader.read_optional("cors_origins"),
            allowed_hosts: reader.read_optional("allowed_hosts"),
            caller_max_requests: reader.read("caller_max_requests"),
            caller_max_rate: reader.read_optional("caller_max_rate"),
            caller_max_scan: reader.read_optional("caller_max_scan"),
            scan_slots: reader.read_optional("scan_slots"),
            audit_log: reader.read("audit_log"),
            audit_denied_reads: reader.read("audit_denied_reads"),
            log_level: reader.read("log_level"),
            log_format: reader.read("log_format"),
            trace_endpoint: reader.read_optional("trace_endpoint"),
            trace_percent: reader.read("trace_percent"),
            max_message_bytes: reader.read("max_message_bytes"),
            max_request_memory: reader.read("max_request_memory"),
            scan_budget: reader.read("scan_budget"),
            request_timeout: reader.read("request_timeout"),
            filter_language: reader.read("filter_language"),
            page_token_key: reader.read_optional("page_token_key"),
            shutdown_grace: reader.read("shutdown_grace"),
            db_max_connections: reader.read("db_max_connections"),
            db_long_connections: reader.read("db_long_connections"),
            db_statement_timeout: reader.read("db_statement_timeout"),
            db_wait: reader.read("db_wait"),
            db_synchronous: reader.read("db_synchronous"),
            objects_url: reader.read_optional("objects_url"),
            objects_above: reader.read("objects_above"),
            objects_keep: reader.read("objects_keep"),
            cloud: CloudOptions::of(&sources.env),
            allow_unauthenticated_remote: reader.read("allow_unauthenticated_remote"),
            origins: BTreeMap::new(),
        };
        let (origins, mut problems) = reader.finish();
        config.origins = origins;
        problems.extend(config.contradictions());
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(Problems::new(problems))
        }
    }

    /// Where the value of `key` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    /// What would let in more than was meant, or keep silent about it.
    fn open_doors(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let remote = !self.listen.ip().is_loopback() && !self.allow_unauthenticated_remote;
        if remote && self.auth == Auth::Off && self.tls_client_ca.is_none() {
            problems.push(self.problem(
                "listen",
                format!(
                    "`{}` can be reached from other machines while auth is `off`, so anyone could \
                     read and delete everything; listen on 127.0.0.1, choose another auth, or set \
                     allow_unauthenticated_remote = true if something in front of this server \
                     asks who they are",
                    self.listen
                ),
            ));
        }
        if self.auth == Auth::Off
            && !self.allow_unauthenticated_remote
            && self.cors_origins == Some(Origins::Any)
        {
            problems.push(self.problem(
                "cors_origins",
                "`*` lets every web page that is open on this machine read and delete everything \
                 while auth is `off`; name the origins, or choose another auth"
                    .to_owned(),
            ));
        }
        if self.audit_denied_reads && self.audit_log == AuditLog::Off {
            problems.push(self.problem("audit_denied_reads", "needs audit_log too".to_owned()));
        }
        problems
    }

    /// What is wrong with values that are well-formed each by itself.
    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = self.open_doors();
        if !self.db_synchronous.fits(&self.db) {
            let text = format!(
                "`{}` is not known to {}; want one of {}",
                self.db_synchronous,
                self.db,
                Synchronous::of(&self.db)
            );
            problems.push(self.problem("db_synchronous", text));
        }
        if self.auth_kubeconfig.is_some() && self.auth == Auth::Off {
            let text = self.idle("kubernetes");
            problems.push(self.problem("auth_kubeconfig", text));
        }
        if self.auth_tokens_file.is_some() && self.auth == Auth::Off {
            let text = self.idle("tokens");
            problems.push(self.problem("auth_tokens_file", text));
        }
        if self.auth == Auth::Tokens && self.auth_tokens_file.is_none() {
            let text = "`tokens` needs users; name their file with auth_tokens_file".to_owned();
            problems.push(self.problem("auth", text));
        }
        if self.auth == Auth::Off && self.oidc_issuer.is_some() {
            let text = self.idle("oidc");
            problems.push(self.problem("oidc_issuer", text));
        }
        for (key, there) in [
            ("oidc_issuer", self.oidc_issuer.is_some()),
            ("oidc_audience", self.oidc_audience.is_some()),
            ("oidc_roles_file", self.oidc_roles_file.is_some()),
        ] {
            if self.auth == Auth::Oidc && !there {
                problems.push(self.problem("auth", format!("`oidc` needs {key} too")));
            }
        }
        // A half of TLS would be none.
        for (key, given, needs, there) in [
            ("tls_cert", &self.tls_cert, "tls_key", &self.tls_key),
            ("tls_key", &self.tls_key, "tls_cert", &self.tls_cert),
            (
                "tls_client_ca",
                &self.tls_client_ca,
                "tls_cert",
                &self.tls_cert,
            ),
        ] {
            if given.is_some() && there.is_none() {
                problems.push(self.problem(key, format!("needs {needs} too")));
            }
        }
        let client = ("client_timeout", self.client_timeout);
        let request = ("request_timeout", self.request_timeout);
        for (key, _) in [client, request].iter().filter(|(_, s)| s.get().is_zero()) {
            let text = "is no time at all; want at least `1ms`".to_owned();
            problems.push(self.problem(key, text));
        }
        if self.metrics_listen == Some(self.listen) && self.listen.port() != 0 {
            problems.push(self.problem(
                "metrics_listen",
                format!(
                    "`{}` is taken by listen; give it a port of its own",
                    self.listen
                ),
            ));
        }
        problems
    }

    /// What is said of a key that names who decides about callers while nobody is asked: to go on
    /// would leave a server open that somebody meant to close.
    fn idle(&self, method: &str) -> String {
        format!(
            "is not used while auth is `{}`; set auth = \"{method}\", or leave it out",
            self.auth
        )
    }

    /// The keys whose values differ from those of `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let hidden = |key| match key {
            // What is shown of them is the same for all.
            "db" => self.db != other.db,
            "page_token_key" => self.page_token_key != other.page_token_key,
            _ => false,
        };
        let pairs = self.shown().into_iter().zip(other.shown());
        KEYS.iter()
            .zip(pairs)
            .filter(|(key, (own, others))| own != others || hidden(key.name))
            .map(|(key, _)| key.name)
            .collect()
    }

    fn problem(&self, key: &'static str, text: String) -> Problem {
        Problem::of_key(key, self.origin(key), text)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::load(&Sources::default()).expect("the defaults have no problem")
    }
}
