//! A database of Tekton Results as the source of a copy.
//!
//! Only read, in one snapshot, beside its server. Names are what its API shows: `name` of its
//! rows, where `id` is the uid. Payloads are the text that its API gives for them, which for
//! `jsonb` is PostgreSQL's own way to write it. What cannot be kept as it is gets said; rows that
//! have no legal name here are refused one by one.

mod logs;
mod row;

use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use sqlx::{
    Connection, Row as _,
    postgres::{PgConnection, PgRow},
};

pub use self::logs::{ForeignLogs, LogsOutcome};
use self::row::{outline, record, result};
use super::{
    copy::{self, Logs, Outcome, Outline, Page, Said, Source, Tell, Verify},
    foreign::{self, failed},
};
use crate::{
    codec::objects::ObjectBackend, driver::options::Options, seam::Error, store::resolve::open,
};
use hindsight_filter::model::{Record, RunResult};

/// Rows of a page.
const MOST_ROWS: i64 = 256;
/// Bytes of payloads after which a page of records ends.
const MOST_BYTES: i64 = 16 << 20;

/// Copies the database of Tekton Results at `from` into the one at `to`, and then its logs.
///
/// # Errors
/// If one of them cannot be opened, read or written; rows that cannot be copied are told.
pub async fn import(
    from: &str,
    to: &str,
    depot: Option<&Arc<ObjectBackend>>,
    logs: Option<&ForeignLogs>,
    verify: Verify,
    tell: Tell<'_>,
) -> Result<(Outcome, Option<LogsOutcome>), Error> {
    let mut source = Tekton::open(from).await?;
    let outcome = async {
        let outcome = copy::into(&mut source, (to, depot), &[], (Logs::No, verify), tell).await?;
        let Some(logs) = logs else {
            return Ok((outcome, None));
        };
        let options = Options {
            depot: depot.cloned(),
            ..Options::default()
        };
        let target = open(to, &options).await?;
        let imported = logs::import(&mut source, &*target.logs, logs, tell).await;
        target.maintenance.close().await;
        Ok((outcome, Some(imported?)))
    };
    let outcome = outcome.await;
    // Nothing was written there, so nothing can be lost.
    drop(source.connection.close().await);
    outcome
}

/// One moment of the database.
struct Tekton {
    connection: PgConnection,
    sql: Sql,
    result: Option<(String, String)>,
    record: Option<Place>,
    /// The records of the page, by their place in it.
    page: Vec<(Place, Outline)>,
}

/// Where a record is: parent, id of the result, id.
type Place = (String, String, String);

/// The statements, which differ with the age of the schema.
struct Sql {
    results: String,
    outlines: String,
    payloads: String,
}

impl Tekton {
    async fn open(url: &str) -> Result<Self, Error> {
        let mut connection = foreign::open(url).await?;
        let sql = Sql::of(&columns(&mut connection).await?)?;
        Ok(Self {
            connection,
            sql,
            result: None,
            record: None,
            page: Vec::new(),
        })
    }

    async fn rows(&mut self, sql: &str, binds: &[&str]) -> Result<Vec<PgRow>, Error> {
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
        for bind in binds {
            query = query.bind((*bind).to_owned());
        }
        let rows = query.fetch(&mut self.connection);
        rows.try_collect().await.map_err(failed)
    }
}

/// Tables and columns that there are, each with its type.
async fn columns(connection: &mut PgConnection) -> Result<Vec<(String, String)>, Error> {
    let sql = "SELECT table_name || '.' || column_name, udt_name::text \
               FROM information_schema.columns WHERE table_schema = current_schema()";
    let rows = sqlx::query(sql)
        .fetch_all(connection)
        .await
        .map_err(failed)?;
    let read = |row: &PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter()
        .map(read)
        .collect::<Result<_, sqlx::Error>>()
        .map_err(failed)
}

