//! Pipelines in the tables of a SQL database.

use std::sync::Arc;

use async_trait::async_trait;
use hindsight_storage::{
    self as storage, PipelineChange, PipelineColumn, PipelineComparison, PipelineKey,
    PipelineQuery, PipelineRow, PipelineScope, PipelineTables, PipelineTest, PipelineValue,
    VersionRow,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    error::Error,
    model::{Change, NewPipeline, NewVersion, Pipeline, PipelineVersion, Spec, Status},
    query::{Comparison, Field, MAX_SORTED_CHARS, Operand, Page, Query, Scope, SortKey, Test},
    store::PipelineStore,
};

/// The store over tables.
#[derive(Debug, Clone)]
pub struct Database {
    tables: Arc<dyn PipelineTables>,
}

impl Database {
    /// Over the tables of a database.
    #[must_use]
    pub fn new(tables: Arc<dyn PipelineTables>) -> Self {
        Self { tables }
    }

    async fn found(&self, key: PipelineKey<'_>) -> Result<Option<Pipeline>, Error> {
        let row = self.tables.pipeline(key).await?;
        row.map(pipeline).transpose()
    }
}

#[async_trait]
impl PipelineStore for Database {
    fn kind(&self) -> &'static str {
        "database"
    }

    fn default_namespace(&self) -> &str {
        ""
    }

    async fn create_pipeline(&self, new: NewPipeline) -> Result<Pipeline, Error> {
        let row = pipeline_row(new);
        let made = self.tables.create_pipeline(&row, None).await;
        made.map_err(|error| refused(error, &row.name, &row.id))?;
        pipeline(row)
    }

    async fn create_version(
        &self,
        pipeline_id: &str,
        new: NewVersion,
    ) -> Result<PipelineVersion, Error> {
        let row = version_row(pipeline_id, new);
        match self.tables.create_version(&row).await {
            Ok(()) => version(row),
            Err(storage::Error::Missing(_)) => Err(Error::no_pipeline(pipeline_id)),
            Err(storage::Error::Exists(_)) => Err(Error::version_exists(&row.name)),
            Err(error) => Err(error.into()),
        }
    }

    async fn create_both(
        &self,
        new: NewPipeline,
        first: NewVersion,
    ) -> Result<(Pipeline, PipelineVersion), Error> {
        let row = pipeline_row(new);
        let first = version_row(&row.id, first);
        let made = self.tables.create_pipeline(&row, Some(&first)).await;
        made.map_err(|error| refused(error, &row.name, &row.id))?;
        Ok((pipeline(row)?, version(first)?))
    }

    async fn pipeline(&self, id: &str) -> Result<Pipeline, Error> {
        let found = self.found(PipelineKey::Id(id)).await?;
        found.ok_or_else(|| Error::no_pipeline(id))
    }

    async fn pipeline_by_name(&self, namespace: &str, name: &str) -> Result<Pipeline, Error> {
        let found = self.found(PipelineKey::Name { namespace, name }).await?;
        found.ok_or_else(|| Error::no_pipeline_named(namespace, name))
    }

    async fn version(&self, pipeline_id: &str, id: &str) -> Result<PipelineVersion, Error> {
        let row = self.tables.version(pipeline_id, id).await?;
        version(row.ok_or_else(|| Error::no_version(id))?)
    }

    async fn pipelines(&self, query: &Query) -> Result<Page<Pipeline>, Error> {
        let Some(asked) = asked(query) else {
            return Ok(Page::empty());
        };
        let found = self.tables.list_pipelines(&asked).await?;
        let items = found.rows.into_iter().map(pipeline);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Ok(query.made(items, found.total, found.more))
    }

    async fn versions(&self, query: &Query) -> Result<Page<PipelineVersion>, Error> {
        let Some(asked) = asked(query) else {
            if let Scope::Versions { pipeline_id } = &query.scope {
                self.pipeline(pipeline_id).await?;
            }
            return Ok(Page::empty());
        };
        let found = match self.tables.list_versions(&asked).await {
            Err(storage::Error::Missing(id)) => return Err(Error::no_pipeline(&id)),
            found => found?,
        };
        let items = found.rows.into_iter().map(version);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Ok(query.made(items, found.total, found.more))
    }

    async fn update_pipeline(&self, id: &str, change: Change) -> Result<Pipeline, Error> {
        match self.tables.update_pipeline(id, &changed(change)).await? {
            true => self.pipeline(id).await,
            false => Err(Error::no_pipeline(id)),
        }
    }

    async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: Change,
    ) -> Result<PipelineVersion, Error> {
        let change = changed(change);
        match self.tables.update_version(pipeline_id, id, &change).await? {
            true => self.version(pipeline_id, id).await,
            false => Err(Error::no_version(id)),
        }
    }

    async fn delete_pipeline(&self, id: &str, cascade: bool) -> Result<Vec<String>, Error> {
        let versions = self.tables.delete_pipeline(id, !cascade).await?;
        let versions = versions.ok_or_else(|| Error::no_pipeline(id))?;
        match versions.first() {
            Some(version) if !cascade => Err(Error::has_versions(id, version)),
            _ => Ok(versions),
        }
    }

    async fn delete_version(&self, pipeline_id: &str, id: &str) -> Result<(), Error> {
        match self.tables.delete_version(pipeline_id, id).await? {
            true => Ok(()),
            false => Err(Error::no_version(id)),
        }
    }
}

