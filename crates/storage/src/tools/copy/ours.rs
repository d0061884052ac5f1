//! A database of ours as the source of a copy.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;

use super::{Outline, Page, Said, Source};
use crate::{
    codec::{objects::fetch_external, uid},
    seam::{Error, Hold, PipelineRow, StoredLog, VersionRow},
    sql::{
        etag, holds,
        logs::{self, chunks},
        pipelines, read,
        row::{Row, SqlRow as _},
        walk::{self, CODEC, DICTIONARY, SIZE, Table},
    },
    store::logs::chunk_in,
    tools::{
        fsck::{DictionaryReader, name_of},
        snapshot::Snapshot,
    },
};
use hindsight_filter::model::{ParentPattern, Record, Resource, RunResult};
use hindsight_logs::{Chunk, Window};
use jiff::Timestamp;

/// Rows of a page, and bytes of payloads after which it ends.
const MOST_ROWS: i64 = 256;
const MOST_BYTES: i64 = 16 << 20;

/// One moment of the database.
pub(super) struct Ours {
    snapshot: Snapshot,
    dictionaries: DictionaryReader,
    results: i64,
    /// The last record before the page, and in it.
    records: (i64, i64),
    logs: i64,
    /// The id of the last pipeline.
    pipelines: String,
}

impl Ours {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            dictionaries: DictionaryReader::default(),
            results: i64::MIN,
            records: (i64::MIN, i64::MIN),
            logs: i64::MIN,
            pipelines: String::new(),
        }
    }

    pub(super) async fn close(self) {
        self.snapshot.close().await;
    }

    async fn count(&mut self, table: Table) -> Result<u64, Error> {
        let count = walk::count(self.snapshot.dialect, table);
        Ok(u64::try_from(self.snapshot.number(&count).await?).unwrap_or(0))
    }

    async fn last(&mut self, table: Table, after: i64) -> Result<Option<i64>, Error> {
        let sizes = walk::sizes(table, after, MOST_ROWS);
        walk::cut(&self.snapshot.rows(&sizes).await?, MOST_BYTES)
    }
}

#[async_trait]
impl Source for Ours {
    async fn totals(&mut self) -> Result<(u64, u64), Error> {
        let archived = self.snapshot.number(&walk::archived()).await?;
        if archived > 0 {
            return Err(Error::Incompatible(format!(
                "the records of {archived} results are in files of an archive, which a copy does not take; put them back \
                 with `hindsight archive restore`, or copy a backup that is older than archive_after"
            )));
        }
        let results = self.count(Table::Results).await?;
        Ok((results, self.count(Table::Records).await?))
    }

    fn rewind(&mut self) {
        self.results = i64::MIN;
        self.records = (i64::MIN, i64::MIN);
        self.logs = i64::MIN;
        self.pipelines = String::new();
    }

    async fn results(&mut self) -> Result<Option<Page<RunResult>>, Error> {
        let Some(last) = self.last(Table::Results, self.results).await? else {
            return Ok(None);
        };
        let statement = walk::results(self.snapshot.dialect, self.results, last);
        self.results = last;
        let mut page = Page::default();
        for row in self.snapshot.rows(&statement).await? {
            page.count += 1;
            match read::result(&row) {
                Ok(result) => page.rows.push(result),
                Err(error) => page.refused.push(damaged(name_of(&row, &[1, 2]), error)?),
            }
        }
        Ok(Some(page))
    }

    async fn outlines(&mut self) -> Result<Option<Page<Outline>>, Error> {
        let after = self.records.1;
        let Some(last) = self.last(Table::Records, after).await? else {
            return Ok(None);
        };
        self.records = (after, last);
        let mut page = Page::default();
        for row in self.snapshot.rows(&walk::outlines(after, last)).await? {
            page.count += 1;
            match outline(&row) {
                Ok(outline) => page.rows.push(outline),
                Err(error) => page
                    .refused
                    .push(damaged(name_of(&row, &[1, 2, 3]), error)?),
            }
        }
        Ok(Some(page))
    }

    async fn records(&mut self, places: &[i64]) -> Result<Vec<Result<Record, Said>>, Error> {
        let (after, last) = self.records;
        let statement = walk::records(self.snapshot.dialect, after, last, true, &[]);
        let wanted: BTreeSet<i64> = places.iter().copied().collect();
        let mut rows: HashMap<i64, Row> = HashMap::new();
        let mut referred = BTreeSet::new();
        for row in self.snapshot.rows(&statement).await? {
            let Some(id) = row.int(0)?.filter(|id| wanted.contains(id)) else {
                continue;
            };
            referred.extend(row.int(DICTIONARY)?);
            rows.insert(id, row);
        }
        let dictionaries = self
            .dictionaries
            .load(&mut self.snapshot, &referred)
            .await?;
        let mut raws = Vec::with_capacity(places.len());
        for place in places {
            let row = rows.remove(place).ok_or_else(|| {
                Error::Corrupt(format!("the record in row {place} is found only at times"))
            })?;
            // An empty payload has no row, and some records have none at all.
            let has_body = row.int(SIZE)?.unwrap_or(0) != 0 || row.int(CODEC)?.is_some();
            let raw = read::raw_record(&row, has_body.then_some(CODEC));
            raws.push((name_of(&row, &[1, 2, 3]), raw));
        }
        let there = raws.iter_mut().filter_map(|(_, raw)| raw.as_mut().ok());
        let brought = fetch_external(self.snapshot.objects(), there).await;
        let mut brought = brought.into_iter();
        let mut records = Vec::with_capacity(places.len());
        for (name, raw) in raws {
            let brought = raw.and_then(|raw| match brought.next() {
                Some(Err(error)) => Err(error),
                _ => raw.unpack(&dictionaries),
            });
            records.push(match brought {
                Ok(record) => Ok(record),
                Err(error) => Err(damaged(name, error)?),
            });
        }
        Ok(records)
    }

