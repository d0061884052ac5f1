//! Names that operators give to clusters, by id.

use std::collections::BTreeSet;

use hindsight_config::{BadValue, Kind, Value};
use hindsight_filter::ClusterNames;
use hindsight_proto::names::Parent;

/// The id of a cluster, as parents name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterId(pub String);

impl Value for ClusterId {
    const WORD: &'static str = "ID";

    fn read(text: &str) -> Result<Self, BadValue> {
        match Parent::prefix_of_cluster(text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(BadValue::new(format!(
                "`{text}` names no cluster: want the `cluster_id` of its watcher, one to 63 letters, digits or any of \
                 `.`, `_`, `~`, `-`"
            ))),
        }
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The ids of clusters by name. An id has one name, and no name is the id of another cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters(pub ClusterNames);

impl Value for Clusters {
    const WORD: &'static str = "ID=NAME,...";
    const KIND: Kind = Kind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        let mut names = ClusterNames::new();
        let mut ids = BTreeSet::new();
        let items = text.split(',').map(str::trim);
        for item in items.filter(|item| !item.is_empty()) {
            let refuse = |why: &str| BadValue::new(format!("`{item}` {why}"));
            let pair = item.split_once('=');
            let (id, name) = pair.ok_or_else(|| refuse("is not written `<cluster id>=<name>`"))?;
            let (id, name) = (id.trim(), name.trim());
            if Parent::prefix_of_cluster(id).is_none() {
                return Err(refuse("names no cluster: its id is not part of a parent"));
            }
            if name.is_empty() || name.chars().any(char::is_control) || name.contains('*') {
                return Err(refuse("has a name that no filter can tell"));
            }
            if !ids.insert(id.to_owned()) {
                return Err(refuse("gives an id a second name"));
            }
            if names.insert(name.to_owned(), id.to_owned()).is_some() {
                return Err(refuse("gives two clusters one name"));
            }
        }
        let confused = names
            .iter()
            .find(|(name, id)| name != id && ids.contains(*name));
        if let Some((name, _)) = confused {
            let why = format!("`{name}` is the name of one cluster and the id of another");
            return Err(BadValue::new(why));
        }
        Ok(Self(names))
    }

    fn show(&self) -> String {
        let pairs = self.0.iter().map(|(name, id)| format!("{id}={name}"));
        pairs.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_names() {
        let clusters = Clusters::read("6c2a=production, b7=staging (eu)").unwrap();
        assert_eq!(clusters.0["production"], "6c2a");
        assert_eq!(clusters.0["staging (eu)"], "b7");
        assert_eq!(Clusters::read(&clusters.show()).unwrap(), clusters);
    }

    #[test]
    fn what_could_mean_two_clusters_is_refused() {
        for (text, why) in [
            ("east", "<cluster id>=<name>"),
            ("a/b=east", "not part of a parent"),
            ("a=", "no filter can tell"),
            ("a=east,a=west", "second name"),
            ("a=east,b=east", "one name"),
            ("a=b,b=c", "the id of another"),
        ] {
            let error = Clusters::read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
