//! Pipelines and their versions in a SQL database.

use std::collections::HashMap;

use async_trait::async_trait;

use super::SqlStore;
use crate::{
    driver::{Database, Purpose, Reader, Work},
    seam::{
        Error, PipelineChange, PipelineColumn, PipelineComparison, PipelineKey, PipelineQuery,
        PipelineRow, PipelineRows, PipelineScope, PipelineTables, PipelineTest, PipelineValue,
        Priority, VersionRow,
    },
    sql::{
        dialect::Dialect,
        pipelines as sql,
        row::{Row, SqlRow as _},
        statement::Statement,
    },
};

/// So many rows that pass are sorted; where there are more, they are looked for in order.
const SORTED: i64 = 1000;
/// How often a pipeline is read again before it is deleted, because its versions changed meanwhile.
const RACES: usize = 32;

/// What is known of a pipeline before its versions are looked at.
struct State {
    row: i64,
    versions: i64,
    revision: i64,
}

impl<D: Database> SqlStore<D> {
    async fn first(&self, statement: &Statement) -> Result<Option<Row>, Error> {
        let rows = self.rows(statement, "reading a pipeline").await?;
        Ok(rows.into_iter().next())
    }

    /// Rows of a list, all of one moment; `statement` reads those with these ids.
    async fn list<T>(
        &self,
        query: &PipelineQuery,
        statement: impl Fn(&[String]) -> Statement + Send,
        read: impl Fn(&Row) -> Result<(String, T), Error> + Send,
    ) -> Result<PipelineRows<T>, Error> {
        let work = match query.tests.is_empty() {
            true => Work::Page,
            false => Work::Scan,
        };
        let what = "listing pipelines";
        let mut reader = self.db.reader(work, Priority::Normal, what).await?;
        reader.begin(Purpose::List).await?;
        let found = found::<D>(&mut *reader, query).await?;
        let mut rows = HashMap::new();
        if !found.ids.is_empty() {
            for row in reader.rows(&statement(&found.ids)).await? {
                let (id, row) = read(&row)?;
                rows.insert(id, row);
            }
        }
        reader.end().await?;
        reader.release().await;
        Ok(PipelineRows {
            rows: found.ids.iter().filter_map(|id| rows.remove(id)).collect(),
            total: found.total,
            more: found.more,
        })
    }
}

/// The next rows of a list by their ids.
struct Found {
    ids: Vec<String>,
    total: u64,
    more: bool,
}

async fn found<D: Database>(
    reader: &mut dyn Reader,
    query: &PipelineQuery,
) -> Result<Found, Error> {
    let dialect = D::DIALECT;
    let of = match &query.scope {
        PipelineScope::Namespace(_) => None,
        PipelineScope::Pipeline(id) => {
            let row = reader.row(&sql::state(id)).await?;
            let state = row.as_ref().map(state_in).transpose()?;
            Some(state.ok_or_else(|| Error::Missing(id.clone()))?)
        }
    };
    let pipeline = of.as_ref().map_or(0, |state| state.row);
    let mut total = match &of {
        Some(state) if query.tests.is_empty() => Some(state.versions),
        _ => None,
    };
    let mut parts = sql::Parts::Scan;
    let found = match sql::is_by_names(dialect, query) && !query.tests.is_empty() {
        true => found_by_names(reader, query, &mut total, &mut parts).await?,
        false => None,
    };
    let rows = match found {
        Some(rows) => rows,
        None => {
            let few = few(reader, dialect, query, pipeline, &mut total, parts).await?;
            let page = few.unwrap_or_else(|| sql::page(dialect, query, pipeline));
            reader.rows(&page).await?
        }
    };
    let total = match total {
        Some(total) => total,
        None => counted(reader, dialect, query, pipeline, &rows, parts).await?,
    };
    let (mut ids, mut taken, mut more) = (Vec::new(), 0_usize, false);
    for row in rows {
        let bytes = usize::try_from(row.int(1)?.unwrap_or_default()).unwrap_or(usize::MAX);
        taken = taken.saturating_add(bytes);
        if ids.len() == query.limit as usize || (!ids.is_empty() && taken > query.room) {
            more = true;
            break;
        }
        ids.push(row.text(0)?.unwrap_or_default());
    }
    Ok(Found {
        ids,
        total: u64::try_from(total).unwrap_or_default(),
        more,
    })
}