/// Microseconds since 1970 of a column; nothing where it is null or infinite.
fn micros(column: &str) -> String {
    format!(
        "CASE WHEN isfinite({column}) THEN \
         round(extract(epoch FROM {column}) * 1000000)::bigint END"
    )
}

impl Sql {
    /// Made from names of columns that are constants here.
    fn of(columns: &[(String, String)]) -> Result<Self, Error> {
        const NEEDED: [&str; 13] = [
            "results.parent",
            "results.id",
            "results.name",
            "results.created_time",
            "results.updated_time",
            "records.parent",
            "records.result_id",
            "records.result_name",
            "records.id",
            "records.name",
            "records.data",
            "records.created_time",
            "records.updated_time",
        ];
        let kind = |name: &str| columns.iter().find(|(column, _)| column == name);
        if kind("hindsight_schema.version").is_some() {
            return Err(Error::Incompatible(
                "this is a database of hindsight; copy it with `hindsight copy`".to_owned(),
            ));
        }
        if let Some(missing) = NEEDED.iter().find(|name| kind(name).is_none()) {
            return Err(Error::Incompatible(format!(
                "this is no database of Tekton Results: it has no column `{missing}` in the \
                 schema where new tables would be made; give another database or set its \
                 search_path"
            )));
        }
        // Columns that older versions did not have.
        let or_null = |table: &str, column: &'static str, cast: &str| match kind(&format!(
            "{table}.{column}"
        )) {
            Some(_) => format!("{column}{cast}"),
            None => format!("NULL{cast}"),
        };
        let time_or_null = |column: &'static str| match kind(&format!("results.{column}")) {
            Some(_) => micros(column),
            None => "NULL::bigint".to_owned(),
        };
        let results = format!(
            "SELECT parent::text, id::text, name::text, {etag}, {create}, {update}, {annotations}, \
             {record}, {kind}, {start}, {end}, {status}, {pairs} FROM results",
            etag = or_null("results", "etag", "::text"),
            create = micros("created_time"),
            update = micros("updated_time"),
            annotations = or_null("results", "annotations", "::text"),
            record = or_null("results", "recordsummary_record", "::text"),
            kind = or_null("results", "recordsummary_type", "::text"),
            start = time_or_null("recordsummary_start_time"),
            end = time_or_null("recordsummary_end_time"),
            status = or_null("results", "recordsummary_status", "::bigint"),
            pairs = or_null("results", "recordsummary_annotations", "::text"),
        );
        let bytes = match kind("records.data").map(|(_, kind)| kind.as_str()) {
            Some("bytea") => "data",
            _ => "convert_to(data::text, 'UTF8')",
        };
        let outlines = format!(
            "SELECT r.parent::text, r.result_id::text, r.id::text, r.result_name::text, \
             r.name::text, {etag}, {create}, {update}, {kind}, sha256({bytes}), \
             octet_length({bytes})::bigint, o.name::text FROM records AS r \
             LEFT JOIN results AS o ON o.parent = r.parent AND o.id = r.result_id",
            etag = or_null("records", "etag", "::text").replace("etag", "r.etag"),
            create = micros("r.created_time"),
            update = micros("r.updated_time"),
            kind = or_null("records", "type", "::text"),
        );
        let payloads = format!(
            "SELECT parent::text, result_id::text, id::text, {bytes} FROM records WHERE \
             (parent, result_id, id) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))"
        );
        Ok(Self {
            results,
            outlines,
            payloads,
        })
    }
}

#[async_trait]
impl Source for Tekton {
    async fn totals(&mut self) -> Result<(u64, u64), Error> {
        let counts = "SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM records)";
        let rows = self.rows(counts, &[]).await?;
        let count = |at: usize| -> Result<u64, Error> {
            let count: i64 = rows
                .first()
                .map_or(Ok(0), |row| row.try_get(at))
                .map_err(failed)?;
            Ok(u64::try_from(count).unwrap_or(0))
        };
        Ok((count(0)?, count(1)?))
    }

