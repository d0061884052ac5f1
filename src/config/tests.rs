//! Configuration as a whole: strength of sources, problems, the printed tree.

mod access;
mod places;

use clap::Command;

use super::*;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn sources(file: Option<&str>, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    let owned = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    };
    Sources {
        file: file.map(|text| File {
            path: "/etc/h.toml".to_owned(),
            text: Ok(text.to_owned()),
        }),
        env: owned(env),
        flags: owned(flags),
    }
}

#[track_caller]
fn refuses(sources: &Sources, problems: &[&str]) {
    let seen = Config::load(sources).unwrap_err().to_string();
    assert_eq!(seen.lines().collect::<Vec<_>>(), problems);
}

fn without_origins(config: Config) -> Config {
    Config {
        origins: BTreeMap::new(),
        ..config
    }
}

#[test]
fn nothing_said_gives_the_defaults() {
    let expected = Config {
        db: DbUrl::Sqlite {
            path: "hindsight.db".to_owned(),
        },
        listen: ([127, 0, 0, 1], 8080).into(),
        metrics_listen: Some(([127, 0, 0, 1], 9090).into()),
        auth: Auth::Off,
        auth_kubeconfig: None,
        auth_impersonate: true,
        auth_cache_allow: Span::seconds(10),
        auth_cache_deny: Span::seconds(5),
        auth_tokens_file: None,
        oidc_issuer: None,
        oidc_issuer_ca: None,
        oidc_audience: None,
        oidc_name_claim: "sub".to_owned(),
        oidc_groups_claim: "groups".to_owned(),
        oidc_roles_file: None,
        tls_cert: None,
        tls_key: None,
        tls_client_ca: None,
        tls_min_version: TlsVersion::V1_2,
        tls_cipher_suites: None,
        max_connections: NonZeroU32::new(4096).unwrap(),
        max_header_bytes: ByteSize::bytes(512 << 10),
        client_timeout: Span::seconds(60),
        keepalive: Span::seconds(60),
        connection_age: Span::seconds(0),
        cors_origins: None,
        allowed_hosts: None,
        caller_max_requests: Amount::new(1000).unwrap(),
        caller_max_rate: None,
        caller_max_scan: None,
        scan_slots: None,
        audit_log: AuditLog::Off,
        audit_denied_reads: false,
        log_level: "info".parse().unwrap(),
        log_format: LogFormat::Text,
        trace_endpoint: None,
        trace_percent: Percent::ALL,
        max_message_bytes: ByteSize::bytes(32 << 20),
        max_request_memory: ByteSize::bytes(192 << 20),
        scan_budget: NonZeroU64::new(1_000_000).unwrap(),
        request_timeout: Span::seconds(300),
        filter_language: FilterLanguage::Cel,
        page_token_key: None,
        shutdown_grace: Span::seconds(30),
        db_max_connections: NonZeroU32::new(10).unwrap(),
        db_long_connections: NonZeroU32::new(4).unwrap(),
        db_statement_timeout: Span::seconds(60),
        db_wait: Span::seconds(5),
        db_synchronous: Synchronous::Durable,
        objects_url: None,
        objects_above: ByteSize::bytes(1 << 20),
        objects_keep: Keep::of(Span::seconds(7 * 86_400)),
        cloud: CloudOptions::default(),
        allow_unauthenticated_remote: false,
        origins: BTreeMap::new(),
    };
    assert_eq!(Config::default(), expected);
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_defaults() {
    let config = Config::load(&sources(
        Some("listen = '127.0.0.1:1'\n\nscan_budget = 5_000\nlog_format = 'json'\n"),
        &[
            ("HINDSIGHT_LISTEN", "127.0.0.1:2"),
            ("HINDSIGHT_LOG_FORMAT", "text"),
            ("HOME", "/"),
        ],
        &[("listen", "localhost:3")],
    ))
    .unwrap();

    let file = |line| Origin::File {
        path: "/etc/h.toml".to_owned(),
        line,
    };
    let expected = Config {
        listen: ([127, 0, 0, 1], 3).into(),
        scan_budget: NonZeroU64::new(5_000).unwrap(),
        origins: BTreeMap::from([
            (
                "listen",
                Origin::Flag {
                    flag: "listen".to_owned(),
                },
            ),
            ("scan_budget", file(3)),
            (
                "log_format",
                Origin::Environment {
                    variable: "HINDSIGHT_LOG_FORMAT".to_owned(),
                },
            ),
        ]),
        ..Config::default()
    };
    assert_eq!(config, expected);
    assert_eq!(config.origin("db"), &Origin::Default);
}

#[test]
fn all_problems_are_reported_at_once_each_with_its_place() {
    refuses(
        &sources(
            Some("db = 'mysql://me:secret@db/h'\nlog_levle = 'info'\nscan_budget = [1]\n"),
            &[("HINDSIGHT_LISTEN", "8080"), ("HINDSIGHT_SCAN_BUDGTE", "5")],
            &[
                ("auth", "magic"),
                ("log_level", "loud"),
                ("log_format", "xml"),
                ("max_message_bytes", "1B"),
                ("scan_budget", "0"),
                ("page_token_key", "too short a secret"),
                ("shutdown_grace", "30"),
                ("db_max_connections", "many"),
                ("allow_unauthenticated_remote", "yes"),
                ("metrics_listen", "on"),
            ],
        ),
        &[
            "log_levle in /etc/h.toml line 2: no such key; did you mean `log_level`?",
            "scan_budget in /etc/h.toml line 3: is an array; want a text, a decimal number, true or false",
            "HINDSIGHT_SCAN_BUDGTE in environment: no such variable; did you mean `HINDSIGHT_SCAN_BUDGET`?",
            "db in /etc/h.toml line 1: `mysql://me:***@db/h` is not a database; write `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`",
            "HINDSIGHT_LISTEN in environment: `8080` is not an address; write an IP address and a port, as in `127.0.0.1:8080` or `[::]:8080`",
            "--metrics-listen: `on` is not an address; write an IP address and a port, as in `127.0.0.1:8080` or `[::]:8080`, or `off`",
            "--auth: `magic` is not a method of authentication; want `off`, `kubernetes`, `oidc` or `tokens`",
            "--log-level: `loud` is not a level; want `error`, `warn`, `info`, `debug`, `trace` or `off`, or with a module `loud=debug`",
            "--log-format: `xml` is not a log format; want `text` or `json`",
            "--max-message-bytes: `1B` is out of range; want 1KiB to 2GiB",
            "--scan-budget: `0` is not a number of records; want a whole number from 1",
            "--page-token-key: the key has 18 characters; want at least 32, as `openssl rand -hex 32` makes them",
            "--shutdown-grace: `30` is not a duration; write `30s`, `10m` or `1h`",
            "--db-max-connections: `many` is not a number of connections; want a whole number from 1 to 10000",
            "--allow-unauthenticated-remote: `yes` is neither `true` nor `false`",
        ],
    );
}

#[test]
fn a_value_is_checked_even_when_a_stronger_source_overrides_it() {
    refuses(
        &sources(
            Some("listen = 'nowhere'\n"),
            &[],
            &[("listen", "127.0.0.1:3")],
        ),
        &[
            "listen in /etc/h.toml line 1: `nowhere` is not an address; write an IP address and a port, as in `127.0.0.1:8080` or `[::]:8080`",
        ],
    );
}

#[test]
fn a_file_that_cannot_be_read_or_parsed_is_a_problem_among_others() {
    let missing = Sources {
        file: Some(File {
            path: "/etc/h.toml".to_owned(),
            text: Err("no such file".to_owned()),
        }),
        ..sources(None, &[], &[("auth", "magic")])
    };
    refuses(
        &missing,
        &[
            "/etc/h.toml: cannot be read: no such file",
            "--auth: `magic` is not a method of authentication; want `off`, `kubernetes`, `oidc` or `tokens`",
        ],
    );

    let broken = sources(
        Some("auth = 'off'\nauth = 'off'\nlisten = \nscan-budget = 1\n"),
        &[],
        &[],
    );
    let seen = Config::load(&broken).unwrap_err().to_string();
    let places: Vec<_> = seen
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "/etc/h.toml line 2",
            "/etc/h.toml line 3",
            "scan-budget in /etc/h.toml line 4",
        ],
        "{seen}"
    );
    refuses(
        &sources(Some("[server]\nlisten = 'x'\n"), &[], &[]),
        &[
            "server in /etc/h.toml line 1: no such key; there are db, listen, metrics_listen, auth, \
           auth_kubeconfig, auth_impersonate, auth_cache_allow, auth_cache_deny, \
           auth_tokens_file, oidc_issuer, oidc_issuer_ca, oidc_audience, oidc_name_claim, oidc_groups_claim, oidc_roles_file, tls_cert, tls_key, tls_client_ca, tls_min_version, tls_cipher_suites, max_connections, max_header_bytes, client_timeout, keepalive, connection_age, cors_origins, allowed_hosts, caller_max_requests, caller_max_rate, caller_max_scan, scan_slots, audit_log, audit_denied_reads, log_level, log_format, trace_endpoint, trace_percent, max_message_bytes, max_request_memory, scan_budget, request_timeout, filter_language, page_token_key, shutdown_grace, \
           db_max_connections, db_long_connections, db_statement_timeout, db_wait, db_synchronous, objects_url, objects_above, objects_keep, allow_unauthenticated_remote",
        ],
    );
}

