//! Which run a person means.

use clap::Args;
use hindsight_proto::v1alpha2 as pb;
use hindsight_run::{View, json};
use serde_json::Value;

use super::{connect::Connect, failure::Failure, output};
use hindsight_filter::run_filter;

/// How many runs of one name are looked at.
const CANDIDATES: i32 = 20;

/// Where names of runs are looked up, and at which server.
#[derive(Debug, Args)]
pub(super) struct Lookup {
    /// Namespace (parent) of runs that are given by their name alone
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,

    #[command(flatten)]
    pub(super) connect: Connect,
}

impl Lookup {
    /// The name of the record of the run that `text` means: a record name, `<namespace>/<name>`, or
    /// a name. Of runs that share a name, those that no other run owns come first, then the newest.
    ///
    /// It fails if there is none, or the server does not answer.
    pub(super) async fn record(&self, text: &str) -> Result<String, Failure> {
        if text.contains("/records/") {
            return Ok(text.to_owned());
        }
        let (parent, name) = text.rsplit_once('/').unwrap_or((&self.namespace, text));
        // A JSON string is a CEL string, so that no name can end the literal.
        let filter = format!(
            "data.metadata.name == {} && {}",
            Value::from(name),
            run_filter()
        );
        let request = pb::ListRecordsRequest {
            parent: format!("{parent}/results/-"),
            filter,
            page_size: CANDIDATES,
            ..pb::ListRecordsRequest::default()
        };
        let mut rpc = self.connect.client()?.rpc();
        let reply = rpc.list_records(request).await;
        let found = reply.map_err(|status| self.connect.failure(&status))?;
        let mut found = found.into_inner().records;
        // Stable, so that the newest stays first.
        found.sort_by_key(is_owned);
        let tops = found.iter().filter(|record| !is_owned(record)).count();
        if tops > 1 {
            output::note(&format!(
                "several runs are called `{name}`; this is the newest (give a record name for another)"
            ));
        }
        let first = found.into_iter().next().map(|record| record.name);
        first.ok_or_else(|| {
            Failure::missing(format!(
                "no run `{name}` in namespace {parent} (-n names another)"
            ))
        })
    }
}

/// Whether the object of a record belongs to another one.
fn is_owned(record: &pb::Record) -> bool {
    let data = record.data.as_ref();
    let object = data.and_then(|data| json::parse(&data.value).ok());
    object.is_some_and(|object| View::new(&object).is_owned())
}