    fn rewind(&mut self) {
        self.result = None;
        self.record = None;
    }

    async fn results(&mut self) -> Result<Option<Page<RunResult>>, Error> {
        let after = self.result.take();
        let end = format!("ORDER BY parent, id LIMIT {MOST_ROWS}");
        let rows = match &after {
            None => {
                let sql = format!("{} {end}", self.sql.results);
                self.rows(&sql, &[]).await?
            }
            Some((parent, id)) => {
                let sql = format!("{} WHERE (parent, id) > ($1, $2) {end}", self.sql.results);
                self.rows(&sql, &[parent, id]).await?
            }
        };
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        self.result = Some((
            last.try_get(0).map_err(failed)?,
            last.try_get(1).map_err(failed)?,
        ));
        let mut page = Page::default();
        for row in &rows {
            page.count += 1;
            match result(row, &mut page.notes).map_err(failed)? {
                Ok(result) => page.rows.push(result),
                Err(said) => page.refused.push(said),
            }
        }
        Ok(Some(page))
    }

    async fn outlines(&mut self) -> Result<Option<Page<Outline>>, Error> {
        let end = format!("ORDER BY r.parent, r.result_id, r.id LIMIT {MOST_ROWS}");
        let rows = match self.record.clone() {
            None => {
                let sql = format!("{} {end}", self.sql.outlines);
                self.rows(&sql, &[]).await?
            }
            Some((parent, result, id)) => {
                let after = "WHERE (r.parent, r.result_id, r.id) > ($1, $2, $3)";
                let sql = format!("{} {after} {end}", self.sql.outlines);
                self.rows(&sql, &[&parent, &result, &id]).await?
            }
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let mut page = Page::default();
        self.page.clear();
        let mut bytes = 0_i64;
        for row in &rows {
            let place: Place = (
                row.try_get(0).map_err(failed)?,
                row.try_get(1).map_err(failed)?,
                row.try_get(2).map_err(failed)?,
            );
            page.count += 1;
            let at = i64::try_from(self.page.len()).unwrap_or(i64::MAX);
            match outline(row, at, &mut page.notes).map_err(failed)? {
                Ok(outline) => {
                    self.page.push((place.clone(), outline.clone()));
                    page.rows.push(outline);
                }
                Err(said) => page.refused.push(said),
            }
            self.record = Some(place);
            let size: Option<i64> = row.try_get(10).map_err(failed)?;
            bytes = bytes.saturating_add(size.unwrap_or(0));
            if bytes >= MOST_BYTES {
                break;
            }
        }
        Ok(Some(page))
    }

    async fn records(&mut self, places: &[i64]) -> Result<Vec<Result<Record, Said>>, Error> {
        let at = |place: &i64| {
            usize::try_from(*place)
                .ok()
                .and_then(|at| self.page.get(at))
        };
        let wanted: Vec<(Place, Outline)> = places.iter().filter_map(at).cloned().collect();
        let part = |of: fn(&Place) -> &String| -> Vec<String> {
            wanted.iter().map(|(place, _)| of(place).clone()).collect()
        };
        let rows = sqlx::query(sqlx::AssertSqlSafe(self.sql.payloads.clone()))
            .bind(part(|place| &place.0))
            .bind(part(|place| &place.1))
            .bind(part(|place| &place.2))
            .fetch(&mut self.connection);
        let rows: Vec<PgRow> = rows.try_collect().await.map_err(failed)?;
        let mut payloads = std::collections::HashMap::new();
        for row in rows {
            let read = || -> Result<(Place, Option<Vec<u8>>), sqlx::Error> {
                let place = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                Ok((place, row.try_get(3)?))
            };
            let (place, bytes) = read().map_err(failed)?;
            payloads.insert(place, bytes);
        }
        let records = wanted.into_iter().map(|(place, outline)| {
            let bytes = payloads.remove(&place).flatten();
            Ok(record(outline, bytes))
        });
        Ok(records.collect())
    }
}
