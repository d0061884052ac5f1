//! Which third-party crates may be named where.

/// A third-party crate, where it may be named, and where not even then. A pattern that ends
/// with `*` or `/` is a beginning, one that starts with `*` an end, any other the whole path.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) only: &'static [&'static str],
    pub(crate) never: &'static [&'static str],
}

const fn only(name: &'static str, only: &'static [&'static str]) -> Place {
    Place {
        name,
        only,
        never: &[],
    }
}

/// Integration tests, benchmarks and examples may name any crate.
pub(crate) const CRATES: &[Place] = &[
    only(
        "cel",
        &[
            "src/filter/parse.rs",
            "src/filter/parse/",
            "watcher/src/expression.rs",
        ],
    ),
    // The programs meet in one process, and nowhere else.
    only(
        "hindsight_watcher",
        &[
            "src/cli/all_in_one.rs",
            "src/cli/ledger.rs",
            "watcher/src/main.rs",
        ],
    ),
    only("sqlx", &["src/storage/"]),
    only("zstd", &["src/storage/"]),
    only(
        "object_store",
        &["src/storage/objects*", "src/storage/conformance/tests.rs"],
    ),
    only("url", &["src/storage/objects*"]),
    only(
        "tonic",
        &[
            "src/grpc*",
            "src/app*",
            "src/cli*",
            "src/import*",
            "src/rest*",
            "proto/",
            "watcher/src/sink*",
        ],
    ),
    only(
        "axum",
        &[
            "src/admin*",
            "src/app*",
            "src/auth/oidc/tests.rs",
            "src/grpc/deadline.rs",
            "src/grpc/fields.rs",
            "src/grpc/transport.rs",
            "src/rest*",
            "watcher/src/admin*",
        ],
    ),
    Place {
        name: "kube",
        only: WATCHING,
        never: DECIDING,
    },
    Place {
        name: "k8s_openapi",
        only: WATCHING,
        never: DECIDING,
    },
    only(
        "clap",
        &[
            "src/cli*",
            "src/config/",
            "watcher/src/cli*",
            "watcher/src/config*",
            "watcher/src/main.rs",
            "tests/kubesim/src/main.rs",
        ],
    ),
    only(
        "anyhow",
        &[
            "src/main.rs",
            "src/cli*",
            "watcher/src/main.rs",
            "watcher/src/cli*",
            "tests/kubesim/src/main.rs",
        ],
    ),
    only(
        "prometheus_client",
        &[
            "*/metrics.rs",
            "src/telemetry*",
            "watcher/src/metrics*",
            "watcher/src/telemetry*",
        ],
    ),
    only(
        "tracing_subscriber",
        &[
            "src/telemetry*",
            "proto/src/traces.rs",
            "watcher/src/telemetry*",
            "tests/kubesim/src/main.rs",
        ],
    ),
    only(
        "prost_reflect",
        &[
            "src/app*",
            "src/grpc/fields*",
            "src/grpc/reflection.rs",
            "src/rest*",
            "proto/src/wire_tests.rs",
        ],
    ),
    only(
        "tokio_rustls",
        &["src/app*", "src/auth/oidc*", "tests/kubesim/src/tls.rs"],
    ),
    only(
        "rustix",
        &["src/background.rs", "src/main.rs", "watcher/src/main.rs"],
    ),
    only("x509_parser", &["src/app/tls*"]),
    only("jsonwebtoken", &["src/auth/oidc*"]),
    only("hyper_rustls", &["src/auth/oidc*"]),
    only("comfy_table", &["src/cli*"]),
    only("opentelemetry", &["proto/src/traces.rs"]),
    only("opentelemetry_sdk", &["proto/src/traces.rs"]),
    only("opentelemetry_otlp", &["proto/src/traces.rs"]),
    only("tracing_opentelemetry", &["proto/src/traces.rs"]),
    only("indicatif", &["src/cli*"]),
    only(
        "toml",
        &["src/auth/rights.rs", "src/config/", "watcher/src/config*"],
    ),
];

/// Where a cluster is talked to.
const WATCHING: &[&str] = &["watcher/src/", "tests/kubesim/src/", "src/auth/kube*"];

/// What decides without talking to anyone.
const DECIDING: &[&str] = &[
    "watcher/src/expression.rs",
    "watcher/src/plan*",
    "watcher/src/policy*",
    "watcher/src/ledger*",
];