    async fn holds(&mut self, after: i64) -> Result<Vec<(i64, Hold)>, Error> {
        let list = holds::list(&ParentPattern::Any, after, MOST_ROWS);
        self.snapshot
            .rows(&list)
            .await?
            .iter()
            .map(holds::hold)
            .collect()
    }

    async fn log_total(&mut self) -> Result<u64, Error> {
        let total = self.snapshot.number(&logs::count()).await?;
        Ok(u64::try_from(total).unwrap_or(0))
    }

    async fn logs(&mut self) -> Result<Option<Page<(StoredLog, Timestamp)>>, Error> {
        let rows = self
            .snapshot
            .rows(&logs::walk(self.logs, MOST_ROWS))
            .await?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        self.logs = last.int(0)?.unwrap_or(i64::MAX);
        let mut page = Page::default();
        for row in rows {
            page.count += 1;
            match log(&row) {
                Ok(log) => page.rows.push(log),
                Err(error) => {
                    let of = name_of(&row, &[logs::NAME, logs::NAME + 1, logs::NAME + 2]);
                    page.refused.push(damaged(of, error)?);
                }
            }
        }
        Ok(Some(page))
    }

    async fn log_chunk(&mut self, row: i64, line: i64) -> Result<Option<Chunk>, Error> {
        let statement = chunks::next(row, line, Window::default());
        let rows = self.snapshot.rows(&statement).await?;
        match rows.first() {
            Some(row) => chunk_in(row, self.snapshot.objects()).await.map(Some),
            None => Ok(None),
        }
    }

    async fn pipeline_total(&mut self) -> Result<u64, Error> {
        let total = self.snapshot.number(&pipelines::count_all()).await?;
        Ok(u64::try_from(total).unwrap_or(0))
    }

    async fn pipelines(&mut self) -> Result<Option<Vec<PipelineRow>>, Error> {
        let next = pipelines::after(&self.pipelines, MOST_ROWS);
        let rows = self.snapshot.rows(&next).await?;
        let rows = rows.iter().map(pipelines::pipeline_in);
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        self.pipelines.clone_from(&last.id);
        Ok(Some(rows))
    }

    async fn version_ids(&mut self, pipeline_id: &str) -> Result<Vec<String>, Error> {
        let state = self.snapshot.rows(&pipelines::state(pipeline_id)).await?;
        let Some(row) = state.first().map(|row| row.int(0)).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        let rows = self.snapshot.rows(&pipelines::version_ids(row)).await?;
        let ids = rows.iter().map(|row| Ok(row.text(0)?.unwrap_or_default()));
        ids.collect()
    }

    async fn version(&mut self, pipeline_id: &str, id: &str) -> Result<Option<VersionRow>, Error> {
        let version = pipelines::version(pipeline_id, id);
        let rows = self.snapshot.rows(&version).await?;
        rows.first().map(pipelines::version_in).transpose()
    }
}

fn log(row: &Row) -> Result<(StoredLog, Timestamp), Error> {
    let name = name_of(row, &[logs::NAME, logs::NAME + 1, logs::NAME + 2]);
    let run = name.parse().map_err(|e| Error::Corrupt(format!("{e}")))?;
    let updated = row.int(logs::NAME + 3)?.unwrap_or_default();
    let updated = Timestamp::from_microsecond(updated);
    let updated = updated.map_err(|e| Error::Corrupt(e.to_string()))?;
    Ok((logs::source(row, &run)?, updated))
}

/// What is said of a damaged row; any other error ends the copy.
fn damaged(of: String, error: Error) -> Result<Said, Error> {
    match error {
        Error::Corrupt(why) | Error::MissingObject(why) => Ok(Said { of, why }),
        other => Err(other),
    }
}

fn outline(row: &Row) -> Result<Outline, Error> {
    let corrupt = |what: &str| Error::Corrupt(format!("a row without a sound `{what}`"));
    let text = |at: usize, what| read::text(row, at)?.ok_or_else(|| corrupt(what));
    let time = |at: usize, what| {
        let micros = row.int(at)?.ok_or_else(|| corrupt(what))?;
        jiff::Timestamp::from_microsecond(micros).map_err(|_range| corrupt(what))
    };
    let name = name_of(row, &[1, 2, 3]);
    let create_time = time(7, "create_us")?;
    let need = |at: usize, what| row.text(at)?.ok_or_else(|| corrupt(what));
    let created = create_time.as_microsecond();
    let uid = uid::shown(Resource::Records, need(5, "uid")?, &need(3, "id")?, created)?;
    let update_time = time(8, "update_us")?;
    Ok(Outline {
        place: row.int(0)?.ok_or_else(|| corrupt("row_id"))?,
        name: name.parse().map_err(|e| Error::Corrupt(format!("{e}")))?,
        result_uid: uid::shown(
            Resource::Results,
            need(4, "result")?,
            &need(2, "result")?,
            row.int(12)?.ok_or_else(|| corrupt("result"))?,
        )?,
        etag: etag::shown(text(6, "etag")?, &uid, update_time.as_microsecond()),
        uid,
        create_time,
        update_time,
        data_type: read::text(row, 9)?,
        sha256: row.bytes(11)?,
    })
}
