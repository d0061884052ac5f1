//! Where a command looks, and finding a run there by the name people know.

use clap::Args;
use hindsight_client::Rpc;
use hindsight_filter::run_filter;
use hindsight_proto::v1alpha2 as pb;
use serde_json::Value;

use super::{connect::Connect, failure::Failure};

/// The namespaces a command looks in.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Only this namespace (parent)
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        default_value = "default",
        conflicts_with = "all_namespaces"
    )]
    namespace: String,

    /// Look in all namespaces instead of one
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

impl Place {
    /// The parent to ask for.
    pub(super) fn parent(&self) -> &str {
        if self.all_namespaces {
            "-"
        } else {
            &self.namespace
        }
    }

    /// Whether all namespaces are meant.
    pub(super) fn is_everywhere(&self) -> bool {
        self.all_namespaces
    }

    /// The parent of the records of a result, which is given by its id or its full name; of those
    /// of all results without one.
    pub(super) fn within(&self, result: Option<&str>) -> String {
        match result {
            Some(name) if name.contains('/') => name.to_owned(),
            result => format!("{}/results/{}", self.parent(), result.unwrap_or("-")),
        }
    }

    /// How to say it when nothing was found there.
    pub(super) fn said(&self) -> String {
        if self.all_namespaces {
            "in any namespace".to_owned()
        } else {
            format!("in namespace {} (-A looks in all)", self.namespace)
        }
    }

    /// The newest runs of a name or UID: one, or two if there are more.
    ///
    /// # Errors
    /// If there is none, or the server does not answer.
    pub(super) async fn runs(
        &self,
        rpc: &mut Rpc,
        connect: &Connect,
        name: &str,
    ) -> Result<Vec<pb::Record>, Failure> {
        // A JSON string is a CEL string, so that no name can end the literal.
        let quoted = Value::from(name);
        let filter = format!(
            "(data.metadata.name == {quoted} || data.metadata.uid == {quoted}) && {}",
            run_filter()
        );
        let request = pb::ListRecordsRequest {
            parent: format!("{}/results/-", self.parent()),
            filter,
            page_size: 2,
            ..pb::ListRecordsRequest::default()
        };
        let reply = rpc.list_records(request).await;
        let found = reply
            .map_err(|status| connect.failure(&status))?
            .into_inner()
            .records;
        if found.is_empty() {
            return Err(Failure::missing(format!("no run `{name}` {}", self.said())));
        }
        Ok(found)
    }
}
