//! The table of keys. Names of variables, flags, the printed tree and the reference all
//! follow from it.

/// One thing that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// Name of the environment variable.
    pub env: &'static str,
    /// Name of the flag, without the dashes.
    pub flag: &'static str,
    /// What a value looks like, as in `ADDRESS`.
    pub value: &'static str,
    /// What it is for; one paragraph.
    pub help: &'static str,
    /// Text of the default; `None` when there is nothing unless it is set.
    pub default: Option<&'static str>,
    /// Whether the whole value must never be shown.
    pub secret: bool,
}

impl Key {
    /// Whether the flag alone, without a value, means yes.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.value == "BOOL"
    }
}

/// Every key, in the order in which they are printed.
pub const KEYS: &[Key] = &[
    Key {
        name: "db",
        env: "HINDSIGHT_DB",
        flag: "db",
        value: "URL",
        help: "Where results and records are kept: `sqlite:PATH`, or \
               `postgres://USER:PASSWORD@HOST:PORT/DATABASE` for several servers on one database.",
        default: Some("sqlite:hindsight.db"),
        secret: false,
    },
    Key {
        name: "listen",
        env: "HINDSIGHT_LISTEN",
        flag: "listen",
        value: "ADDRESS",
        help: "Address and port of gRPC and REST. Port 0 lets the kernel choose.",
        default: Some("127.0.0.1:8080"),
        secret: false,
    },
    Key {
        name: "metrics_listen",
        env: "HINDSIGHT_METRICS_LISTEN",
        flag: "metrics-listen",
        value: "ADDRESS",
        help: "Address and port of /metrics, /livez and /readyz, or `off`.",
        default: Some("127.0.0.1:9090"),
        secret: false,
    },
    Key {
        name: "auth",
        env: "HINDSIGHT_AUTH",
        flag: "auth",
        value: "METHOD",
        help: "How callers are told apart: `off` (whoever reaches the server may do everything), \
               `kubernetes` (by the tokens and the RBAC of a cluster), `oidc` (by the tokens of an \
               issuer) or `tokens` (by a file).",
        default: Some("off"),
        secret: false,
    },
    Key {
        name: "auth_kubeconfig",
        env: "HINDSIGHT_AUTH_KUBECONFIG",
        flag: "auth-kubeconfig",
        value: "PATH",
        help: "The cluster that auth `kubernetes` asks. When absent, the one that this pod runs \
               in.",
        default: None,
        secret: false,
    },
    Key {
        name: "auth_impersonate",
        env: "HINDSIGHT_AUTH_IMPERSONATE",
        flag: "auth-impersonate",
        value: "BOOL",
        help: "Whether callers may act for others with `Impersonate-*` headers, if the cluster of \
               auth `kubernetes` lets them. Otherwise such calls are refused.",
        default: Some("true"),
        secret: false,
    },
    Key {
        name: "auth_cache_allow",
        env: "HINDSIGHT_AUTH_CACHE_ALLOW",
        flag: "auth-cache-allow",
        value: "DURATION",
        help: "How long a yes of the cluster of auth `kubernetes`, or a token of auth `oidc`, is \
               believed. `0s` looks every time.",
        default: Some("10s"),
        secret: false,
    },
    Key {
        name: "auth_cache_deny",
        env: "HINDSIGHT_AUTH_CACHE_DENY",
        flag: "auth-cache-deny",
        value: "DURATION",
        help: "How long a no of the cluster of auth `kubernetes` is believed. `0s` asks every \
               time.",
        default: Some("5s"),
        secret: false,
    },
    Key {
        name: "auth_tokens_file",
        env: "HINDSIGHT_AUTH_TOKENS_FILE",
        flag: "auth-tokens-file",
        value: "PATH",
        help: "The users of auth `tokens`, in TOML. Read again when it changes.",
        default: None,
        secret: false,
    },
    Key {
        name: "oidc_issuer",
        env: "HINDSIGHT_OIDC_ISSUER",
        flag: "oidc-issuer",
        value: "URL",
        help: "Who issues the tokens of auth `oidc`, as in their claim `iss`. Its keys are \
               found by discovery.",
        default: None,
        secret: false,
    },
    Key {
        name: "oidc_issuer_ca",
        env: "HINDSIGHT_OIDC_ISSUER_CA",
        flag: "oidc-issuer-ca",
        value: "PATH",
        help: "Authorities in PEM, by one of which the issuer of auth `oidc` must be certified. When \
               absent, those of the system.",
        default: None,
        secret: false,
    },
    Key {
        name: "oidc_audience",
        env: "HINDSIGHT_OIDC_AUDIENCE",
        flag: "oidc-audience",
        value: "TEXT",
        help: "For whom the tokens of auth `oidc` must be issued, as in their claim `aud`.",
        default: None,
        secret: false,
    },
    Key {
        name: "oidc_name_claim",
        env: "HINDSIGHT_OIDC_NAME_CLAIM",
        flag: "oidc-name-claim",
        value: "TEXT",
        help: "The claim that says who a caller is.",
        default: Some("sub"),
        secret: false,
    },
    Key {
        name: "oidc_groups_claim",
        env: "HINDSIGHT_OIDC_GROUPS_CLAIM",
        flag: "oidc-groups-claim",
        value: "TEXT",
        help: "The claim that says to which groups a caller belongs.",
        default: Some("groups"),
        secret: false,
    },
    Key {
        name: "oidc_roles_file",
        env: "HINDSIGHT_OIDC_ROLES_FILE",
        flag: "oidc-roles-file",
        value: "PATH",
        help: "What groups and users of auth `oidc` may do, in TOML. Read again when it \
               changes.",
        default: None,
        secret: false,
    },
    Key {
        name: "tls_cert",
        env: "HINDSIGHT_TLS_CERT",
        flag: "tls-cert",
        value: "PATH",
        help: "Certificate of `listen` in PEM, followed by those that lead to its authority. With \
               it the port speaks TLS alone. Read again when it changes.",
        default: None,
        secret: false,
    },
    Key {
        name: "tls_key",
        env: "HINDSIGHT_TLS_KEY",
        flag: "tls-key",
        value: "PATH",
        help: "Private key of the certificate, in PEM.",
        default: None,
        secret: false,
    },
    Key {
        name: "tls_client_ca",
        env: "HINDSIGHT_TLS_CLIENT_CA",
        flag: "tls-client-ca",
        value: "PATH",
        help: "Authorities in PEM, by one of which every client must be certified (mTLS).",
        default: None,
        secret: false,
    },
    Key {
        name: "tls_min_version",
        env: "HINDSIGHT_TLS_MIN_VERSION",
        flag: "tls-min-version",
        value: "VERSION",
        help: "Oldest version of TLS that is spoken: `1.2` or `1.3`.",
        default: Some("1.2"),
        secret: false,
    },
    Key {
        name: "tls_cipher_suites",
        env: "HINDSIGHT_TLS_CIPHER_SUITES",
        flag: "tls-cipher-suites",
        value: "NAMES",
        help: "Cipher suites that are spoken, the preferred one first, such as \
               `TLS13_AES_256_GCM_SHA384`, with commas between them. When absent, all safe ones.",
        default: None,
        secret: false,
    },
    Key {
        name: "max_connections",
        env: "HINDSIGHT_MAX_CONNECTIONS",
        flag: "max-connections",
        value: "NUMBER",
        help: "Most connections to `listen` at once. Others wait until one closes.",
        default: Some("4096"),
        secret: false,
    },
    Key {
        name: "max_header_bytes",
        env: "HINDSIGHT_MAX_HEADER_BYTES",
        flag: "max-header-bytes",
        value: "SIZE",
        help: "Largest head of a request: its path, with the filter, and its headers. The path and \
               query alone have 65,534 bytes at most.",
        default: Some("512KiB"),
        secret: false,
    },
    Key {
        name: "client_timeout",
        env: "HINDSIGHT_CLIENT_TIMEOUT",
        flag: "client-timeout",
        value: "DURATION",
        help: "How long a client may take to send a head, to go on with a body, to take more of \
               what it is sent, or to answer whether it is there.",
        default: Some("60s"),
        secret: false,
    },
    Key {
        name: "keepalive",
        env: "HINDSIGHT_KEEPALIVE",
        flag: "keepalive",
        value: "DURATION",
        help: "After how much silence an HTTP/2 client is asked whether it is there. `0s` never \
               asks.",
        default: Some("60s"),
        secret: false,
    },
    Key {
        name: "connection_age",
        env: "HINDSIGHT_CONNECTION_AGE",
        flag: "connection-age",
        value: "DURATION",
        help: "About how long a connection is used before clients are asked to open another, so \
               that load spreads to new servers; what they asked is answered. `0s` is for ever.",
        default: Some("0s"),
        secret: false,
    },
    Key {
        name: "cors_origins",
        env: "HINDSIGHT_CORS_ORIGINS",
        flag: "cors-origins",
        value: "ORIGINS",
        help: "Whose pages may ask from a browser: origins such as `https://console.example`, \
               with commas between them, or `*`. When absent, nobody's.",
        default: None,
        secret: false,
    },
    Key {
        name: "caller_max_requests",
        env: "HINDSIGHT_CALLER_MAX_REQUESTS",
        flag: "caller-max-requests",
        value: "NUMBER",
        help: "Most requests that one caller may have in flight. Where nobody tells callers \
               apart, it is not counted.",
        default: Some("1000"),
        secret: false,
    },
    Key {
        name: "caller_max_rate",
        env: "HINDSIGHT_CALLER_MAX_RATE",
        flag: "caller-max-rate",
        value: "NUMBER",
        help: "Most requests that one caller may begin in a second, with as many at once. When \
               absent, any number.",
        default: None,
        secret: false,
    },
    Key {
        name: "caller_max_scan",
        env: "HINDSIGHT_CALLER_MAX_SCAN",
        flag: "caller-max-scan",
        value: "NUMBER",
        help: "Most records that one caller may have read in a minute for filters that the \
               database cannot answer by itself. When absent, any number.",
        default: None,
        secret: false,
    },
    Key {
        name: "scan_slots",
        env: "HINDSIGHT_SCAN_SLOTS",
        flag: "scan-slots",
        value: "NUMBER",
        help: "How many such filters are evaluated at once; callers take turns. When absent, \
               half the number of processors.",
        default: None,
        secret: false,
    },
    Key {
        name: "audit_log",
        env: "HINDSIGHT_AUDIT_LOG",
        flag: "audit-log",
        value: "PLACE",
        help: "Where every write and delete is told, as a line of JSON each: `stdout`, the path \
               of a file, or `off`.",
        default: Some("off"),
        secret: false,
    },
    Key {
        name: "log_level",
        env: "HINDSIGHT_LOG_LEVEL",
        flag: "log-level",
        value: "FILTER",
        help: "Which log events are written: `error`, `warn`, `info`, `debug`, `trace` or `off`, \
               and per module as in `info,hindsight::storage=debug`.",
        default: Some("info"),
        secret: false,
    },
    Key {
        name: "log_format",
        env: "HINDSIGHT_LOG_FORMAT",
        flag: "log-format",
        value: "FORMAT",
        help: "How log events are written to standard error: `text` or `json`.",
        default: Some("text"),
        secret: false,
    },
    Key {
        name: "trace_endpoint",
        env: "HINDSIGHT_TRACE_ENDPOINT",
        flag: "trace-endpoint",
        value: "URL",
        help: "Collector of traces, as `http://HOST:PORT` of OTLP over gRPC. When absent, nobody is told \
               of spans.",
        default: None,
        secret: false,
    },
    Key {
        name: "trace_percent",
        env: "HINDSIGHT_TRACE_PERCENT",
        flag: "trace-percent",
        value: "NUMBER",
        help: "How many of a hundred traces that begin here are sent. Of traces that callers began, \
               what they say.",
        default: Some("100"),
        secret: false,
    },
    Key {
        name: "max_message_bytes",
        env: "HINDSIGHT_MAX_MESSAGE_BYTES",
        flag: "max-message-bytes",
        value: "SIZE",
        help: "Largest message sent, from 1KiB to 2GiB. Requests may have 2KiB less, so that what \
               is stored can be sent back.",
        default: Some("32MiB"),
        secret: false,
    },
    Key {
        name: "max_request_memory",
        env: "HINDSIGHT_MAX_REQUEST_MEMORY",
        flag: "max-request-memory",
        value: "SIZE",
        help: "Memory that requests and their answers may take at once, each byte of a message \
               counted twice; one caller may take half of it. A request that finds none within 5 s \
               is refused.",
        default: Some("256MiB"),
        secret: false,
    },
    Key {
        name: "scan_budget",
        env: "HINDSIGHT_SCAN_BUDGET",
        flag: "scan-budget",
        value: "RECORDS",
        help: "How many records one call may read to answer a filter that the database cannot \
               answer by itself.",
        default: Some("1000000"),
        secret: false,
    },
    Key {
        name: "filter_language",
        env: "HINDSIGHT_FILTER_LANGUAGE",
        flag: "filter-language",
        value: "LANGUAGE",
        help: "What filters are written in where requests do not say: `cel`, or `labels` or \
               `fields`, Kubernetes label and field selectors.",
        default: Some("cel"),
        secret: false,
    },
    Key {
        name: "page_token_key",
        env: "HINDSIGHT_PAGE_TOKEN_KEY",
        flag: "page-token-key",
        value: "SECRET",
        help: "What page tokens are sealed with, at least 32 characters. When absent, the server \
               keeps a random key in the database, so that all replicas agree.",
        default: None,
        secret: true,
    },
    Key {
        name: "shutdown_grace",
        env: "HINDSIGHT_SHUTDOWN_GRACE",
        flag: "shutdown-grace",
        value: "DURATION",
        help: "How long requests in flight may take to finish once the server is told to stop.",
        default: Some("30s"),
        secret: false,
    },
    Key {
        name: "db_max_connections",
        env: "HINDSIGHT_DB_MAX_CONNECTIONS",
        flag: "db-max-connections",
        value: "NUMBER",
        help: "Most connections that this server holds to the database at once. On SQLite those that read for short calls; long calls have as many of their own.",
        default: Some("10"),
        secret: false,
    },
    Key {
        name: "db_wait",
        env: "HINDSIGHT_DB_WAIT",
        flag: "db-wait",
        value: "DURATION",
        help: "How long a call waits for a connection to PostgreSQL before it is refused as UNAVAILABLE.",
        default: Some("5s"),
        secret: false,
    },
    Key {
        name: "db_synchronous",
        env: "HINDSIGHT_DB_SYNCHRONOUS",
        flag: "db-synchronous",
        value: "LEVEL",
        help: "What a write waits for before it is answered. `durable`: until it is on disk. On \
               SQLite also `extra`, `normal` (lost if the machine crashes) or `off` (which may \
               damage the file as well). On PostgreSQL, as its `synchronous_commit`, also `on`, \
               `remote_apply`, `remote_write`, `local` or `off` (the last half second is lost if \
               the database crashes). The server says at its start if writes may be lost.",
        default: Some("durable"),
        secret: false,
    },
    Key {
        name: "objects_url",
        env: "HINDSIGHT_OBJECTS_URL",
        flag: "objects-url",
        value: "URL",
        help: "Where big payloads lie if not in the database: `file:///DIRECTORY`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. How a bucket is reached is read from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`).",
        default: None,
        secret: false,
    },
    Key {
        name: "objects_above",
        env: "HINDSIGHT_OBJECTS_ABOVE",
        flag: "objects-above",
        value: "SIZE",
        help: "Which payloads those are: the ones that take more than this once compressed.",
        default: Some("1MiB"),
        secret: false,
    },
    Key {
        name: "objects_keep",
        env: "HINDSIGHT_OBJECTS_KEEP",
        flag: "objects-keep",
        value: "DURATION",
        help: "How long an object stays after its payload was deleted or replaced: as long as the oldest backup that should be of use, at least `1h`, or `forever`.",
        default: Some("7d"),
        secret: false,
    },
    Key {
        name: "allow_unauthenticated_remote",
        env: "HINDSIGHT_ALLOW_UNAUTHENTICATED_REMOTE",
        flag: "allow-unauthenticated-remote",
        value: "BOOL",
        help: "Let `listen` be reachable from other machines although auth is `off`.",
        default: Some("false"),
        secret: false,
    },
];

/// The key with this name in the file.
pub(super) fn by_name(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