#[test]
fn variables_of_kubernetes_services_and_of_sibling_programs_are_left_alone() {
    let names = [
        "HINDSIGHT_SERVICE_HOST",
        "HINDSIGHT_SERVICE_PORT",
        "HINDSIGHT_SERVICE_PORT_GRPC",
        "HINDSIGHT_PORT",
        "HINDSIGHT_PORT_8080_TCP",
        "HINDSIGHT_PORT_8080_TCP_ADDR",
        "HINDSIGHT_UI_PORT_80_TCP_PROTO",
        "HINDSIGHT_UI_SERVICE_HOST",
        "HINDSIGHT_SERVER",
        "HINDSIGHT_WATCHER_GRACE",
        "HINDSIGHT_TEST_POSTGRES",
        "HINDSIGHT_FORBID_SKIP",
        "HINDSIGHT_CONFIG",
    ];
    let env = names.map(|name| (name, "tcp://10.0.0.1:8080"));
    assert_eq!(
        Config::load(&sources(None, &env, &[])),
        Ok(Config::default())
    );

    let port = sources(None, &[("HINDSIGHT_DB_PORT", "5432")], &[]);
    let seen = Config::load(&port).unwrap_err().to_string();
    let start = "HINDSIGHT_DB_PORT in environment: no such variable; there are HINDSIGHT_DB, ";
    assert!(seen.starts_with(start), "{seen}");
}

