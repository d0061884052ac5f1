//! Workflows that have left the cluster, as a Hindsight server stored them last.

use std::fmt;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};
use hindsight_connect::Connect;
use hindsight_proto::{time, v1alpha2 as pb};
use hindsight_run::{View, json};
use hindsight_workflow::{GROUP, KIND, VERSION};
use jiff::Timestamp;
use serde_json::Value;

use crate::object::WorkflowObject;

/// What the flags about the history begin with: those of kubectl about the API server have the names that
/// those of `hindsight` have about its server.
const FLAGS: &str = "--hindsight-";

/// Workflows in a page of a list.
const PAGE: i32 = 500;

/// The server that has the history.
#[derive(Debug)]
pub(super) struct History {
    connect: Connect,
    /// Id of the cluster, if the server has several.
    cluster: Option<String>,
}

/// A workflow of the history.
#[derive(Debug)]
pub(super) struct Stored {
    object: Value,
    /// When the server stored this state.
    pub(super) at: Timestamp,
    server: String,
    /// Why its end is not known, if it left the cluster before that.
    closed: Option<String>,
}

impl Stored {
    pub(super) fn object(&self) -> anyhow::Result<WorkflowObject> {
        WorkflowObject::of(&self.object).map_err(anyhow::Error::msg)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stored {} at {}", self.at, self.server)?;
        match &self.closed {
            Some(reason) => write!(f, "; {reason}"),
            None => Ok(()),
        }
    }
}

/// A command with the flags about the history.
pub(super) fn command(name: &'static str) -> Command {
    let cluster = Arg::new("cluster-id")
        .long("cluster-id")
        .value_name("ID")
        .env("HINDSIGHT_CLUSTER_ID")
        .help("Id of this cluster, if its watcher has a `cluster_id`");
    Connect::augment_args(Command::new(name))
        .arg(cluster)
        .mut_args(|arg| {
            let flag = format!("hindsight-{}", arg.get_long().unwrap_or_default());
            arg.long(flag).help_heading("History")
        })
        .next_help_heading(None::<&str>)
}

impl History {
    /// What the arguments of a [`command`] say.
    pub(super) fn of(matches: &ArgMatches) -> anyhow::Result<Self> {
        let connect = Connect::from_arg_matches(matches)?;
        Ok(Self {
            connect: connect.with_flags(FLAGS),
            cluster: matches.get_one("cluster-id").cloned(),
        })
    }

    /// The workflow of this name, or the newest of several, or that of this UID. It fails if there is none.
    pub(super) async fn find(&self, namespace: Option<&str>, name: &str) -> anyhow::Result<Stored> {
        let literal = Value::from(name).to_string();
        let filter = format!("(data.metadata.name == {literal} || data.metadata.uid == {literal})");
        let mut request = self.request(namespace, Some(filter));
        request.page_size = 1;
        let (mut found, _) = self
            .page(request)
            .await
            .context("it is not in the cluster, and the history cannot be read")?;
        found.pop().with_context(|| {
            format!(
                "it is neither in the cluster nor in the history at {}; {FLAGS}server or \
                 HINDSIGHT_SERVER names another server",
                self.connect.server()
            )
        })
    }

    /// A page of the workflows of a namespace, or of all, newest first, and what asks for the next one.
    pub(super) async fn list(
        &self,
        namespace: Option<&str>,
        page_token: String,
    ) -> anyhow::Result<(Vec<Stored>, String)> {
        let mut request = self.request(namespace, None);
        request.page_token = page_token;
        self.page(request).await
    }

    fn request(&self, namespace: Option<&str>, filter: Option<String>) -> pb::ListRecordsRequest {
        let mut tests = vec![format!("data_type == \"{GROUP}/{VERSION}.{KIND}\"")];
        let parent = match (namespace, &self.cluster) {
            (Some(namespace), Some(cluster)) => format!("cluster/{cluster}/namespace/{namespace}"),
            (Some(namespace), None) => namespace.to_owned(),
            (None, cluster) => {
                let cluster = cluster.as_deref().map(Value::from);
                tests.extend(cluster.map(|cluster| format!("run.cluster == {cluster}")));
                "-".to_owned()
            }
        };
        tests.extend(filter);
        pb::ListRecordsRequest {
            parent: format!("{parent}/results/-"),
            filter: tests.join(" && "),
            page_size: PAGE,
            ..pb::ListRecordsRequest::default()
        }
    }

    async fn page(&self, request: pb::ListRecordsRequest) -> anyhow::Result<(Vec<Stored>, String)> {
        let answer = self.connect.client()?.rpc().list_records(request).await;
        let answer = answer.map_err(|status| self.connect.failure(&status))?;
        let page = answer.into_inner();
        let stored = page.records.into_iter().map(|record| self.stored(record));
        Ok((stored.collect::<anyhow::Result<_>>()?, page.next_page_token))
    }

    fn stored(&self, record: pb::Record) -> anyhow::Result<Stored> {
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value);
        let object = object.with_context(|| format!("record {} cannot be read", record.name))?;
        let at = record.update_time.unwrap_or_default();
        let closed = View::new(&object).closed();
        Ok(Stored {
            closed: closed.map(|closed| closed.reason.to_owned()),
            object,
            at: time::at(at.seconds, at.nanos).unwrap_or_default(),
            server: self.connect.server().to_owned(),
        })
    }
}
