//! Pipelines and their versions: what every durable store of their rows can do.
//!
//! What names, tags and filters may be is decided elsewhere; a row comes back as it was written.

use std::{collections::BTreeMap, fmt::Debug};

use async_trait::async_trait;

use super::Error;

/// A pipeline. Ids are UUIDs in lower case; times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineRow {
    /// A UUID that the caller made.
    pub id: String,
    /// The namespace it belongs to; may be empty.
    pub namespace: String,
    /// No other pipeline of the namespace has it.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: BTreeMap<String, String>,
    /// When it was made.
    pub created_at: i64,
    /// Its id where it came from.
    pub original_id: Option<String>,
}

/// A version of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// A UUID that the caller made.
    pub id: String,
    /// The id of its pipeline.
    pub pipeline_id: String,
    /// No other version of the pipeline has it.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: BTreeMap<String, String>,
    /// When it was made.
    pub created_at: i64,
    /// Where its package was downloaded; empty if it was uploaded.
    pub package_url: String,
    /// Where its source is; may be empty.
    pub code_source_url: String,
    /// Its id where it came from.
    pub original_id: Option<String>,
    /// Text in JSON, which the store does not read.
    pub spec: String,
}

/// What an update changes; the rest stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipelineChange {
    /// The one that it has from then on.
    pub display_name: Option<String>,
    /// All tags, in the place of those that are there.
    pub tags: Option<BTreeMap<String, String>>,
}

/// How a pipeline is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineKey<'k> {
    /// By its id.
    Id(&'k str),
    /// By its name.
    Name {
        /// The namespace; may be empty.
        namespace: &'k str,
        /// The name in it.
        name: &'k str,
    },
}

/// Of what a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineScope {
    /// The pipelines of a namespace.
    Namespace(String),
    /// The versions of the pipeline with this id.
    Pipeline(String),
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineColumn {
    /// The column `id`, which breaks ties of every order.
    Id,
    /// The column `name`, unique in its namespace or pipeline.
    Name,
    /// The display name.
    DisplayName,
    /// A number. All others are texts, which are compared by their code points.
    CreatedAt,
    /// The column `description`, which may be empty.
    Description,
    /// The namespace, which pipelines alone have.
    Namespace,
    /// The text of the specification, which versions alone have.
    Spec,
    /// The value under a key of the tags; tests of it are for equality, and nothing is ordered by it.
    Tag(String),
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineValue {
    /// Of a column of numbers.
    Number(i64),
    /// Of a text.
    Text(String),
}

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineComparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// What is asked of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineTest {
    /// It compares so with a value.
    Compare(PipelineComparison, PipelineValue),
    /// It is one of these.
    In(Vec<PipelineValue>),
    /// It has this text in it, whichever the case of ASCII letters.
    Substring(String),
}

/// Which rows of a list are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineQuery {
    /// Of what the list is.
    pub scope: PipelineScope,
    /// A row passes all of them.
    pub tests: Vec<(PipelineColumn, PipelineTest)>,
    /// Rows that are equal in it are ordered by their ids, in the same direction.
    pub order: PipelineColumn,
    /// The greatest first.
    pub descending: bool,
    /// Of texts, so many characters from the first on are ordered by.
    pub order_chars: usize,
    /// Only rows after one with this value and this id.
    pub after: Option<(PipelineValue, String)>,
    /// Most rows of the page.
    pub limit: u32,
    /// Most bytes of texts of the rows. One row is always given.
    pub room: usize,
}

/// Rows of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineRows<T> {
    /// The rows of the page, in the order that was asked for.
    pub rows: Vec<T>,
    /// How many rows pass the tests, wherever they are.
    pub total: u64,
    /// Whether more rows follow.
    pub more: bool,
}

/// Durable storage of pipelines and their versions.
#[async_trait]
pub trait PipelineTables: Debug + Send + Sync + 'static {
    /// Writes a pipeline, and a version of it if there is one; both or neither. [`Error::Exists`] if the namespace has
    /// one of the name.
    async fn create_pipeline(
        &self,
        pipeline: &PipelineRow,
        version: Option<&VersionRow>,
    ) -> Result<(), Error>;

    /// Writes a version. [`Error::Missing`] without its pipeline, [`Error::Exists`] if that has one of the name.
    async fn create_version(&self, version: &VersionRow) -> Result<(), Error>;

    /// Reads a pipeline; `None` if there is none.
    async fn pipeline(&self, key: PipelineKey<'_>) -> Result<Option<PipelineRow>, Error>;

    /// A version, if it is one of the pipeline.
    async fn version(&self, pipeline_id: &str, id: &str) -> Result<Option<VersionRow>, Error>;

    /// Rows of a list of pipelines, as of one moment.
    async fn list_pipelines(
        &self,
        query: &PipelineQuery,
    ) -> Result<PipelineRows<PipelineRow>, Error>;

    /// Rows of a list of versions, as of one moment. [`Error::Missing`] without the pipeline.
    async fn list_versions(&self, query: &PipelineQuery)
    -> Result<PipelineRows<VersionRow>, Error>;

    /// Says whether there is such a pipeline.
    async fn update_pipeline(&self, id: &str, change: &PipelineChange) -> Result<bool, Error>;

    /// Says whether there is such a version of the pipeline.
    async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: &PipelineChange,
    ) -> Result<bool, Error>;

    /// Deletes a pipeline and its versions, and gives the ids of these; `None` if there is none. With `only_empty`
    /// nothing is deleted if it has versions, and one id of them is given.
    async fn delete_pipeline(
        &self,
        id: &str,
        only_empty: bool,
    ) -> Result<Option<Vec<String>>, Error>;

    /// Says whether there was such a version of the pipeline.
    async fn delete_version(&self, pipeline_id: &str, id: &str) -> Result<bool, Error>;
}