#[test]
fn text_that_is_not_utf8_is_a_problem_not_a_different_name() {
    refuses(
        &sources(None, &[("HINDSIGHT_DB", "sqlite:caf\u{FFFD}.db")], &[]),
        &["HINDSIGHT_DB in environment: is not UTF-8 text"],
    );
}

#[test]
fn two_listeners_cannot_share_a_port_unless_the_kernel_chooses() {
    let shared = [("listen", "127.0.0.1:7"), ("metrics_listen", "127.0.0.1:7")];
    refuses(
        &sources(None, &[], &shared),
        &["--metrics-listen: `127.0.0.1:7` is taken by listen; give it a port of its own"],
    );
    let chosen = [("listen", "127.0.0.1:0"), ("metrics_listen", "127.0.0.1:0")];
    assert!(Config::load(&sources(None, &[], &chosen)).is_ok());
}

#[test]
fn the_printed_tree_shows_values_origins_and_no_secret() {
    let config = Config::load(&sources(
        Some("db = 'postgres://me:secret@db/h'\n"),
        &[("HINDSIGHT_PAGE_TOKEN_KEY", KEY)],
        &[("shutdown_grace", "90s"), ("metrics_listen", "off")],
    ))
    .unwrap();
    let expected = r#"
db = "postgres://me:***@db/h"         # /etc/h.toml line 1
listen = "127.0.0.1:8080"             # default
metrics_listen = "off"                # --metrics-listen
auth = "off"                          # default
# auth_kubeconfig is not set          # default
auth_impersonate = true               # default
auth_cache_allow = "10s"              # default
auth_cache_deny = "5s"                # default
# auth_tokens_file is not set         # default
# oidc_issuer is not set              # default
# oidc_issuer_ca is not set           # default
# oidc_audience is not set            # default
oidc_name_claim = "sub"               # default
oidc_groups_claim = "groups"          # default
# oidc_roles_file is not set          # default
# tls_cert is not set                 # default
# tls_key is not set                  # default
# tls_client_ca is not set            # default
tls_min_version = "1.2"               # default
# tls_cipher_suites is not set        # default
max_connections = 4096                # default
max_header_bytes = "512KiB"           # default
client_timeout = "1m"                 # default
keepalive = "1m"                      # default
connection_age = "0s"                 # default
# cors_origins is not set             # default
# allowed_hosts is not set            # default
caller_max_requests = 1000            # default
# caller_max_rate is not set          # default
# caller_max_scan is not set          # default
# scan_slots is not set               # default
audit_log = "off"                     # default
audit_denied_reads = false            # default
log_level = "info"                    # default
log_format = "text"                   # default
# trace_endpoint is not set           # default
trace_percent = 100                   # default
max_message_bytes = "32MiB"           # default
max_request_memory = "192MiB"         # default
scan_budget = 1000000                 # default
request_timeout = "5m"                # default
filter_language = "cel"               # default
page_token_key = "***"                # HINDSIGHT_PAGE_TOKEN_KEY in environment
shutdown_grace = "1m30s"              # --shutdown-grace
db_max_connections = 10               # default
db_long_connections = 4               # default
db_statement_timeout = "1m"           # default
db_wait = "5s"                        # default
db_synchronous = "durable"            # default
# objects_url is not set              # default
objects_above = "1MiB"                # default
objects_keep = "7d"                   # default
allow_unauthenticated_remote = false  # default
"#;
    assert_eq!(config.print(), expected.trim_start());
    assert!(
        Config::default()
            .print()
            .contains("# page_token_key is not set")
    );
    assert_eq!(format!("{:?}", config.page_token_key), "Some(***)");
}

