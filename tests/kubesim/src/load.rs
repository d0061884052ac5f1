//! Putting dumped objects into a cluster: what `kubectl get -o json|yaml` prints, an array of
//! objects, or single ones. It changes nothing about them but the resource version.

use serde_json::Value;

use crate::{refusal::Refusal, sim::Sim};

/// Why a dump was not put into the cluster.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The text is neither JSON nor YAML.
    #[error("the dump is neither JSON nor YAML")]
    Syntax(#[source] Box<serde_saphyr::Error>),
    /// The cluster refused an object.
    #[error("{kind} `{namespace}/{name}` is not taken; install its kind, or leave it out")]
    Refused {
        /// Kind of the object.
        kind: String,
        /// Namespace of the object; empty for kinds outside of namespaces.
        namespace: String,
        /// Name of the object, as the dump has it.
        name: String,
        /// What the cluster answered to the object.
        source: Box<Refusal>,
    },
}

impl Sim {
    /// Puts the objects of a dump into the cluster as they are, and makes their namespaces.
    ///
    /// Answers how many there were.
    ///
    /// # Errors
    /// When the text does not parse; or at the first object that is refused, with those before it
    /// in place.
    pub fn load_dump(&self, text: &str) -> Result<usize, LoadError> {
        let documents: Vec<Value> = match serde_json::from_str(text) {
            Ok(document) => vec![document],
            Err(_) => serde_saphyr::from_multiple(text)
                .map_err(|error| LoadError::Syntax(Box::new(error)))?,
        };
        let mut count = 0;
        for document in documents {
            for object in objects(document) {
                self.load_one(object)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn load_one(&self, object: Value) -> Result<(), LoadError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let namespace = text(&object["metadata"]["namespace"]);
        if !namespace.is_empty() {
            self.namespace(&namespace);
        }
        match self.load(object) {
            Ok(_) => Ok(()),
            Err(source) => Err(LoadError::Refused {
                kind,
                namespace,
                name,
                source: Box::new(source),
            }),
        }
    }
}

fn objects(document: Value) -> Vec<Value> {
    match document {
        Value::Array(objects) => objects,
        Value::Null => Vec::new(),
        mut list
            if list["kind"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("List")) =>
        {
            match list["items"].take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            }
        }
        single => vec![single],
    }
}
