//! The configuration of a controller: [`Settings`] are what the sources say, and [`Config`] is what a
//! controller does with them.

use std::{
    net::SocketAddr,
    num::{NonZeroU16, NonZeroU32},
    path::PathBuf,
    time::Duration,
};

use hindsight_cluster::{LeaseConfig, identity};
use hindsight_config::{
    Number, Problem, Problems, Program, Reader, Settings as _, Sources, Span, settings,
};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

/// A duration of more than nothing.
type Positive = Span<1>;

settings! {
    /// What the sources say, each value checked by itself.
    pub struct Settings;

    ["Cluster"]
    /// Kubeconfig of the cluster. When absent, `$KUBECONFIG`, `~/.kube/config` or the cluster of the
    /// pod that this runs in.
    kubeconfig: Option<PathBuf>;
    /// The only namespace whose workflows are run. When absent, those of all are.
    namespace: Option<String>;
    /// Rate limit of writes to the cluster in a second: status, Jobs, deletes and events.
    writes_per_second: Number<1, 100_000> = "1000";
    /// Interval of looking at Jobs that steps wait for, and at workflows in namespaces that are not watched.
    external_poll: Positive = "10s";
    /// Carry out custom tasks of Tekton that are workflows: CustomRuns, and Runs of tekton.dev/v1alpha1.
    custom_tasks: bool = "true";
    /// Carry out PipelineRuns of Tekton whose `spec.managedBy` is `hindsight.dev/pipelinerun`.
    pipeline_runs: bool = "true";
    /// Interval of looking for kinds of Tekton that the cluster does not have.
    kind_poll: Positive = "30s";
    /// Workflows that are worked on at once, and as many custom tasks of each kind, and PipelineRuns.
    concurrency: Number<1, 1024> = "64";

    ["Running"]
    /// Work only while holding a Lease, so that several replicas may run.
    leader_elect: bool = "false";
    /// Name of the Lease.
    lease_name: String = "hindsight-workflow";
    /// Namespace of the Lease. When absent, that of the pod or the kubeconfig.
    lease_namespace: Option<String>;
    /// Name of this replica. When absent, the name of the host and some digits.
    lease_identity: Option<String>;
    /// Time until others take the Lease from a holder that is silent.
    lease_duration: Positive = "15s";
    /// Time for which the holder tries to renew before it ends; less than `lease_duration`.
    lease_renew_deadline: Positive = "10s";
    /// Interval of renewing or asking for the Lease; less than `lease_renew_deadline`.
    lease_retry: Positive = "2s";
    /// Address and port of /metrics, /livez and /readyz, such as `127.0.0.1:9092`, or `off`.
    metrics_listen: Option<SocketAddr> = "off";
    /// Longest time that passes go on after SIGTERM or SIGINT.
    shutdown_grace: Span = "10s";
    /// Address and port of the validating webhook, such as `0.0.0.0:8443`, or `off`.
    webhook_listen: Option<SocketAddr> = "off";
    /// Certificates of the webhook in PEM. Read again when they change, as the next.
    webhook_cert: Option<PathBuf>;
    /// Private key of `webhook_cert`, in PEM.
    webhook_key: Option<PathBuf>;
    /// Level of log events: `error`, `warn`, `info`, `debug`, `trace` or `off`, and per module
    /// as in `info,hindsight_controller=debug`.
    log_level: LogFilter = "info";
    /// Format of log events on standard error: `text` or `json`.
    log_format: LogFormat = "text";
}

/// How a controller works.
#[derive(Debug, Clone)]
pub struct Config {
    /// The only namespace whose workflows are run; `None` for all.
    pub namespace: Option<String>,
    /// Most writes in a second; `None` for any number.
    pub writes_per_second: Option<NonZeroU32>,
    /// How often external objects are looked at of which no watch tells.
    pub external_poll: Duration,
    /// Whether custom tasks of Tekton are carried out.
    pub custom_tasks: bool,
    /// Whether PipelineRuns that are delegated to us are carried out.
    pub pipeline_runs: bool,
    /// How often kinds of Tekton are looked for that the cluster does not have.
    pub kind_poll: Duration,
    /// How many workflows are worked on at once.
    pub concurrency: NonZeroU16,
    /// The lease to work under.
    pub lease: Option<LeaseConfig>,
    /// Where metrics are served.
    pub metrics_listen: Option<SocketAddr>,
    /// The webhook, if it is served.
    pub webhook: Option<Webhook>,
    /// How long passes may go on at the end.
    pub shutdown_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: None,
            writes_per_second: None,
            external_poll: Duration::from_secs(10),
            custom_tasks: true,
            pipeline_runs: true,
            kind_poll: Duration::from_secs(30),
            concurrency: NonZeroU16::new(64).expect("it is not zero"),
            lease: None,
            metrics_listen: None,
            webhook: None,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// Where the webhook is served, and by which certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its address and port.
    pub listen: SocketAddr,
    /// File of certificates in PEM.
    pub cert: PathBuf,
    /// File of the private key in PEM.
    pub key: PathBuf,
}