fn refused(error: storage::Error, name: &str, id: &str) -> Error {
    match error {
        storage::Error::Exists(_) => Error::pipeline_exists(name),
        storage::Error::Missing(_) => Error::no_pipeline(id),
        error => error.into(),
    }
}

fn pipeline_row(new: NewPipeline) -> PipelineRow {
    PipelineRow {
        id: Uuid::new_v4().to_string(),
        namespace: new.namespace,
        name: new.name,
        display_name: new.display_name,
        description: new.description,
        tags: new.tags,
        created_at: new.now.as_second(),
        original_id: new.original_id,
    }
}

fn version_row(pipeline_id: &str, new: NewVersion) -> VersionRow {
    VersionRow {
        id: Uuid::new_v4().to_string(),
        pipeline_id: pipeline_id.to_owned(),
        name: new.name,
        display_name: new.display_name,
        description: new.description,
        tags: new.tags,
        created_at: new.now.as_second(),
        package_url: new.package_url,
        code_source_url: new.code_source_url,
        original_id: new.original_id,
        spec: new.spec.text(),
    }
}

fn time(seconds: i64) -> Result<Timestamp, Error> {
    let time = Timestamp::from_second(seconds);
    time.map_err(|error| storage::Error::Corrupt(error.to_string()).into())
}

fn pipeline(row: PipelineRow) -> Result<Pipeline, Error> {
    Ok(Pipeline {
        id: row.id,
        namespace: row.namespace,
        name: row.name,
        display_name: row.display_name,
        description: row.description,
        tags: row.tags,
        created_at: time(row.created_at)?,
        original_id: row.original_id,
    })
}

fn version(row: VersionRow) -> Result<PipelineVersion, Error> {
    let spec = hindsight_run::json::parse(row.spec.as_bytes());
    Ok(PipelineVersion {
        id: row.id,
        pipeline_id: row.pipeline_id,
        name: row.name,
        display_name: row.display_name,
        description: row.description,
        tags: row.tags,
        created_at: time(row.created_at)?,
        package_url: row.package_url,
        code_source_url: row.code_source_url,
        status: Status::Ready,
        spec: spec.map(Spec::of_shown).map_err(|error| error.to_string()),
        original_id: row.original_id,
    })
}

fn changed(change: Change) -> PipelineChange {
    PipelineChange {
        display_name: change.display_name,
        tags: change.tags,
    }
}

/// The question to the tables; `None` if no row can pass. A version in them is always ready.
fn asked(query: &Query) -> Option<PipelineQuery> {
    let mut tests = Vec::new();
    for predicate in &query.predicates {
        match column(predicate.field()) {
            Some(column) => tests.push((column, test(predicate.test()))),
            None => match predicate.holds_of(Status::Ready.name()) {
                true => {}
                false => return None,
            },
        }
    }
    let after = query.after.as_ref().map(|after| {
        let value = match &after.key {
            SortKey::Seconds(number) => PipelineValue::Number(*number),
            SortKey::Text(text) => PipelineValue::Text(text.clone()),
        };
        (value, after.id.clone())
    });
    Some(PipelineQuery {
        scope: match &query.scope {
            Scope::Pipelines { namespace } => PipelineScope::Namespace(namespace.clone()),
            Scope::Versions { pipeline_id } => PipelineScope::Pipeline(pipeline_id.clone()),
        },
        tests,
        order: column(&query.sort.field).unwrap_or(PipelineColumn::Id),
        descending: query.sort.descending,
        order_chars: MAX_SORTED_CHARS,
        after,
        limit: query.size,
        room: query.room,
    })
}

/// Where a field is; `None` of the status.
fn column(field: &Field) -> Option<PipelineColumn> {
    Some(match field {
        Field::Id => PipelineColumn::Id,
        Field::Name => PipelineColumn::Name,
        Field::DisplayName => PipelineColumn::DisplayName,
        Field::CreatedAt => PipelineColumn::CreatedAt,
        Field::Description => PipelineColumn::Description,
        Field::Namespace => PipelineColumn::Namespace,
        Field::PipelineSpec => PipelineColumn::Spec,
        Field::Tag(key) => PipelineColumn::Tag(key.clone()),
        Field::Status => return None,
    })
}

fn test(test: &Test) -> PipelineTest {
    match test {
        Test::Compare(how, operand) => {
            let how = match how {
                Comparison::Equals => PipelineComparison::Equal,
                Comparison::NotEquals => PipelineComparison::NotEqual,
                Comparison::Greater => PipelineComparison::Greater,
                Comparison::GreaterOrEquals => PipelineComparison::GreaterOrEqual,
                Comparison::Less => PipelineComparison::Less,
                Comparison::LessOrEquals => PipelineComparison::LessOrEqual,
            };
            PipelineTest::Compare(how, value(operand))
        }
        Test::In(operands) => PipelineTest::In(operands.iter().map(value).collect()),
        Test::Substring(part) => PipelineTest::Substring(part.clone()),
    }
}

fn value(operand: &Operand) -> PipelineValue {
    match operand {
        Operand::Seconds(number) => PipelineValue::Number(*number),
        Operand::Text(text) => PipelineValue::Text(text.clone()),
    }
}
