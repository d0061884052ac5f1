//! How objects are found: by uid, by name, and all of a pipeline.

use std::sync::PoisonError;

use futures::{StreamExt as _, TryStreamExt as _};
use hindsight_runtime::error::{ErrorKind, HasKind as _};
use kube::Client;

use super::{
    KubernetesStore,
    calls::Calls,
    object::{Metadata, PIPELINE_ID_LABEL, PipelineObject, VersionObject},
};
use crate::{
    error::Error,
    names,
    query::{Field, Query},
};

/// Most bytes of documents that are kept while a list is made; those beyond are read again for the page.
const MAX_KEPT: usize = 64 << 20;

/// Most bytes of documents that a filter or an order may look at.
const MAX_SEARCHED: usize = 256 << 20;

/// Objects that are read again at once.
const REREAD: usize = 8;

/// Most objects of which it is remembered where they are.
const REMEMBERED: usize = 20_000;

/// What of documents is kept while versions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Those of a page are shown.
    Page,
    /// A filter or an order looks at those of all.
    All,
}

impl Room {
    pub(super) fn of(query: &Query) -> Self {
        match query.looks_at(&Field::PipelineSpec) {
            true => Self::All,
            false => Self::Page,
        }
    }

    /// Keeps the documents of one version, or forgets them if more than so many bytes would be kept.
    fn keep(self, kept: &mut usize, version: &mut VersionObject) -> Result<(), Error> {
        let with = *kept + version.kept();
        match self {
            Self::Page if with > MAX_KEPT => version.forget_documents(),
            Self::All if with > MAX_SEARCHED => {
                return Err(Error::invalid(format!(
                    "the specs of all versions have more than {MAX_SEARCHED} bytes, in which pipeline_spec is not \
                     looked for; filter and sort by other fields"
                )));
            }
            Self::Page | Self::All => *kept = with,
        }
        Ok(())
    }
}

/// Which pipeline an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Name of the Pipeline object.
    pub name: String,
    /// `metadata.uid`, the id of the pipeline or version.
    pub uid: String,
}

