//! The keys of the server: their types, defaults and help. The names of variables and flags, the
//! printed configuration and the reference follow from them.

use std::{net::SocketAddr, path::PathBuf};

use hindsight_config::{ByteSize, Endpoint, Number, Span, settings};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

use super::{
    audit::AuditLog,
    choices::{
        Auth, FilterLanguage, ObjectFormat, PipelinesStore, Synchronous, TlsVersion, Ui,
        VersionNameCheck,
    },
    ciphers::CipherSuites,
    clusters::{ClusterId, Clusters},
    database::DbUrl,
    hosts::Hosts,
    key::PageTokenKey,
    logs::{LogPaths, LogsLink, LokiQuery},
    namespace::Namespace,
    objects::{Keep, ObjectsUrl},
    origins::Origins,
    public_url::PublicUrl,
    redactions::Redactions,
};

/// A number of connections.
pub type Connections = Number<1, 10_000>;

/// A limit on what a caller may do.
pub type Amount = Number<1, 1_000_000_000>;

/// Bytes of the logs of a parent.
pub(super) type LogQuota = ByteSize<1>;

/// The size of a message, or of a part of one.
pub type MessageSize = ByteSize<{ 1 << 10 }, { 2 << 30 }>;

settings! {
    /// What `hindsight serve` runs with. Made only by [`Config::load`], so every value has
    /// been checked, alone and against the others.
    pub struct Config;

    ["Database"]
    /// Database of results and records: `sqlite:PATH`, or
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE` for several servers on one database.
    db: DbUrl = "sqlite:hindsight.db";
    /// Most connections of this server to the database. On SQLite those of short reads; long reads
    /// have as many of their own.
    db_max_connections: Connections = "10";
    /// Connections to PostgreSQL, at most all but one, for long calls: lists with filters or in
    /// other orders than that of time, sums, explanations. Writes, single reads and readiness never
    /// wait for these.
    db_long_connections: Connections = "4";
    /// Longest time of one statement on PostgreSQL; then it is ended and the call refused as
    /// DEADLINE_EXCEEDED. `0s` is no limit.
    db_statement_timeout: Span = "1m";
    /// Longest wait of a call for a connection to PostgreSQL; then it is refused as UNAVAILABLE.
    db_wait: Span = "5s";
    /// Durability of a write that is answered. `durable`: it is on disk. On SQLite also `extra`,
    /// `normal` (lost if the machine crashes) or `off` (which may damage the file as well). On
    /// PostgreSQL, as its `synchronous_commit`, also `on`, `remote_apply`, `remote_write`, `local`
    /// or `off` (the last half second is lost if the database crashes). The server warns at its
    /// start if writes may be lost.
    db_synchronous: Synchronous = "durable";

    ["Large payloads"]
    /// Store of large payloads, if not the database: `file:///DIRECTORY`, `s3://BUCKET/PREFIX`,
    /// `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. Credentials and endpoints of buckets are
    /// read from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`).
    objects_url: Option<ObjectsUrl>;
    /// Size above which a compressed payload is large.
    objects_above: MessageSize = "1MiB";
    /// Size above which a compressed part of a sealed log (1 MiB of text at most) is stored there.
    objects_log_above: MessageSize = "64KiB";
    /// Time that an object stays after its payload or log was deleted or replaced: the age of the oldest
    /// backup that should be of use, at least `1h`, or `forever`.
    objects_keep: Keep = "7d";

    ["Archive"]
    /// Where records of old runs are moved, as Parquet files, by policies of `retention_file` that have
    /// `archive_after`: a URL as of `objects_url`. Lists have them all the same. It must not change while records are
    /// there.
    archive_url: Option<ObjectsUrl>;

    ["Logs of runs"]
    /// Regular expressions of the syntax RE2, with spaces between them (`\s` stands for one in an
    /// expression). What matches in a line of a log is replaced by `***` before the line is stored, and
    /// before a line of another system is sent.
    logs_redact: Option<Redactions>;
    /// Loki that is asked for logs that are not stored, as the address below which `/loki/api/v1` is.
    logs_loki_url: Option<Endpoint>;
    /// Query of the log of one run, as docs/logs.md describes. The labels `container` and `pod` of what it
    /// gives name the container. When absent, that of Tekton Results' server.
    logs_loki_query: Option<LokiQuery>;
    /// File with the bearer token for Loki. Read again when it changes.
    logs_loki_token_file: Option<PathBuf>;
    /// Authorities in PEM, by one of which Loki must be certified. When absent, those of the system.
    logs_loki_ca: Option<PathBuf>;
    /// Tenant of Loki, sent as `X-Scope-OrgID`.
    logs_loki_tenant: Option<String>;
    /// Time after the end of a run in which its lines may still have come to Loki.
    logs_loki_delay: Span = "10m";
    /// Directory or bucket with logs that are not stored, such as Vector, Fluent Bit or Tekton Results
    /// write them: a URL as of `objects_url`, with credentials from the environment.
    logs_objects_url: Option<ObjectsUrl>;
    /// Paths of the log of one run below `logs_objects_url`, with spaces between them; the first at
    /// which there is something is read. One that ends with `/` is a folder with objects for each container.
    logs_objects_paths: LogPaths = "${parent}/${result}/${record}/ ${parent}/${log}/${name}-log";
    /// Content of these objects: `text`, or `json` with an object for each line; either may be
    /// compressed by gzip or zstd.
    logs_objects_format: ObjectFormat = "text";
    /// Longest time for reading the log of one run from another system.
    logs_home_timeout: Span<1> = "30s";
    /// Most bytes that are read of the log of one run from another system. What is longer ends with a
    /// line that says so.
    logs_home_bytes: MessageSize = "32MiB";
    /// Address of a page that shows a log that is not here, such as
    /// `https://logs.example/search?q=${uid}`. Pages and `hindsight logs` show it.
    logs_link: Option<LogsLink>;
    /// Most bytes that the lines of all logs of one parent (namespace) may have. More are refused with
    /// RESOURCE_EXHAUSTED, and a watcher ends such logs with a line that says so. When absent, no bound.
    logs_quota: Option<LogQuota>;

    ["Retention"]
    /// Policies by which old runs are deleted, in TOML, as docs/retention.md describes. When absent, runs stay.
    retention_file: Option<PathBuf>;

    ["Events"]
    /// Receivers of events about runs, in TOML, as docs/events.md describes. When absent, none.
    events_file: Option<PathBuf>;
    /// Time for which changes of runs are kept for those who follow them: a follower that was away for
    /// longer has to list again.
    changes_retention: Span<60_000> = "24h";

    ["Listeners"]
    /// Address and port of gRPC and REST. Port 0 lets the kernel choose.
    listen: SocketAddr = "127.0.0.1:8080";
    /// Address and port of /metrics, /livez and /readyz, or `off`.
    metrics_listen: Option<SocketAddr> = "127.0.0.1:9090";
    /// Certificate of `listen` in PEM, followed by those that lead to its authority. With it the
    /// port speaks TLS alone. Read again when it changes.
    tls_cert: Option<PathBuf>;
    /// Private key of the certificate, in PEM.
    tls_key: Option<PathBuf>;
    /// Authorities in PEM, by one of which every client must be certified (mTLS).
    tls_client_ca: Option<PathBuf>;
    /// Oldest version of TLS: `1.2` or `1.3`.
    tls_min_version: TlsVersion = "1.2";
    /// Cipher suites, the preferred one first, such as `TLS13_AES_256_GCM_SHA384`. When absent,
    /// all safe ones.
    tls_cipher_suites: Option<CipherSuites>;
    /// Most connections to `listen` at once. Others wait until one closes.
    max_connections: Connections = "4096";
    /// Largest head of a request: its path, with the filter, and its headers. The path and query
    /// alone have 65,534 bytes at most.
    max_header_bytes: MessageSize = "512KiB";
    /// Idle timeout of clients that are sending a head or a body, reading a response, or
    /// answering a ping.
    client_timeout: Span<1> = "60s";
    /// Silence after which an HTTP/2 client is pinged. `0s` is never.
    keepalive: Span = "60s";
    /// Approximate age at which clients are asked to open another connection, so that load spreads
    /// to new servers; requests in flight are answered. `0s` is no limit.
    connection_age: Span = "0s";
    /// Longest time for requests in flight to finish when the server stops.
    shutdown_grace: Span = "30s";

    ["Authentication"]
    /// Method of authentication: `off` (every caller may do everything), `kubernetes` (tokens and
    /// RBAC of a cluster), `oidc` (tokens of an issuer) or `tokens` (a file of users).
    auth: Auth = "off";
    /// Allow a non-loopback `listen` with auth `off`.
    allow_unauthenticated_remote: bool = "false";
    /// Kubeconfig of the cluster that decides with auth `kubernetes`. When absent, the cluster that
    /// this pod runs in.
    auth_kubeconfig: Option<PathBuf>;
    /// Allow impersonation by `Impersonate-*` headers, as far as the cluster of auth `kubernetes`
    /// does. Otherwise such calls are refused.
    auth_impersonate: bool = "true";
    /// TTL of cached positive decisions of auth `kubernetes`, and of tokens of auth `oidc`.
    /// `0s` caches nothing.
    auth_cache_allow: Span = "10s";
    /// TTL of cached negative decisions of auth `kubernetes`. `0s` caches nothing.
    auth_cache_deny: Span = "5s";
    /// Users of auth `tokens`, in TOML. Read again when it changes.
    auth_tokens_file: Option<PathBuf>;
    /// Issuer of the tokens of auth `oidc`, as in their claim `iss`. Its keys are found by discovery.
    oidc_issuer: Option<Endpoint>;
    /// Authorities in PEM, by one of which the issuer of auth `oidc` must be certified. When absent,
    /// those of the system.
    oidc_issuer_ca: Option<PathBuf>;
    /// Audience of the tokens of auth `oidc`, as in their claim `aud`.
    oidc_audience: Option<String>;
    /// Claim of the user's name.
    oidc_name_claim: String = "sub";
    /// Claim of the user's groups.
    oidc_groups_claim: String = "groups";
    /// Roles of groups and users of auth `oidc`, in TOML. Read again when it changes.
    oidc_roles_file: Option<PathBuf>;
    /// Client of the issuer as which browsers sign in (authorization code flow with PKCE). When absent,
    /// they paste a token. Its redirect URI is `public_url` with `/ui/login/callback`.
    oidc_client_id: Option<String>;
    /// File with the secret of `oidc_client_id`, read at each sign-in. When absent, the client is public.
    oidc_client_secret_file: Option<PathBuf>;
    /// Scopes that a sign-in asks for, between blanks; `openid` is one of them.
    oidc_scopes: String = "openid";

    ["Browsers"]
    /// Pages for browsers below `/ui`: `on` or `off`.
    ui: Ui = "on";
    /// Address at which browsers reach the server, if a proxy is in front of it, such as
    /// `https://results.example` or `https://example/results`. With `https` session cookies are
    /// sent over TLS alone.
    public_url: Option<PublicUrl>;
    /// Origins whose pages may send requests from a browser, such as `https://console.example`, or
    /// `*` for all, which needs authentication. When absent, none.
    cors_origins: Option<Origins>;
    /// Host names of a server with auth `off`, beside `localhost` and loopback addresses. When
    /// absent and `listen` is not loopback, any.
    allowed_hosts: Option<Hosts>;

    ["Limits"]
    /// Largest message sent, from 1KiB to 2GiB. Requests may have 2KiB less, so that what is stored
    /// can be sent back.
    max_message_bytes: MessageSize = "32MiB";
    /// Memory of all requests and answers in flight, each byte of a message counted twice; one
    /// caller may take half of it. A request that finds none within 5 s is refused.
    max_request_memory: MessageSize = "192MiB";
    /// Longest time of a unary request. Clients may ask for less.
    request_timeout: Span<1> = "5m";
    /// Most records that one call may read for a filter that the database cannot evaluate by itself.
    scan_budget: Number<1> = "1000000";
    /// Filters of that kind that are evaluated at once; callers take turns. When absent, half the
    /// number of processors.
    scan_slots: Option<Amount>;
    /// Most requests of one caller in flight. Per-caller limits require authentication.
    caller_max_requests: Amount = "1000", live;
    /// Most requests of one caller in a second, with as many at once. When absent, no limit.
    caller_max_rate: Option<Amount>, live;
    /// Most records read in a minute for one caller by filters that the database cannot evaluate by
    /// itself. When absent, no limit.
    caller_max_scan: Option<Amount>, live;

    ["Requests"]
    /// Language of filters where requests do not name one: `cel`, or `labels` or `fields`,
    /// Kubernetes label and field selectors.
    filter_language: FilterLanguage = "cel";
    /// Names of clusters by the `cluster_id` of their watchers, such as
    /// `6c2a2e1f-0000-4000-8000-000000000040=production`. Filters and `--cluster` take them, and lists
    /// of runs show them.
    cluster_names: Option<Clusters>;
    /// Key that seals page tokens and cursors, at least 32 characters. When absent, a random key is kept in the
    /// database, so that all replicas agree.
    page_token_key: Option<PageTokenKey>;

    ["Clusters of Ray"]
    /// Offer the cluster service of KubeRay: `/apis/v1/` and `/apis/v1alpha2/`, and the same over gRPC. It acts with the
    /// rights of this server on the Kubernetes cluster.
    enable_ray: bool = "false";
    /// Kubeconfig of the cluster in which clusters of Ray are made. When absent, the cluster that this pod runs in, or
    /// that `KUBECONFIG` names.
    ray_kubeconfig: Option<PathBuf>;
    /// The `cluster_id` of the watcher of that cluster, if it has one: the history of clusters is read from the parents
    /// `cluster/ID/namespace/NAMESPACE`, else from the namespaces.
    ray_cluster_id: Option<ClusterId>;

    ["Kubeflow pipelines"]
    /// Offer the pipelines store of Kubeflow: `/apis/v2beta1/pipelines`, and the same over gRPC.
    enable_pipelines: bool = "false";
    /// Store of pipelines: `database`, the one of results and records, or `kubernetes`, objects of
    /// `pipelines.kubeflow.org` and nothing else.
    pipelines_store: PipelinesStore = "database";
    /// Whether pipelines belong to the namespaces that requests name. Otherwise these are passed over.
    pipelines_multi_user: bool = "false";
    /// Namespace whose rights decide about pipelines of no namespace, and which has their objects in the store
    /// `kubernetes`.
    pipelines_namespace: Namespace = "kubeflow";
    /// Kubeconfig of the cluster of the store `kubernetes`. When absent, the cluster that this pod runs in, or that
    /// `KUBECONFIG` names.
    pipelines_kubeconfig: Option<PathBuf>;
    /// The only hosts that packages are downloaded from, `.example.com` for all below one. When absent, every host with
    /// a public address.
    pipelines_url_domains: Option<Hosts>;
    /// Download packages over `http` too.
    pipelines_url_http: bool = "false";
    /// Address and port of the admission webhooks of PipelineVersion objects, such as `0.0.0.0:8443`, or `off`.
    pipelines_webhook_listen: Option<SocketAddr> = "off";
    /// Certificates of the webhooks in PEM. Read again when they change, as the next.
    pipelines_webhook_cert: Option<PathBuf>;
    /// Private key of `pipelines_webhook_cert`, in PEM.
    pipelines_webhook_key: Option<PathBuf>;
    /// What the webhook does about PipelineVersion objects whose names do not fit together: `enforce`, refuse them, or
    /// `warn`.
    pipeline_version_name_check: VersionNameCheck = "enforce";
    /// Serve the two webhooks for all namespaces and nothing else: no gRPC, no REST and no database.
    global_kubernetes_webhook_mode: bool = "false";

    ["Logs, traces and audit"]
    /// Level of log events: `error`, `warn`, `info`, `debug`, `trace` or `off`, and per module
    /// as in `info,hindsight_storage=debug`.
    log_level: LogFilter = "info", live;
    /// Format of log events on standard error: `text` or `json`.
    log_format: LogFormat = "text";
    /// Collector of traces, as `http://HOST:PORT` of OTLP over gRPC. When absent, no spans are sent.
    trace_endpoint: Option<Endpoint>;
    /// Percentage of traces begun here that are sent. Traces that callers began follow their flag.
    trace_percent: Number<0, 100> = "100";
    /// Log of every write and delete, a line of JSON each: `stdout`, the path of a file, or `off`.
    audit_log: AuditLog = "off";
    /// Log denied reads to `audit_log` as well.
    audit_denied_reads: bool = "false";
}
