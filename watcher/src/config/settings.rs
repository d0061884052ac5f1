//! The keys of the watcher: their types, defaults and help. The names of variables and flags, the
//! printed configuration and the reference follow from them.

use std::{net::SocketAddr, path::PathBuf};

use hindsight_config::{ByteSize, Endpoint, Number, Secret, Span, settings};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};
use jiff::SignedDuration;

use super::values::{ClusterName, Condition, Kinds, LabelSelector, Logs, Namespace, Rate};

/// A duration of more than nothing.
pub(super) type Positive = Span<1>;

settings! {
    /// What the sources say, each value checked by itself.
    pub struct Settings;

    ["Connections"]
    /// Address of the Hindsight server, or of any other server of `tekton.results.v1alpha2`.
    server: Endpoint = "http://127.0.0.1:8080";
    /// Bearer token for the server; better in a file.
    token: Option<Secret>;
    /// File of the bearer token. Read again when it changes.
    token_file: Option<PathBuf>;
    /// Authorities in PEM to trust for the server, besides those of the system. With
    /// `-auth_mode token` of Tekton Results it is `/etc/tls/tls.crt`, if that exists.
    server_ca: Option<PathBuf>;
    /// Client certificate in PEM, for servers with `tls_client_ca`.
    client_cert: Option<PathBuf>;
    /// Private key of `client_cert`, in PEM.
    client_key: Option<PathBuf>;
    /// Store by unary calls, for proxies that pass no streams.
    plain_calls: bool = "false";
    /// Kubeconfig of the cluster to watch. When absent, `$KUBECONFIG`, `~/.kube/config` or the
    /// cluster that this runs in.
    kubeconfig: Option<PathBuf>;
    /// The only namespace that is watched. When absent, all are.
    namespace: Option<Namespace>;
    /// Name of the cluster: its runs are stored below `cluster/<ID>/namespace/<namespace>`, apart
    /// from those of other clusters on the same server. Needed if several clusters store to one server.
    /// `auto` is the UID of the namespace `kube-system`. When absent, runs are stored below `<namespace>`.
    cluster_id: Option<ClusterName>;

    ["What is stored"]
    /// Kinds to watch, such as `taskruns,pipelineruns.tekton.dev,Workflow`. When absent, all that
    /// the cluster has.
    kinds: Option<Kinds>;
    /// Labels of batch Jobs to watch as well. When absent, no Jobs.
    job_selector: Option<LabelSelector>;
    /// Interval of looking for kinds that the cluster does not have or does not show.
    kind_poll: Positive = "30s";
    /// Labels that are copied from a run to the annotations of its result.
    summary_labels: Vec<String> = "tekton.dev/pipeline";
    /// Annotations that are copied from a run to the annotations of its result.
    summary_annotations: Option<Vec<String>>;
    /// Time after a start in which runs marked as stored are verified on the server. With `collect`
    /// all are verified at once.
    verify_within: Span = "1h";
    /// Values of `spec.managedBy` to store, besides none, `tekton.dev/pipeline` and
    /// `hindsight.dev/pipelinerun`. Other runs are ignored.
    managed_by_values: Option<Vec<String>>;
    /// Store runs as they progress, each at most every 10 seconds, and not only once they are
    /// finished. `-disable_storing_incomplete_runs` of Tekton Results' watcher switches it off.
    store_incomplete: bool = "true";
    /// Store the Kubernetes events about a finished run and its pods as well, as one record.
    store_events: bool = "false";
    /// Do not annotate runs in the cluster.
    no_annotations: bool = "false";
    /// Delay deletes by others with finalizers until runs are stored.
    finalizers: bool = "false";
    /// Longest such delay, from the delete request on.
    store_deadline: Positive = "10m";
    /// Rate limit of writes to the cluster in a second, for annotations and finalizers. Storing does
    /// not wait for them.
    writes_per_second: Rate = "50";
    /// Burst of these writes, after a time without any.
    writes_burst: Number<1, { u32::MAX as u64 }> = "10";

    ["Logs"]
    /// Store the logs of containers of TaskRuns, Workflows, Jobs and RayJobs: `off`, `finished` once
    /// a container has ended, or `follow` while it runs. Needs list and watch of `pods`, and get
    /// of `pods/log`. `-logs_api` of Tekton Results' watcher is `finished`.
    logs: Logs = "off";
    /// Containers that are followed at once. Others wait, and are read once they have ended.
    logs_followed: Number<1, 10_000> = "500";
    /// Most bytes of the log of one start of a container. The last line of a longer one says so.
    logs_max_bytes: ByteSize = "1GiB";
    /// Longest time after the end of a run was seen, or after the request to delete it, for which it
    /// is kept in the cluster until its logs are stored.
    logs_deadline: Span = "10m";

    ["What is collected"]
    /// Delete finished runs from the cluster, once the server has proved that it holds them.
    collect: bool = "false";
    /// Time that a finished run stays in the cluster; negative, as in `-1s`, for none.
    grace: SignedDuration = "10m";
    /// Labels of the runs to delete; all runs are stored. When absent, all.
    label_selector: Option<LabelSelector>;
    /// Keep every run that has an owner. With `false`, only those of a PipelineRun, until it
    /// is deleted itself.
    check_owner: bool = "true";
    /// Interval of checking a run again whose child is in the cluster and not yet seen by a watch.
    recheck: Positive = "1m";
    /// Newest finished runs of each pipeline in a namespace that are kept.
    keep_last: Number = "0";
    /// Condition in CEL that a run to be deleted fulfils, over `object`, `kind`,
    /// `pipeline` and `outcome`.
    collect_when: Option<Condition>;
    /// Let annotations of namespaces keep their runs longer. Needs list and watch of namespaces;
    /// without them nothing is deleted.
    namespace_overrides: bool = "true";
    /// Rate limit of deletes in a second.
    deletes_per_second: Rate = "50";
    /// Log what would be deleted and list it in /ledger, and delete nothing. Implies `collect`.
    dry_run: bool = "false";

    ["Running"]
    /// Runs worked on at once. Those stored at the same time share a commit of the server.
    threadiness: Number<1, 1024> = "32";
    /// Memory for objects that wait to be stored; a quarter of it, with finalizers a sixteenth, for
    /// those still in the cluster.
    hold_bytes: ByteSize = "256MiB";
    /// Most objects in a page of a list; fewer if they are large: a page is about a
    /// 64th of `hold_bytes`.
    page_size: Number<1, 10_000> = "250";
    /// Work only while holding a Lease, so that several replicas may run.
    leader_elect: bool = "false";
    /// Name of the Lease.
    lease_name: String = "hindsight-watcher";
    /// Namespace of the Lease. When absent, that of the pod or the kubeconfig.
    lease_namespace: Option<Namespace>;
    /// Name of this replica. When absent, the name of the host and some digits.
    lease_identity: Option<String>;
    /// Time until others take the Lease from a holder that is silent.
    lease_duration: Positive = "15s";
    /// Time for which the holder tries to renew before it ends; less than `lease_duration`.
    lease_renew_deadline: Positive = "10s";
    /// Interval of renewing or asking for the Lease; less than `lease_renew_deadline`.
    lease_retry: Positive = "2s";
    /// Directory of last states of runs while the server is unavailable, and of lines of logs that are not
    /// stored. When absent, they are kept in memory only.
    spool: Option<PathBuf>;
    /// Most bytes of objects in the spool.
    spool_bytes: ByteSize = "1GiB";
    /// Address and port of /metrics, /livez, /readyz and /ledger, such as `127.0.0.1:9091`, or `off`.
    metrics_listen: Option<SocketAddr> = "off";
    /// Longest time that storing goes on after SIGTERM or SIGINT.
    shutdown_grace: Span = "20s";
    /// Level of log events: `error`, `warn`, `info`, `debug`, `trace` or `off`, and per module
    /// as in `info,hindsight_watcher=debug`.
    log_level: LogFilter = "info";
    /// Format of log events on standard error: `text` or `json`.
    log_format: LogFormat = "text";
    /// Collector of traces, as `http://HOST:PORT` of OTLP over gRPC. When absent, no spans are sent.
    trace_endpoint: Option<Endpoint>;
    /// Percentage of traces that are sent.
    trace_percent: Number<0, 100> = "100";
}