/// The Pipeline object of a name in a namespace, as the API server has it now.
///
/// # Errors
/// If the API server does not say.
pub async fn find_pipeline(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Reference>, Error> {
    // Anything else would be another path of the API.
    let is_object = names::check_pipeline_object(name).is_ok() && !namespace.is_empty();
    if !is_object || names::check_namespace(namespace).is_err() {
        return Ok(None);
    }
    let found: Option<PipelineObject> = Calls::pipelines(client, Some(namespace)).get(name).await?;
    Ok(found.map(|found| Reference {
        name: found.metadata.name,
        uid: found.metadata.uid,
    }))
}

/// Whether it may be the uid of an object, for which all are looked through.
fn is_uid(id: &str) -> bool {
    id.len() == 36
        && id
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

impl KubernetesStore {
    /// Where to look for objects whose namespace is not known.
    fn everywhere(&self) -> Option<&str> {
        (!self.all_namespaces).then_some(self.namespace.as_str())
    }

    fn place(&self, uid: &str) -> Option<(String, String)> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(uid).cloned()
    }

    pub(super) fn remember(&self, metadata: &Metadata) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED {
            places.clear();
        }
        let place = (metadata.namespace.clone(), metadata.name.clone());
        places.insert(metadata.uid.clone(), place);
    }

    /// The Pipeline object with this uid.
    pub(super) async fn pipeline_object(&self, id: &str) -> Result<PipelineObject, Error> {
        if let Some((namespace, name)) = self.place(id) {
            let calls = Calls::pipelines(&self.client, Some(&namespace));
            let found: Option<PipelineObject> = calls.get(&name).await?;
            if let Some(found) = found.filter(|found| found.metadata.uid == id) {
                return Ok(found);
            }
        }
        if !is_uid(id) {
            return Err(Error::no_pipeline(id));
        }
        let all = self.all_pipelines(self.everywhere()).await?;
        let found = all.into_iter().find(|pipeline| pipeline.metadata.uid == id);
        let found = found.ok_or_else(|| Error::no_pipeline(id))?;
        self.remember(&found.metadata);
        Ok(found)
    }

    /// The pipelines of a namespace, or of all.
    pub(super) async fn all_pipelines(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<PipelineObject>, Error> {
        let mut all = Vec::new();
        let calls = Calls::pipelines(&self.client, namespace);
        let take = |page: Vec<PipelineObject>| {
            all.extend(page);
            Ok(())
        };
        calls.list("", take).await?;
        Ok(all)
    }

    /// The versions of a pipeline, as many of them with their documents as `room` says.
    pub(super) async fn version_objects(
        &self,
        pipeline: &PipelineObject,
        room: Room,
    ) -> Result<Vec<VersionObject>, Error> {
        let metadata = &pipeline.metadata;
        let calls = Calls::versions(&self.client, Some(&metadata.namespace));
        let (mut versions, mut kept) = (Vec::new(), 0);
        // Without the webhook, objects of others have no label.
        let unlabelled = format!("!{PIPELINE_ID_LABEL}");
        for labels in [format!("{PIPELINE_ID_LABEL}={}", metadata.uid), unlabelled] {
            let take = |page: Vec<VersionObject>| {
                let own = page
                    .into_iter()
                    .filter(|version| version.belongs_to(metadata));
                for mut version in own {
                    room.keep(&mut kept, &mut version)?;
                    versions.push(version);
                }
                Ok(())
            };
            calls.list(&labels, take).await?;
        }
        Ok(versions)
    }

    /// Reads the documents of versions that were forgotten. One that is gone or another by now is left out.
    pub(super) async fn with_documents(
        &self,
        versions: Vec<VersionObject>,
    ) -> Result<Vec<VersionObject>, Error> {
        let read = versions.into_iter().map(|version| async move {
            if version.is_whole() {
                return Ok(Some(version));
            }
            let calls = Calls::versions(&self.client, Some(&version.metadata.namespace));
            let found: Option<VersionObject> = calls.get(&version.metadata.name).await?;
            Ok(found.filter(|found| found.metadata.uid == version.metadata.uid))
        });
        let read: Result<Vec<_>, Error> = futures::stream::iter(read)
            .buffered(REREAD)
            .try_collect()
            .await;
        Ok(read?.into_iter().flatten().collect())
    }

    /// The PipelineVersion object of a pipeline with this uid, and the pipeline.
    pub(super) async fn version_object(
        &self,
        pipeline_id: &str,
        id: &str,
    ) -> Result<(PipelineObject, VersionObject), Error> {
        let missing = |error: Error| match error.kind() {
            ErrorKind::Missing => Error::no_version(id),
            _ => error,
        };
        let pipeline = self.pipeline_object(pipeline_id).await.map_err(missing)?;
        if let Some((namespace, name)) = self.place(id) {
            let calls = Calls::versions(&self.client, Some(&namespace));
            let found: Option<VersionObject> = calls.get(&name).await?;
            if let Some(found) = found.filter(|found| found.metadata.uid == id) {
                return match found.belongs_to(&pipeline.metadata) {
                    true => Ok((pipeline, found)),
                    false => Err(Error::no_version(id)),
                };
            }
        }
        let versions = self.version_objects(&pipeline, Room::Page).await?;
        let found = versions
            .into_iter()
            .find(|version| version.metadata.uid == id);
        let found = found.ok_or_else(|| Error::no_version(id))?;
        self.remember(&found.metadata);
        let mut found = self.with_documents(vec![found]).await?;
        let found = found.pop().ok_or_else(|| Error::no_version(id))?;
        Ok((pipeline, found))
    }

    /// Whether a pipeline has a version of this name, under one of the names that its object can have.
    pub(super) async fn has_version(
        &self,
        pipeline: &PipelineObject,
        name: &str,
    ) -> Result<bool, Error> {
        let calls = Calls::versions(&self.client, Some(&pipeline.metadata.namespace));
        for object in [
            names::version_object(&pipeline.metadata.name, name)?,
            name.to_owned(),
        ] {
            let found: Option<VersionObject> = calls.get(&object).await?;
            let is_it = |found: &VersionObject| {
                found.belongs_to(&pipeline.metadata) && found.name() == name
            };
            if found.as_ref().is_some_and(is_it) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use kubesim::{Crd, Sim};
    use serde_json::json;

    use super::{MAX_KEPT, Room, VersionObject};
    use crate::{kubernetes::KubernetesStore, query::Item as _};

    fn version(sim: &Sim, name: &str) -> VersionObject {
        let made = sim.create(json!({
            "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "PipelineVersion",
            "metadata": {"name": name, "namespace": "ci"},
            "spec": {"pipelineSpec": {
                "pipelineInfo": {"name": "p"}, "root": {"executorLabel": "e"}, "schemaVersion": "2.1.0",
            }},
        }));
        serde_json::from_str(&made.unwrap().to_string()).unwrap()
    }

    #[tokio::test]
    async fn documents_beyond_a_bound_are_forgotten_and_read_again() {
        let sim = Sim::new();
        sim.install_all(Crd::kubeflow()).namespace("ci");
        let whole = version(&sim, "a");
        let (mut first, mut second) = (whole.clone(), version(&sim, "b"));
        let mut kept = MAX_KEPT - whole.kept();
        Room::Page.keep(&mut kept, &mut first).unwrap();
        assert!(first.is_whole() && kept == MAX_KEPT);
        Room::Page.keep(&mut kept, &mut first).unwrap();
        Room::Page.keep(&mut kept, &mut second).unwrap();
        assert!(!first.is_whole() && kept == MAX_KEPT);
        assert_eq!((first.kept(), first.size()), (0, whole.size()));

        sim.delete("pipelines.kubeflow.org", "pipelineversions", "ci", "b")
            .unwrap();
        let store = KubernetesStore::of_namespace(sim.client(), "ci");
        let read = store.with_documents(vec![first, second]).await.unwrap();
        let [read] = read.try_into().unwrap();
        assert_eq!(read.read("p"), whole.read("p"));
        assert!(read.read("p").spec.is_ok());
    }

    #[test]
    fn specs_that_are_searched_are_bounded() {
        let mut object: VersionObject =
            serde_json::from_str(r#"{"metadata":{},"spec":{"pipelineSpec":1}}"#).unwrap();
        let mut kept = 256 << 20;
        let error = Room::All.keep(&mut kept, &mut object).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("filter and sort by other fields"),
            "{error}"
        );
    }
}