#[test]
fn the_printed_tree_can_be_given_back_as_a_file() {
    let given = [
        ("db", "sqlite:a \"b\" #c.db"),
        ("log_level", "info,hindsight=debug"),
        ("max_message_bytes", "1025"),
    ];
    let config = Config::load(&sources(None, &[], &given)).unwrap();
    let again = Config::load(&sources(Some(&config.print()), &[], &[])).unwrap();
    assert_eq!(without_origins(again), without_origins(config));
}

#[test]
fn names_of_variables_and_flags_follow_from_the_key() {
    for key in KEYS {
        assert_eq!(
            key.env,
            format!("{}{}", sources::PREFIX, key.name.to_uppercase())
        );
        assert_eq!(key.flag, key.name.replace('_', "-"));
    }
}

#[test]
fn every_key_has_a_flag_whose_text_reaches_the_sources() {
    let command = flags(Command::new("serve"));
    let given = [
        "serve",
        "--db",
        "sqlite:x.db",
        "--allow-unauthenticated-remote",
        "--scan-budget=7",
    ];
    let matches = command.clone().get_matches_from(given);
    let seen = Sources::gather(&matches).flags;
    let expected = [
        ("db", "sqlite:x.db"),
        ("scan_budget", "7"),
        ("allow_unauthenticated_remote", "true"),
    ];
    assert_eq!(seen, sources(None, &[], &expected).flags);

    for key in KEYS {
        let argument = format!("--{}=text", key.flag);
        let matches = command.clone().get_matches_from(["serve", &argument]);
        assert_eq!(
            Sources::gather(&matches).flags,
            sources(None, &[], &[(key.name, "text")]).flags
        );
    }
}

#[test]
fn the_file_named_by_the_flag_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.toml").to_str().unwrap().to_owned();
    let gathered = || {
        let matches = flags(Command::new("serve")).get_matches_from(["serve", "--config", &path]);
        Sources::gather(&matches).file.unwrap()
    };
    assert!(gathered().text.unwrap_err().starts_with("No such file"));
    std::fs::write(&path, "db = 'sqlite:y.db'\n").unwrap();
    assert_eq!(
        gathered(),
        File {
            path: path.clone(),
            text: Ok("db = 'sqlite:y.db'\n".to_owned())
        }
    );
}

#[test]
fn the_reference_has_a_row_for_every_key() {
    let page = reference_markdown();
    for key in KEYS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", key.name)));
        let row = row.unwrap_or_else(|| panic!("{} has no row", key.name));
        assert!(
            row.contains(key.env) && row.contains(&format!("`--{}", key.flag)),
            "{row}"
        );
        assert_eq!(row.matches(" | ").count(), 4, "{row}");
    }
}

#[test]
fn what_a_write_waits_for_must_be_known_to_the_database() {
    let postgres = "postgres://me@db/x";
    for (db, level) in [
        ("sqlite:x.db", "durable"),
        ("sqlite:x.db", "extra"),
        ("sqlite:x.db", "off"),
        (postgres, "durable"),
        (postgres, "remote_apply"),
        (postgres, "off"),
    ] {
        let given = [("db", db), ("db_synchronous", level)];
        Config::load(&sources(None, &[], &given)).unwrap();
    }
    refuses(
        &sources(None, &[], &[("db", postgres), ("db_synchronous", "normal")]),
        &[
            "--db-synchronous: `normal` is not known to postgres://me@db/x; want one of `durable`, \
           `off`, `on`, `remote_apply`, `remote_write`, `local`",
        ],
    );
    refuses(
        &sources(None, &[("HINDSIGHT_DB_SYNCHRONOUS", "full")], &[]),
        &[
            "HINDSIGHT_DB_SYNCHRONOUS in environment: `full` is not what a write can wait for; want \
           `durable`, on SQLite also `extra`, `normal` or `off`, on PostgreSQL also `on`, \
           `remote_apply`, `remote_write`, `local` or `off`",
        ],
    );
}
