//! What the keys of the server take, alone and together.

mod access;

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
fn loads(flags: &[(&str, &str)]) -> Config {
    let config = Config::load(&sources(None, &[], flags));
    config.unwrap_or_else(|problems| panic!("{problems}"))
}

#[track_caller]
fn refuses(sources: &Sources, problems: &[&str]) {
    let seen = Config::load(sources).unwrap_err().to_string();
    assert_eq!(seen.lines().collect::<Vec<_>>(), problems);
}

#[test]
fn the_defaults_are_a_server_that_only_this_machine_reaches() {
    let config = Config::default();
    assert_eq!(config.db.to_string(), "sqlite:hindsight.db");
    assert_eq!(config.listen, ([127, 0, 0, 1], 8080).into());
    assert_eq!(config.metrics_listen, Some(([127, 0, 0, 1], 9090).into()));
    assert_eq!(config.auth, Auth::Off);
    assert_eq!(config.db_synchronous, Synchronous::Durable);
    assert!(!config.allow_unauthenticated_remote);
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
                ("max_message_bytes", "1B"),
                ("scan_budget", "0"),
                ("page_token_key", "too short a secret"),
                ("request_timeout", "0s"),
                ("objects_keep", "59m"),
                ("db_max_connections", "many"),
                ("db_synchronous", "full"),
            ],
        ),
        &[
            "log_levle in /etc/h.toml line 2: unknown key; did you mean `log_level`?",
            "scan_budget in /etc/h.toml line 3: is an array; want a text, a decimal number, true or \
             false",
            "HINDSIGHT_SCAN_BUDGTE in environment: unknown variable; did you mean \
             `HINDSIGHT_SCAN_BUDGET`?",
            "db in /etc/h.toml line 1: `mysql://me:***@db/h` is not a valid database; want \
             `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`",
            "--db-max-connections: `many` is not a valid number; want a whole number from 1 to 10000",
            "--db-synchronous: `full` is not a valid level of durability; want `durable`, `extra`, \
             `normal`, `off`, `on`, `remote_apply`, `remote_write` or `local`",
            "--objects-keep: `59m` is too short; want at least `1h`, or `forever`",
            "HINDSIGHT_LISTEN in environment: `8080` is not a valid address; want an IP address and \
             a port, as in `127.0.0.1:8080` or `[::]:8080`",
            "--auth: `magic` is not a valid method of authentication; want `off`, `kubernetes`, \
             `oidc` or `tokens`",
            "--max-message-bytes: `1B` is out of range; want 1KiB to 2GiB",
            "--request-timeout: `0s` is too short; want at least `1ms`",
            "--scan-budget: `0` is not a valid number; want a whole number from 1",
            "--page-token-key: the key has 18 characters; want at least 32, as `openssl rand -hex \
             32` makes them",
            "--log-level: `loud` is not a valid level; want `error`, `warn`, `info`, `debug`, `trace` or \
             `off`, or with a module `loud=debug`",
        ],
    );
}

#[test]
fn variables_of_kubernetes_services_and_of_sibling_programs_are_left_alone() {
    let names = [
        "HINDSIGHT_SERVICE_HOST",
        "HINDSIGHT_UI_PORT_80_TCP_PROTO",
        "HINDSIGHT_SERVER",
        "HINDSIGHT_WATCHER_GRACE",
        "HINDSIGHT_TEST_POSTGRES",
        "HINDSIGHT_FORBID_SKIP",
        "HINDSIGHT_CONFIG",
    ];
    let env = names.map(|name| (name, "tcp://10.0.0.1:8080"));
    let config = Config::load(&sources(None, &env, &[]));
    assert_eq!(config, Ok(Config::default()));
}

#[test]
fn two_listeners_cannot_share_a_port_unless_the_kernel_chooses() {
    let shared = [("listen", "127.0.0.1:7"), ("metrics_listen", "127.0.0.1:7")];
    refuses(
        &sources(None, &[], &shared),
        &["--metrics-listen: `127.0.0.1:7` is taken by listen; give it a port of its own"],
    );
    loads(&[("listen", "127.0.0.1:0"), ("metrics_listen", "127.0.0.1:0")]);
}

#[test]
fn no_secret_is_printed() {
    let config = Config::load(&sources(
        Some("db = 'postgres://me:hidden@db/h'\n"),
        &[
            ("HINDSIGHT_PAGE_TOKEN_KEY", KEY),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("HOME", "/root"),
        ],
        &[],
    ))
    .unwrap();
    let printed = config.print();
    assert!(
        printed.contains("db = \"postgres://me:***@db/h\""),
        "{printed}"
    );
    assert!(printed.contains("page_token_key = \"***\""), "{printed}");
    let all = format!("{printed}{config:?}");
    assert!(!all.contains("hidden") && !all.contains(KEY), "{all}");
    let cloud = [("aws_secret_access_key".to_owned(), "hidden".to_owned())];
    assert_eq!(config.cloud(), cloud.into());
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
        loads(&[("db", db), ("db_synchronous", level)]);
    }
    refuses(
        &sources(None, &[], &[("db", postgres), ("db_synchronous", "normal")]),
        &[
            "--db-synchronous: `normal` is not a valid level of durability of postgres://me@db/x; \
             want `durable`, `off`, `on`, `remote_apply`, `remote_write` or `local`",
        ],
    );
}

#[test]
fn limits_and_the_level_of_logs_change_without_a_restart() {
    let changed = loads(&[
        ("log_level", "debug"),
        ("db_wait", "1s"),
        ("caller_max_rate", "1"),
    ]);
    let keys = Config::default().differences(&changed);
    let keys: Vec<_> = keys.iter().map(|key| (key.name, key.live)).collect();
    assert_eq!(
        keys,
        [
            ("db_wait", false),
            ("caller_max_rate", true),
            ("log_level", true)
        ]
    );
}

#[test]
fn kfp_20_pipelines_are_off_and_their_store_is_the_database_or_kubernetes() {
    let config = Config::default();
    assert!(!config.enable_pipelines);
    assert_eq!(config.pipelines_store, PipelinesStore::Database);
    refuses(
        &sources(None, &[], &[("pipelines_store", "etcd")]),
        &[
            "--pipelines-store: `etcd` is not a valid store of pipelines; want `database` or `kubernetes`",
        ],
    );
    loads(&[
        ("enable_pipelines", "true"),
        ("pipelines_store", "kubernetes"),
    ]);
}