/// All that the program needs.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The values of all keys.
    pub settings: Box<Settings>,
    /// What the controller does with them.
    pub config: Config,
}

impl Launch {
    /// Checks what the sources of `program` say. It fails with all problems at once.
    pub fn load(program: &Program, sources: &Sources) -> Result<Self, Problems> {
        let mut reader = Reader::over(program, sources);
        let settings = Settings::read(&mut reader);
        let settings = reader.finish(settings, Settings::contradictions)?;
        let config = settings.config();
        Ok(Self {
            settings: Box::new(settings),
            config,
        })
    }
}

impl Settings {
    fn contradictions(&self) -> Vec<Problem> {
        let lease = [
            self.lease_duration,
            self.lease_renew_deadline,
            self.lease_retry,
        ];
        let mut problems = Vec::new();
        if !lease.is_sorted_by(|longer, shorter| longer > shorter) {
            let text = "lease_duration, lease_renew_deadline and lease_retry do not fit together; want \
                        each longer than the next";
            problems.push(self.problem("lease_duration", text));
        }
        if self.webhook_listen.is_some() {
            if self.webhook_cert.is_none() {
                problems.push(self.problem("webhook_listen", "needs webhook_cert too"));
            }
            if self.webhook_key.is_none() {
                problems.push(self.problem("webhook_listen", "needs webhook_key too"));
            }
        }
        problems
    }

    fn config(&self) -> Config {
        let concurrency = u16::try_from(self.concurrency.as_u32()).ok();
        let lease = || LeaseConfig {
            namespace: self.lease_namespace.clone(),
            name: self.lease_name.clone(),
            identity: self
                .lease_identity
                .clone()
                .unwrap_or_else(|| identity("workflow")),
            duration: self.lease_duration.get(),
            renew_deadline: self.lease_renew_deadline.get(),
            retry: self.lease_retry.get(),
        };
        Config {
            namespace: self.namespace.clone(),
            writes_per_second: NonZeroU32::new(self.writes_per_second.as_u32()),
            external_poll: self.external_poll.get(),
            custom_tasks: self.custom_tasks,
            pipeline_runs: self.pipeline_runs,
            kind_poll: self.kind_poll.get(),
            concurrency: concurrency
                .and_then(NonZeroU16::new)
                .unwrap_or(NonZeroU16::MIN),
            lease: self.leader_elect.then(lease),
            metrics_listen: self.metrics_listen,
            webhook: self.webhook_listen.and_then(|listen| {
                Some(Webhook {
                    listen,
                    cert: self.webhook_cert.clone()?,
                    key: self.webhook_key.clone()?,
                })
            }),
            shutdown_grace: self.shutdown_grace.get(),
        }
    }
}

/// The names of the keys in files, variables and flags.
pub const PROGRAM: Program = Program {
    keys: Settings::KEYS,
    variables: "HINDSIGHT_WORKFLOW_",
    flags: "",
    heading: None,
    without_flags: &[],
    tables: &[],
    foreign: &[],
    passed: &[],
};

/// The same beside a server in the same process, which logs for both.
pub const BESIDE: Program = Program {
    flags: "workflow-",
    heading: Some("Workflow controller"),
    without_flags: &["log_level", "log_format"],
    ..PROGRAM
};

const REFERENCE: &str = "
## Workflow controller

The keys of `hindsight-workflow`. `HINDSIGHT_WORKFLOW_CONFIG` names the file as `--config` does. Beside the
server, in `hindsight all-in-one --workflows`, flags begin with `--workflow-`.
";

/// The part of `docs/config.md` about the controller, which is its end.
#[must_use]
pub fn reference_markdown() -> String {
    format!("{REFERENCE}{}", PROGRAM.markdown())
}