/// The rows of a page of pipelines that are told by what short rows have: those that are near in order, if these are enough, else
/// in the order of time the next of all that pass, which are counted with them.
async fn found_by_names(
    reader: &mut dyn Reader,
    query: &PipelineQuery,
    total: &mut Option<i64>,
    parts: &mut sql::Parts,
) -> Result<Option<Vec<Row>>, Error> {
    if !is_indexed(&query.order) {
        return Ok(None);
    }
    let near = reader.rows(&sql::near(query)).await?;
    if near.len() > query.limit as usize {
        return Ok(Some(near));
    }
    if sql::has_trigrams(query) {
        *parts = sql::Parts::Trigrams;
    }
    if query.order != PipelineColumn::CreatedAt {
        return Ok(None);
    }
    let page = reader.rows(&sql::counted_page(query, *parts)).await?;
    *total = page.first().map(|row| row.int(3)).transpose()?.flatten();
    Ok(Some(page))
}

/// The statement for a page of so few rows that pass that they are sorted; how many these are is the total. None if they are
/// many, or the order of an index leads to the next ones as soon.
async fn few(
    reader: &mut dyn Reader,
    dialect: Dialect,
    query: &PipelineQuery,
    pipeline: i64,
    total: &mut Option<i64>,
    parts: sql::Parts,
) -> Result<Option<Statement>, Error> {
    let has_index = is_indexed(&query.order) && !sql::is_by_names(dialect, query);
    if !is_led(query) && (query.tests.is_empty() || has_index) {
        return Ok(None);
    }
    let few = sql::row_ids(dialect, query, pipeline, SORTED + 1, parts);
    let rows = reader.rows(&few).await?;
    let rows: Vec<i64> = rows
        .iter()
        .map(|row| Ok(row.int(0)?.unwrap_or_default()))
        .collect::<Result<_, Error>>()?;
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    if count > SORTED {
        return Ok(None);
    }
    *total = Some(count);
    Ok(Some(sql::ids_in(dialect, query, rows)))
}

/// How many rows pass, where these are the next of the page. What the first page has gone through is not gone through again.
async fn counted(
    reader: &mut dyn Reader,
    dialect: Dialect,
    query: &PipelineQuery,
    pipeline: i64,
    page: &[Row],
    parts: sql::Parts,
) -> Result<i64, Error> {
    let (mut before, mut last) = (0, None);
    if query.after.is_none() && !query.tests.is_empty() {
        before = i64::try_from(page.len()).unwrap_or(i64::MAX);
        match page.last() {
            Some(row) if page.len() > query.limit as usize => last = Some(place_in(query, row)?),
            _ => return Ok(before),
        }
        if !goes_on(query) || sql::is_by_names(dialect, query) {
            (before, last) = (0, None);
        }
    }
    let count = sql::count(dialect, query, pipeline, last.as_ref(), parts);
    let row = reader.row(&count).await?;
    let rest = row.map(|row| row.int(0)).transpose()?.flatten();
    Ok(before + rest.unwrap_or_default())
}

/// Where a row of a page is in the order.
fn place_in(query: &PipelineQuery, row: &Row) -> Result<sql::Place, Error> {
    let id = row.text(0)?.unwrap_or_default();
    let value = match query.order {
        PipelineColumn::CreatedAt => PipelineValue::Number(row.int(2)?.unwrap_or_default()),
        _ => PipelineValue::Text(row.text(2)?.unwrap_or_default()),
    };
    Ok((value, id))
}

/// Whether an index leads to the rows that pass.
fn is_led(query: &PipelineQuery) -> bool {
    query.tests.iter().any(|(column, test)| {
        let is_one = matches!(
            test,
            PipelineTest::In(_) | PipelineTest::Compare(PipelineComparison::Equal, _)
        );
        is_one && (is_indexed(column) || matches!(column, PipelineColumn::Tag(_)))
    })
}

fn is_indexed(column: &PipelineColumn) -> bool {
    matches!(
        column,
        PipelineColumn::Id
            | PipelineColumn::Name
            | PipelineColumn::DisplayName
            | PipelineColumn::CreatedAt
    )
}

