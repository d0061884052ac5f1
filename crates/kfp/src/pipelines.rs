//! What is done for requests about pipelines: names that stand for each other, checks, packages, and then the store.
//!
//! Who may ask is not decided here.

use std::sync::Arc;

use hindsight_runtime::{error::ErrorKind, low_priority};
use jiff::Timestamp;

use crate::{
    download::{self, Downloader, File},
    error::Error,
    model::{Change, NewPipeline, NewVersion, Pipeline, PipelineVersion, Spec, Tags},
    names, package,
    query::Listable,
    spec::Documents,
    store::PipelineStore,
};

/// The namespace that stands for pipelines of no namespace.
const SHARED: &str = "-";

/// Pipelines of one store, and where packages are downloaded.
#[derive(Debug, Clone)]
pub struct Pipelines {
    store: Arc<dyn PipelineStore>,
    downloader: Downloader,
    /// Whether pipelines belong to namespaces.
    multi_user: bool,
}

/// What a request says about a pipeline to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedPipeline {
    /// Passed over where pipelines do not belong to namespaces.
    pub namespace: String,
    /// The display name, if empty.
    pub name: String,
    /// The name, if empty.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys.
    pub tags: Tags,
}

/// What a request says about a version to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedVersion {
    /// The display name, if empty.
    pub name: String,
    /// The name, if empty.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys.
    pub tags: Tags,
    /// May be empty.
    pub code_source_url: String,
}

/// A pipeline, and its first version.
pub type Both = (Pipeline, PipelineVersion);

impl Pipelines {
    /// Those of a store. Without `multi_user` namespaces of requests are passed over.
    #[must_use]
    pub fn new(store: Arc<dyn PipelineStore>, downloader: Downloader, multi_user: bool) -> Self {
        Self {
            store,
            downloader,
            multi_user,
        }
    }

    /// Whether pipelines belong to namespaces.
    #[must_use]
    pub fn multi_user(&self) -> bool {
        self.multi_user
    }

    /// Where pipelines are kept; what it does is neither checked nor written to the audit log.
    #[must_use]
    pub fn store(&self) -> &dyn PipelineStore {
        &*self.store
    }

    /// The namespace that a request means, which may be none.
    ///
    /// # Errors
    /// If it cannot be the name of one.
    pub fn namespace(&self, asked: &str) -> Result<String, Error> {
        if !self.multi_user || asked.is_empty() || asked == SHARED {
            return Ok(self.store.default_namespace().to_owned());
        }
        names::check_namespace(asked)?;
        Ok(asked.to_owned())
    }

    /// Creates a pipeline without versions.
    ///
    /// # Errors
    /// If its names or tags are refused, or the name is taken.
    pub async fn create(&self, asked: AskedPipeline, now: Timestamp) -> Result<Pipeline, Error> {
        let new = self.checked(asked, now)?;
        let made = self.store.create_pipeline(new).await;
        made.map_err(|error| error.within("Failed to create a pipeline"))
    }

    /// Creates a pipeline and its first version from the package at an address, or neither. The version has the names
    /// of the pipeline; without any, that of the file.
    ///
    /// # Errors
    /// If the package is not to be had or is none, or as [`create`](Self::create).
    pub async fn create_both(
        &self,
        asked: AskedPipeline,
        beside: AskedVersion,
        url: &str,
        now: Timestamp,
    ) -> Result<Both, Error> {
        let what = "Failed to create a pipeline and a pipeline version";
        let both = async {
            self.check_asked(&asked)?;
            names::check_tags(&beside.tags)?;
            let file = self.downloaded(url).await?;
            self.both(asked, beside, file, url, now).await
        };
        both.await.map_err(|error| error.within(what))
    }

    /// Likewise from a file.
    ///
    /// # Errors
    /// If there is no pipeline in the file, or as [`create`](Self::create).
    pub async fn upload(
        &self,
        asked: AskedPipeline,
        beside: AskedVersion,
        file: File,
        now: Timestamp,
    ) -> Result<Both, Error> {
        self.both(asked, beside, file, "", now).await
    }

    async fn both(
        &self,
        mut asked: AskedPipeline,
        beside: AskedVersion,
        file: File,
        url: &str,
        now: Timestamp,
    ) -> Result<Both, Error> {
        if asked.name.is_empty() && asked.display_name.is_empty() {
            asked.name.clone_from(&file.name);
        }
        let new = self.checked(asked, now)?;
        let version = AskedVersion {
            name: new.name.clone(),
            display_name: new.display_name.clone(),
            description: new.description.clone(),
            ..beside
        };
        let version = version.checked(url, now)?;
        let spec = spec(file).await?;
        self.store.create_both(new, version.with(spec)).await
    }

    /// Adds the package at an address to a pipeline.
    ///
    /// # Errors
    /// If there is no such pipeline, the package is not to be had or is none, names or tags are refused, or the name is
    /// taken.
    pub async fn create_version(
        &self,
        pipeline: &Pipeline,
        asked: AskedVersion,
        url: &str,
        now: Timestamp,
    ) -> Result<PipelineVersion, Error> {
        let version = async {
            if url.is_empty() {
                let why = "Failed to create a pipeline version. Package URL is empty";
                return Err(Error::invalid(why));
            }
            asked.check_given()?;
            let file = self.downloaded(url).await?;
            self.version(pipeline, asked, file, url, now).await
        };
        let version = version.await;
        version.map_err(|error| error.within("Failed to create a pipeline version"))
    }

