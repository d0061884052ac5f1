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
        &["crates/filter/src/parse.rs", "crates/filter/src/parse/"],
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
    only(
        "hindsight_controller",
        &[
            "src/cli/all_in_one.rs",
            "controller/src/bin/kubectl-workflow.rs",
            "controller/src/main.rs",
        ],
    ),
    only(
        "sqlx",
        &[
            "crates/storage/src/driver*",
            "crates/storage/src/tools/archive*",
            "crates/storage/src/tools/foreign.rs",
            "crates/storage/src/tools/tekton*",
            "crates/storage/src/testing.rs",
            "crates/storage/src/conformance*",
        ],
    ),
    only(
        "zstd",
        &[
            "crates/logs/src/chunk.rs",
            "crates/storage/src/codec*",
            "crates/storage/src/conformance*",
            "src/homes/objects/unzstd.rs",
            "tests/it/logs/homes/objects.rs",
        ],
    ),
    only(
        "object_store",
        &[
            "crates/storage/src/codec/objects*",
            "crates/storage/src/conformance/tests.rs",
            "sql/cluster/src/scheduler.rs",
            "sql/src/cold*",
            "sql/src/provider.rs",
            "sql/src/source.rs",
        ],
    ),
    only("parquet", &["crates/archive/src/"]),
    only(
        "url",
        &[
            "crates/kfp/src/download*",
            "crates/storage/src/codec/objects*",
            "sql/cluster/src/",
            "sql/src/source.rs",
        ],
    ),
    only("tar", &["crates/kfp/src/package*"]),
    only("zip", &["crates/kfp/src/package*"]),
    only("datafusion", &["sql/cluster/src/", "sql/src/"]),
    only("ballista_core", &["sql/cluster/src/"]),
    only("ballista_executor", &["sql/cluster/src/executor.rs"]),
    only("ballista_scheduler", &["sql/cluster/src/scheduler.rs"]),
    only("arrow", &["sql/cluster/src/query.rs", "sql/src/"]),
    only(
        "arrow_flight",
        &["sql/cluster/src/executor.rs", "sql/src/flight*"],
    ),
    only("rustyline", &["sql/src/repl.rs"]),
    only(
        "tonic",
        &[
            "src/grpc*",
            "src/app*",
            "src/cli*",
            "src/import*",
            "crates/transcode/src/*",
            "proto/",
            "crates/client/",
            "crates/connect/",
            "sql/cluster/src/",
            "sql/src/error.rs",
            "sql/src/flight*",
            "sql/src/hot*",
            "watcher/src/sink*",
            "web/src/api.rs",
            "web/src/web.rs",
        ],
    ),
    only(
        "axum",
        &[
            "controller/src/admin.rs",
            "crates/cluster/src/webhook.rs",
            "crates/runtime/src/admin*",
            "src/app*",
            "crates/access/src/auth/oidc/tests.rs",
            "src/grpc/deadline.rs",
            "src/grpc/fields.rs",
            "src/grpc/transport.rs",
            "crates/transcode/src/*",
            "watcher/src/admin*",
            "web/src/",
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
            "controller/src/cli*",
            "crates/config/src/*",
            "crates/connect/src/*",
            "sql/cluster/src/args.rs",
            "sql/cluster/src/main.rs",
            "sql/src/args.rs",
            "sql/src/main.rs",
            "sql/src/output.rs",
            "src/cli*",
            "watcher/src/cli*",
            "watcher/src/main.rs",
            "tests/kubesim/src/main.rs",
        ],
    ),
    only(
        "anyhow",
        &[
            "src/main.rs",
            "src/cli*",
            "controller/src/cli*",
            "watcher/src/main.rs",
            "watcher/src/cli*",
            "tests/kubesim/src/main.rs",
        ],
    ),
    only(
        "prometheus_client",
        &[
            "*/metrics.rs",
            "crates/runtime/src/telemetry*",
            "watcher/src/metrics*",
            "watcher/src/telemetry*",
        ],
    ),
    only(
        "tracing_subscriber",
        &[
            "crates/runtime/src/telemetry*",
            "crates/runtime/src/traces.rs",
            "sql/cluster/src/main.rs",
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
            "crates/transcode/src/*",
            "proto/src/wire_tests.rs",
        ],
    ),
    only(
        "tokio_rustls",
        &[
            "crates/cluster/src/webhook*",
            "crates/kfp/src/download/tests.rs",
            "crates/runtime/src/tls.rs",
            "src/app*",
            "src/outgoing.rs",
            "crates/access/src/auth/oidc*",
            "tests/kubesim/src/tls.rs",
        ],
    ),
    only(
        "rustix",
        &[
            "crates/runtime/src/low_priority.rs",
            "src/cli/login/prompt.rs",
            "src/cli/pager.rs",
            "src/cli/purge.rs",
            "src/cli/retention.rs",
            "src/main.rs",
            "watcher/src/main.rs",
        ],
    ),
    only("multer", &["src/app/kfp/upload.rs"]),
    only("tikv_jemallocator", &["src/lib.rs"]),
    only("cronexpr", &["src/retention/*"]),
    only("askama", &["web/src/"]),
    only("x509_parser", &["src/app/tls*"]),
    only("jsonwebtoken", &["crates/access/src/auth/oidc*"]),
    only(
        "hyper_rustls",
        &[
            "crates/access/src/auth/oidc*",
            "crates/kfp/src/download*",
            "crates/kfp/src/transfer/rest.rs",
            "src/outgoing.rs",
        ],
    ),
    only("opentelemetry", &["crates/runtime/src/traces.rs"]),
    only("opentelemetry_sdk", &["crates/runtime/src/traces.rs"]),
    only("opentelemetry_otlp", &["crates/runtime/src/traces.rs"]),
    only("tracing_opentelemetry", &["crates/runtime/src/traces.rs"]),
    only("indicatif", &["src/cli*"]),
    only(
        "toml",
        &[
            "crates/access/src/auth/rights.rs",
            "crates/config/src/*",
            "crates/connect/src/contexts.rs",
            "src/events/receivers.rs",
            "src/retention/*",
        ],
    ),
];

/// Where a cluster is talked to.
const WATCHING: &[&str] = &[
    "controller/src/",
    "crates/cluster/src/",
    "watcher/src/",
    "tests/kubesim/src/",
    "crates/access/src/auth/kube*",
    "crates/kfp/src/kubernetes*",
    "crates/kfp/src/webhooks*",
    "crates/ray/src/",
];

/// What decides without talking to anyone.
const DECIDING: &[&str] = &[
    "watcher/src/expression.rs",
    "watcher/src/plan*",
    "watcher/src/policy*",
    "watcher/src/ledger*",
];
