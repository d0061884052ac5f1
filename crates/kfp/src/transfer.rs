//! Pipelines as manifests of Kubernetes objects, out of one store and into another. Everything that a store keeps is
//! in them, and the ids that things had are in annotations.

mod manifest;
mod names;
mod rest;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{
    error::Error,
    model::{NewPipeline, NewVersion, Pipeline, PipelineVersion, Spec},
    query::{ListAsk, Query, Scope},
    store::PipelineStore,
};

pub use manifest::{Manifests, read};
pub use rest::{Rest, RestError};

use names::Names;

/// Items of one page.
const PAGE: i32 = 200;

/// Bytes of one page, after which it ends.
const ROOM: usize = 16 << 20;

/// Where pipelines are read.
#[async_trait]
pub trait Source: Debug + Send + Sync {
    /// A page of the pipelines of a namespace, and the token of the next page, which is empty after the last one.
    async fn pipelines(
        &self,
        namespace: &str,
        token: &str,
    ) -> Result<(Vec<Pipeline>, String), String>;

    /// Likewise of the versions of a pipeline.
    async fn versions(
        &self,
        pipeline_id: &str,
        token: &str,
    ) -> Result<(Vec<PipelineVersion>, String), String>;
}

/// A store that pipelines are read from.
#[derive(Debug)]
pub struct Stored(pub Arc<dyn PipelineStore>);

#[async_trait]
impl Source for Stored {
    async fn pipelines(
        &self,
        namespace: &str,
        token: &str,
    ) -> Result<(Vec<Pipeline>, String), String> {
        let scope = Scope::Pipelines {
            namespace: namespace.to_owned(),
        };
        let query = page(scope, token)?;
        let page = self
            .0
            .pipelines(&query)
            .await
            .map_err(|error| error.to_string())?;
        Ok((page.items, page.next))
    }

    async fn versions(
        &self,
        pipeline_id: &str,
        token: &str,
    ) -> Result<(Vec<PipelineVersion>, String), String> {
        let scope = Scope::Versions {
            pipeline_id: pipeline_id.to_owned(),
        };
        let query = page(scope, token)?;
        let page = self
            .0
            .versions(&query)
            .await
            .map_err(|error| error.to_string())?;
        Ok((page.items, page.next))
    }
}

fn page(scope: Scope, token: &str) -> Result<Query, String> {
    let ask = ListAsk {
        page_token: token.to_owned(),
        page_size: PAGE,
        ..ListAsk::default()
    };
    Query::new(scope, &ask, ROOM).map_err(|error| error.to_string())
}

/// What was done, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Pipelines that were written.
    pub pipelines: usize,
    /// Versions that were written.
    pub versions: usize,
    /// What was there already, and equal.
    pub unchanged: usize,
    /// Why something was not written, each with what it is.
    pub failures: Vec<String>,
}

/// What is told while something goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A pipeline or a version is done.
    Done,
    /// Something is not, and why.
    Failed(&'a str),
}