    /// Adds a file to a pipeline.
    ///
    /// # Errors
    /// If there is no pipeline in the file, names or tags are refused, or the name is taken.
    pub async fn upload_version(
        &self,
        pipeline: &Pipeline,
        asked: AskedVersion,
        file: File,
        now: Timestamp,
    ) -> Result<PipelineVersion, Error> {
        self.version(pipeline, asked, file, "", now).await
    }

    async fn version(
        &self,
        pipeline: &Pipeline,
        mut asked: AskedVersion,
        file: File,
        url: &str,
        now: Timestamp,
    ) -> Result<PipelineVersion, Error> {
        if asked.name.is_empty() && asked.display_name.is_empty() {
            asked.name.clone_from(&file.name);
        }
        let version = asked.checked(url, now)?;
        let spec = spec(file).await?;
        self.store
            .create_version(&pipeline.id, version.with(spec))
            .await
    }

    /// Changes a pipeline.
    ///
    /// # Errors
    /// If there is none, or a name or tags are refused.
    pub async fn update(&self, id: &str, change: Change) -> Result<Pipeline, Error> {
        check_change(Listable::Pipelines, &change)?;
        self.store.update_pipeline(id, change).await
    }

    /// Changes a version.
    ///
    /// # Errors
    /// If there is none, or a name or tags are refused.
    pub async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: Change,
    ) -> Result<PipelineVersion, Error> {
        check_change(Listable::Versions, &change)?;
        self.store.update_version(pipeline_id, id, change).await
    }

    /// The new pipeline that a request describes.
    fn checked(&self, asked: AskedPipeline, now: Timestamp) -> Result<NewPipeline, Error> {
        let (name, display_name) = both_names(asked.name, asked.display_name);
        names::check_names(Listable::Pipelines, &name, &display_name)?;
        names::check_text("Pipeline.Description", &asked.description)?;
        names::check_tags(&asked.tags)?;
        let is_shared = asked.namespace.is_empty() || asked.namespace == SHARED;
        if is_shared && self.multi_user && !self.store.default_namespace().is_empty() {
            return Err(Error::invalid("A namespace is required"));
        }
        Ok(NewPipeline {
            namespace: self.namespace(&asked.namespace)?,
            name,
            display_name,
            description: asked.description,
            tags: asked.tags,
            original_id: None,
            now,
        })
    }

    /// Checks what is said, before a file is looked for that may give the name.
    fn check_asked(&self, asked: &AskedPipeline) -> Result<(), Error> {
        let mut asked = asked.clone();
        if asked.name.is_empty() && asked.display_name.is_empty() {
            "file".clone_into(&mut asked.name);
        }
        self.checked(asked, Timestamp::UNIX_EPOCH).map(drop)
    }

    async fn downloaded(&self, url: &str) -> Result<File, Error> {
        let kind = |error: &download::Error| match error {
            download::Error::Refused(_) | download::Error::TooLarge(_) => ErrorKind::Invalid,
            download::Error::Failed { .. } => ErrorKind::Invalid,
            download::Error::Trust(_) => ErrorKind::Internal,
        };
        let file = self.downloader.download(url).await;
        file.map_err(|error| Error::new(kind(&error), error.to_string()))
    }
}

/// A version without its specification.
struct Checked {
    name: String,
    display_name: String,
    asked: AskedVersion,
    package_url: String,
    now: Timestamp,
}

impl Checked {
    fn with(self, spec: Spec) -> NewVersion {
        NewVersion {
            name: self.name,
            display_name: self.display_name,
            description: self.asked.description,
            tags: self.asked.tags,
            package_url: self.package_url,
            code_source_url: self.asked.code_source_url,
            spec,
            original_id: None,
            now: self.now,
        }
    }
}

impl AskedVersion {
    fn checked(self, url: &str, now: Timestamp) -> Result<Checked, Error> {
        let (name, display_name) = both_names(self.name.clone(), self.display_name.clone());
        names::check_names(Listable::Versions, &name, &display_name)?;
        names::check_text("PipelineVersion.Description", &self.description)?;
        names::check_text("PipelineVersion.CodeSourceUrl", &self.code_source_url)?;
        names::check_tags(&self.tags)?;
        Ok(Checked {
            name,
            display_name,
            asked: self,
            package_url: url.to_owned(),
            now,
        })
    }

    /// Checks what is said, before a file is looked for that may give the name.
    fn check_given(&self) -> Result<(), Error> {
        let mut given = self.clone();
        if given.name.is_empty() && given.display_name.is_empty() {
            "file".clone_into(&mut given.name);
        }
        given.checked("", Timestamp::UNIX_EPOCH).map(drop)
    }
}

/// Each name is the other one where it is empty.
fn both_names(name: String, display_name: String) -> (String, String) {
    match (name.is_empty(), display_name.is_empty()) {
        (true, _) => (display_name.clone(), display_name),
        (false, true) => (name.clone(), name),
        (false, false) => (name, display_name),
    }
}

fn check_change(of: Listable, change: &Change) -> Result<(), Error> {
    if let Some(display_name) = &change.display_name {
        names::check_display_name(of, display_name)?;
    }
    change.tags.as_ref().map_or(Ok(()), names::check_tags)
}

/// The specification in a file, beside what is short.
async fn spec(file: File) -> Result<Spec, Error> {
    let read = low_priority::block(move |_stop| {
        let text = package::text(&file.name, &file.bytes);
        let text = text.map_err(|error| Error::invalid(error.to_string()))?;
        let documents = Documents::parse(&text);
        documents
            .map(Spec::from)
            .map_err(|error| Error::invalid(error.to_string()))
    });
    let read = read.await;
    read.map_err(|broken| Error::new(ErrorKind::Internal, broken.to_string()))?
}
