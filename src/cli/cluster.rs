//! `--cluster`: only what ran in one cluster.

use clap::Args;
use hindsight_filter::{Filter, model::Resource, words::quoted};

use super::{caret::wrong_filter, failure::Failure, place::Place};

/// Which cluster runs ran in. It is a part of the names of parents, which `-n` alone does not know.
#[derive(Debug, Args)]
pub(super) struct InCluster {
    /// Only runs of this cluster, by its id or name
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

impl InCluster {
    /// The parent to ask for: with a cluster all of them, because namespaces of a cluster are parents
    /// of longer names.
    pub(super) fn within(&self, place: &Place, result: Option<&str>) -> String {
        match (&self.cluster, result) {
            (Some(_), None) => "-/results/-".to_owned(),
            (Some(_), Some(id)) if !id.contains('/') => format!("-/results/{id}"),
            _ => place.within(result),
        }
    }

    /// The filter with the tests of cluster and namespace before it. It fails if the filter is wrong,
    /// so that nothing in it reaches out of its brackets.
    pub(super) fn filter(&self, place: &Place, filter: &str) -> Result<String, Failure> {
        let Some(cluster) = &self.cluster else {
            return Ok(filter.to_owned());
        };
        Filter::compile(filter, Resource::Records)
            .map_err(|error| wrong_filter("--filter ", filter, &error))?;
        let mut tests = vec![format!("run.cluster == {}", quoted(cluster))];
        if !place.is_everywhere() {
            let namespace = quoted(place.parent());
            tests.push(format!("data.metadata.namespace == {namespace}"));
        }
        if !filter.trim().is_empty() {
            tests.push(format!("({filter}\n)"));
        }
        Ok(tests.join(" && "))
    }
}