/// Writes the pipelines of namespaces of a source as manifests: `write` gets the name of a file and its text, one file
/// for each pipeline. Objects go to the namespace `target`, or that of each pipeline, or to none.
///
/// # Errors
/// If a list of pipelines cannot be read. What else fails is counted.
pub async fn export(
    source: &dyn Source,
    namespaces: &[String],
    target: Option<&str>,
    mut write: impl FnMut(&str, &str) -> Result<(), String>,
    mut tell: impl FnMut(Event<'_>),
) -> Result<Count, String> {
    let mut count = Count::default();
    let mut names = Names::default();
    for namespace in namespaces {
        let mut token = String::new();
        loop {
            let (pipelines, next) = source.pipelines(namespace, &token).await?;
            for pipeline in pipelines {
                let before = count.failures.len();
                let manifests =
                    manifests_of(source, &pipeline, target, &mut names, &mut count).await;
                for failure in count.failures.get(before..).unwrap_or_default() {
                    tell(Event::Failed(failure));
                }
                let Some(manifests) = manifests else { continue };
                match write(&manifests.file, &manifests.text()) {
                    Ok(()) => {
                        count.pipelines += 1;
                        count.versions += manifests.versions();
                        tell(Event::Done);
                    }
                    Err(why) => {
                        let why = format!("{}: {why}", manifests.file);
                        tell(Event::Failed(&why));
                        count.failures.push(why);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            token = next;
        }
    }
    Ok(count)
}

/// The manifests of a pipeline and its versions, oldest first.
async fn manifests_of(
    source: &dyn Source,
    pipeline: &Pipeline,
    target: Option<&str>,
    names: &mut Names,
    count: &mut Count,
) -> Option<Manifests> {
    let shown = format!("pipeline `{}` ({})", pipeline.name, pipeline.id);
    let mut versions = Vec::new();
    let mut token = String::new();
    loop {
        match source.versions(&pipeline.id, &token).await {
            Ok((page, next)) => {
                versions.extend(page);
                token = next;
            }
            Err(why) => {
                count
                    .failures
                    .push(format!("{shown}: its versions cannot be read: {why}"));
                return None;
            }
        }
        if token.is_empty() {
            break;
        }
    }
    versions.sort_by(|left, right| (left.created_at, &left.id).cmp(&(right.created_at, &right.id)));
    let namespace = target
        .or(Some(&pipeline.namespace))
        .filter(|name| !name.is_empty());
    let mut manifests = Manifests::of(pipeline, namespace, names);
    for version in versions {
        if let Err(why) = manifests.add(&version, names) {
            let (name, id) = (&version.name, &version.id);
            count
                .failures
                .push(format!("{shown}: version `{name}` ({id}): {why}"));
        }
    }
    Some(manifests)
}

/// A pipeline that manifests describe, with its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The pipeline; `None` if the manifests have only versions of it.
    pub pipeline: Option<NewPipeline>,
    /// Its namespace; empty for none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its versions, in the order of the manifests.
    pub versions: Vec<NewVersion>,
}

/// Creates in a store what manifests describe. What is there already is compared and left alone; if it differs, that is
/// counted as a failure. A second import changes nothing.
pub async fn import(
    store: &dyn PipelineStore,
    described: Vec<Described>,
    mut tell: impl FnMut(Event<'_>),
) -> Count {
    let mut count = Count::default();
    for described in described {
        let shown = format!("pipeline `{}`", described.name);
        let (pipeline, is_new) = match pipeline_of(store, &described).await {
            Ok(found) => found,
            Err(error) => {
                let why = format!("{shown}: {error}");
                tell(Event::Failed(&why));
                count.failures.push(why);
                continue;
            }
        };
        match is_new {
            true => count.pipelines += 1,
            false => count.unchanged += 1,
        }
        tell(Event::Done);
        let there = if is_new {
            Ok(BTreeMap::new())
        } else {
            versions_of(store, &pipeline.id).await
        };
        let there = match there {
            Ok(there) => there,
            Err(why) => {
                let why = format!("{shown}: {why}");
                tell(Event::Failed(&why));
                count.failures.push(why);
                continue;
            }
        };
        for version in described.versions {
            let name = version.name.clone();
            let outcome = match there.get(&name) {
                Some(there) => same(there, &version).map(|()| false),
                None => {
                    let made = store.create_version(&pipeline.id, version).await;
                    made.map(|_made| true).map_err(|error| error.to_string())
                }
            };
            match outcome {
                Ok(true) => count.versions += 1,
                Ok(false) => count.unchanged += 1,
                Err(why) => {
                    let why = format!("{shown}: version `{name}`: {why}");
                    tell(Event::Failed(&why));
                    count.failures.push(why);
                    continue;
                }
            }
            tell(Event::Done);
        }
    }
    count
}

/// The pipeline that is described, and whether it was made just now.
async fn pipeline_of(
    store: &dyn PipelineStore,
    described: &Described,
) -> Result<(Pipeline, bool), Error> {
    let found = store
        .pipeline_by_name(&described.namespace, &described.name)
        .await;
    match (found, &described.pipeline) {
        (Err(error), Some(new)) if is_missing(&error) => {
            Ok((store.create_pipeline(new.clone()).await?, true))
        }
        (found, _) => Ok((found?, false)),
    }
}

fn is_missing(error: &Error) -> bool {
    use hindsight_runtime::error::{ErrorKind, HasKind as _};
    error.kind() == ErrorKind::Missing
}

/// All versions of a pipeline, by name.
async fn versions_of(
    store: &dyn PipelineStore,
    pipeline_id: &str,
) -> Result<BTreeMap<String, PipelineVersion>, String> {
    let mut found = BTreeMap::new();
    let mut token = String::new();
    loop {
        let scope = Scope::Versions {
            pipeline_id: pipeline_id.to_owned(),
        };
        let page = store.versions(&page(scope, &token)?).await;
        let page = page.map_err(|error| error.to_string())?;
        for version in page.items {
            found.insert(version.name.clone(), version);
        }
        if page.next.is_empty() {
            return Ok(found);
        }
        token = page.next;
    }
}

/// Whether a version that is there is the one that is described.
fn same(there: &PipelineVersion, new: &NewVersion) -> Result<(), String> {
    let spec = there.spec.as_ref().map(Spec::text);
    let differs = [
        ("pipelineSpec", spec.as_ref().ok() != Some(&new.spec.text())),
        ("description", there.description != new.description),
        (
            "codeSourceURL",
            there.code_source_url != new.code_source_url,
        ),
        ("pipelineSpecURI", there.package_url != new.package_url),
    ];
    let differs = differs.iter().filter(|(_, differs)| *differs);
    let differs: Vec<_> = differs.map(|(field, _)| *field).collect();
    match differs.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "there is one of this name whose {} differs",
            differs.join(" and ")
        )),
    }
}

/// The time of what is made by an import.
pub(crate) fn made_at(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
