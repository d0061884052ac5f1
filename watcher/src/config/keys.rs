//! Every key of the configuration: one name for the flag, the environment and the file.

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The flag without its dashes; in the file the same, in the environment
    /// `HINDSIGHT_WATCHER_` and the name in upper case with `_` for `-`.
    pub name: &'static str,
    /// What its value looks like; `None` for a switch.
    pub value: Option<&'static str>,
    /// What it is for.
    pub help: &'static str,
    /// The value it has if nobody says otherwise; empty if none.
    pub default: &'static str,
    /// Under which heading `--help` shows it.
    pub group: &'static str,
}

const CONNECTIONS: &str = "Connections";
const STORING: &str = "What is stored";
const COLLECTING: &str = "What is collected";
const RUNNING: &str = "Running";

const fn key(
    group: &'static str,
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key {
        name,
        value: Some(value),
        help,
        default,
        group,
    }
}

const fn switch(group: &'static str, name: &'static str, help: &'static str) -> Key {
    Key {
        name,
        value: None,
        help,
        default: "false",
        group,
    }
}

/// All of them, in the order of `--help`.
pub const KEYS: &[Key] = &[
    key(
        CONNECTIONS,
        "server",
        "URL",
        "http://127.0.0.1:8080",
        "The Hindsight server, or any other server of tekton.results.v1alpha2",
    ),
    key(
        CONNECTIONS,
        "token",
        "TOKEN",
        "",
        "Bearer token for the server; better in a file",
    ),
    key(
        CONNECTIONS,
        "token-file",
        "PATH",
        "",
        "File with the bearer token; read again when it changes",
    ),
    key(
        CONNECTIONS,
        "server-ca",
        "PATH",
        "",
        "Extra CA certificates (PEM) to trust for the server, besides those of the system",
    ),
    key(
        CONNECTIONS,
        "client-cert",
        "PATH",
        "",
        "Client certificate (PEM), for servers that want one",
    ),
    key(
        CONNECTIONS,
        "client-key",
        "PATH",
        "",
        "Private key of client-cert (PEM)",
    ),
    switch(
        CONNECTIONS,
        "plain-calls",
        "Store each run by calls of its own, also on a server that takes many over one stream; for \
         proxies that pass no streams",
    ),
    key(
        CONNECTIONS,
        "kubeconfig",
        "PATH",
        "",
        "The cluster to watch; otherwise $KUBECONFIG, ~/.kube/config or the cluster that this \
         runs in",
    ),
    key(
        CONNECTIONS,
        "namespace",
        "NAME",
        "",
        "Watch only this namespace; otherwise all",
    ),
    key(
        CONNECTIONS,
        "cluster-id",
        "ID",
        "",
        "Name of the cluster: its runs go to the parents cluster/<ID>/namespace/<namespace>, \
         apart from those of other clusters; otherwise to <namespace>. `auto` stands for the UID \
         of the namespace kube-system",
    ),
    key(
        STORING,
        "kinds",
        "LIST",
        "",
        "Kinds to watch, such as `taskruns,pipelineruns.tekton.dev,Workflow`; otherwise all \
         that the cluster has",
    ),
    key(
        STORING,
        "job-selector",
        "SELECTOR",
        "",
        "Watch batch Jobs with these labels as well; otherwise none",
    ),
    key(
        STORING,
        "kind-poll",
        "DURATION",
        "30s",
        "How often to look for kinds that the cluster does not have or does not show",
    ),
    key(
        STORING,
        "summary-labels",
        "KEYS",
        "tekton.dev/pipeline",
        "Labels of a run to copy to the annotations of its result",
    ),
    key(
        STORING,
        "summary-annotations",
        "KEYS",
        "",
        "Annotations of a run to copy to the annotations of its result",
    ),
    key(
        STORING,
        "verify-within",
        "DURATION",
        "1h",
        "Over which time after a start to ask the server about runs whose annotations say that \
         they are stored as they are; with --collect all are asked about at once",
    ),
    key(
        STORING,
        "managed-by-values",
        "LIST",
        "",
        "Values of spec.managedBy to store besides none and tekton.dev/pipeline; other runs are \
         left alone",
    ),
    switch(
        STORING,
        "store-incomplete",
        "Store runs as they progress, and not only once they are finished",
    ),
    switch(
        STORING,
        "store-events",
        "Store the Kubernetes events about a finished run and its pods as well, as one record",
    ),
    switch(
        STORING,
        "no-annotations",
        "Do not write onto the runs in the cluster where they are stored",
    ),
    switch(
        STORING,
        "finalizers",
        "Put finalizers on runs, so that deletes of others wait until the runs are stored",
    ),
    key(
        STORING,
        "store-deadline",
        "DURATION",
        "10m",
        "How long a delete may wait for a finalizer at most, from when it was asked for",
    ),
    switch(
        COLLECTING,
        "collect",
        "Delete finished runs from the cluster, once the server has proved that it holds them",
    ),
    key(
        COLLECTING,
        "grace",
        "DURATION",
        "10m",
        "How long a finished run stays in the cluster; negative for not at all",
    ),
    key(
        COLLECTING,
        "label-selector",
        "SELECTOR",
        "",
        "Delete only runs with these labels; all runs are stored",
    ),
    key(
        COLLECTING,
        "check-owner",
        "BOOL",
        "true",
        "Never delete a run that something owns; with `false` only those of a PipelineRun stay, \
         until it goes itself",
    ),
    key(
        COLLECTING,
        "recheck",
        "DURATION",
        "1m",
        "How often to look at a run that waits for a child in the cluster that was not seen yet; \
         what else it waits for is noticed when it happens",
    ),
    key(
        COLLECTING,
        "keep-last",
        "N",
        "0",
        "Leave the newest N finished runs of each pipeline in a namespace",
    ),
    key(
        COLLECTING,
        "collect-when",
        "CEL",
        "",
        "Delete only runs of which this is true; it may ask about object, kind, \
         pipeline and outcome",
    ),
    key(
        COLLECTING,
        "namespace-overrides",
        "BOOL",
        "true",
        "Let annotations of a namespace keep its runs longer; needs list and watch of namespaces, \
         and nothing is deleted without them",
    ),
    key(
        COLLECTING,
        "deletes-per-second",
        "N",
        "50",
        "Delete at most so many runs a second",
    ),
    key(
        STORING,
        "writes-per-second",
        "N",
        "50",
        "Write at most so many times a second to the cluster, for annotations and finalizers; \
         storing does not wait for them",
    ),
    key(
        STORING,
        "writes-burst",
        "N",
        "10",
        "How many of these writes may be made at once, after a time without any",
    ),
    switch(
        COLLECTING,
        "dry-run",
        "Log what would be deleted, and delete nothing",
    ),
    key(
        RUNNING,
        "threadiness",
        "N",
        "32",
        "How many runs are worked on at once; those that are stored at the same time share a \
         commit of the server",
    ),
    key(
        RUNNING,
        "hold-bytes",
        "SIZE",
        "256MiB",
        "The most bytes of objects in memory that wait to be stored; a quarter of it for what is \
         still in the cluster",
    ),
    key(
        RUNNING,
        "page-size",
        "N",
        "250",
        "The most objects to read from the cluster at once; fewer if they are large",
    ),
    switch(
        RUNNING,
        "leader-elect",
        "Work only while holding a Lease, so that several replicas may run",
    ),
    key(
        RUNNING,
        "lease-name",
        "NAME",
        "hindsight-watcher",
        "Name of the Lease",
    ),
    key(
        RUNNING,
        "lease-namespace",
        "NAME",
        "",
        "Namespace of the Lease; otherwise that of the pod or the kubeconfig",
    ),
    key(
        RUNNING,
        "lease-identity",
        "NAME",
        "",
        "What this replica calls itself; otherwise the name of the host and some digits",
    ),
    key(
        RUNNING,
        "lease-duration",
        "DURATION",
        "15s",
        "How long others wait for a holder that is silent",
    ),
    key(
        RUNNING,
        "lease-renew-deadline",
        "DURATION",
        "10s",
        "How long the holder tries to renew before it ends; less than the duration",
    ),
    key(
        RUNNING,
        "lease-retry",
        "DURATION",
        "2s",
        "How often the Lease is renewed or asked for; less than the deadline",
    ),
    key(
        RUNNING,
        "spool",
        "DIR",
        "",
        "Keep last states of runs in this directory while the server is away, and not only in \
         memory",
    ),
    key(
        RUNNING,
        "spool-bytes",
        "SIZE",
        "1GiB",
        "The most bytes of objects in the spool",
    ),
    key(
        RUNNING,
        "metrics-listen",
        "ADDR",
        "off",
        "Serve /metrics, /livez, /readyz and /ledger here, for example on 127.0.0.1:9091",
    ),
    key(
        RUNNING,
        "shutdown-grace",
        "DURATION",
        "20s",
        "How long storing may go on after SIGTERM or SIGINT",
    ),
    key(
        RUNNING,
        "log-level",
        "LEVEL",
        "info",
        "error, warn, info, debug, trace, or a filter such as `info,hindsight_watcher=debug`",
    ),
    key(RUNNING, "log-format", "FORMAT", "text", "text or json"),
    key(
        RUNNING,
        "trace-endpoint",
        "URL",
        "",
        "Collector of traces, as http://HOST:PORT of OTLP over gRPC; otherwise nobody is told of spans",
    ),
    key(
        RUNNING,
        "trace-percent",
        "NUMBER",
        "100",
        "How many of a hundred traces are sent",
    ),
];

/// The key of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Key {
    /// Its name in the environment.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('-', "_"))
    }
}

/// What variables of ours begin with.
pub const PREFIX: &str = "HINDSIGHT_WATCHER_";