/// Whether the index of the order has what is tested, too, so that the rest of it is counted fastest.
fn goes_on(query: &PipelineQuery) -> bool {
    use PipelineColumn::{CreatedAt, DisplayName, Name};
    let mut tested = query.tests.iter().map(|(column, _)| column);
    match query.order {
        CreatedAt => tested.all(|column| matches!(column, Name | DisplayName | CreatedAt)),
        DisplayName => tested.all(|column| matches!(column, Name | DisplayName)),
        Name => tested.all(|column| *column == Name),
        _ => false,
    }
}

fn state_in(row: &Row) -> Result<State, Error> {
    Ok(State {
        row: row.int(0)?.unwrap_or_default(),
        versions: row.int(1)?.unwrap_or_default(),
        revision: row.int(2)?.unwrap_or_default(),
    })
}

#[async_trait]
impl<D: Database> PipelineTables for SqlStore<D> {
    async fn create_pipeline(
        &self,
        pipeline: &PipelineRow,
        version: Option<&VersionRow>,
    ) -> Result<(), Error> {
        let mut statements = sql::insert_pipeline(pipeline);
        statements.extend(version.map(sql::insert_version));
        match self.tell(statements).await? {
            0 => Err(Error::Exists(pipeline.name.clone())),
            _ => Ok(()),
        }
    }

    async fn create_version(&self, version: &VersionRow) -> Result<(), Error> {
        if self.tell(vec![sql::insert_version(version)]).await? > 0 {
            return Ok(());
        }
        match self.first(&sql::state(&version.pipeline_id)).await? {
            Some(_) => Err(Error::Exists(version.name.clone())),
            None => Err(Error::Missing(version.pipeline_id.clone())),
        }
    }

    async fn pipeline(&self, key: PipelineKey<'_>) -> Result<Option<PipelineRow>, Error> {
        let row = self.first(&sql::pipeline(key)).await?;
        row.as_ref().map(sql::pipeline_in).transpose()
    }

    async fn version(&self, pipeline_id: &str, id: &str) -> Result<Option<VersionRow>, Error> {
        let row = self.first(&sql::version(pipeline_id, id)).await?;
        row.as_ref().map(sql::version_in).transpose()
    }

    async fn list_pipelines(
        &self,
        query: &PipelineQuery,
    ) -> Result<PipelineRows<PipelineRow>, Error> {
        let read = |row: &Row| sql::pipeline_in(row).map(|row| (row.id.clone(), row));
        self.list(query, sql::pipelines, read).await
    }

    async fn list_versions(
        &self,
        query: &PipelineQuery,
    ) -> Result<PipelineRows<VersionRow>, Error> {
        let read = |row: &Row| sql::version_in(row).map(|row| (row.id.clone(), row));
        self.list(query, sql::versions, read).await
    }

    async fn update_pipeline(&self, id: &str, change: &PipelineChange) -> Result<bool, Error> {
        Ok(self.tell(sql::update_pipeline(id, change)).await? > 0)
    }

    async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: &PipelineChange,
    ) -> Result<bool, Error> {
        let update = sql::update_version(pipeline_id, id, change);
        Ok(self.tell(vec![update]).await? > 0)
    }

    async fn delete_pipeline(
        &self,
        id: &str,
        only_empty: bool,
    ) -> Result<Option<Vec<String>>, Error> {
        for _ in 0..RACES {
            let row = self.first(&sql::state(id)).await?;
            let Some(state) = row.as_ref().map(state_in).transpose()? else {
                return Ok(None);
            };
            let rows = self
                .rows(&sql::version_ids(state.row), "reading versions")
                .await?;
            let ids = rows.iter().map(|row| Ok(row.text(0)?.unwrap_or_default()));
            let ids = ids.collect::<Result<Vec<_>, Error>>()?;
            if only_empty && !ids.is_empty() {
                return Ok(Some(ids));
            }
            let delete = sql::delete_pipeline(state.row, state.revision);
            if self.tell(vec![delete]).await? > 0 {
                return Ok(Some(ids));
            }
        }
        Err(Error::Unavailable {
            what: "deleting a pipeline",
            source: "versions of it came and went all the time".into(),
        })
    }

    async fn delete_version(&self, pipeline_id: &str, id: &str) -> Result<bool, Error> {
        Ok(self
            .tell(vec![sql::delete_version(pipeline_id, id)])
            .await?
            > 0)
    }
}
