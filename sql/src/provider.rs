//! The tables, as the engine of SQL reads them: rows of the database and rows of files, each record once.
//!
//! Invariant: rows of the database are read first, then the list of files. What left the database meanwhile is in a
//! file of that list and told apart by name; if results left files meanwhile, both are read again.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    datasource::{TableType, memory::MemorySourceConfig},
    error::{DataFusionError, Result},
    execution::memory_pool::{MemoryConsumer, MemoryReservation},
    logical_expr::{Expr, TableProviderFilterPushDown},
    physical_plan::{ExecutionPlan, empty::EmptyExec, union::UnionExec},
};
use hindsight_client::Client;
use hindsight_filter::model::Parent;
use hindsight_proto::v1::{ArchiveFile, ListArchiveFilesRequest};
use object_store::ObjectMeta;

use crate::{
    bounds::Bounds,
    cold::{ColdFile, Only, Scan},
    columns::{Column, Table},
    hot::{self, Ask, Read, answered, filter::cel},
    scope::Scope,
    source::Files,
};

/// How often database and files are read at most, until no result comes back meanwhile.
const TRIES: usize = 5;
/// Most parents that one statement asks the server for.
const PARENTS: usize = 100;

/// What a statement may read, for one caller.
#[derive(Debug)]
pub(crate) struct Access {
    /// A client that shows the token of the caller; none where files are read alone.
    pub(crate) client: Option<Client>,
    pub(crate) files: Option<Files>,
    pub(crate) scope: Scope,
}

/// Memory of rows of the database, for as long as the statement has them.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Vec<MemoryReservation>>);

/// A table for one caller.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) table: Table,
    pub(crate) access: Arc<Access>,
}

/// What the server says of files.
#[derive(Debug, Default, PartialEq)]
struct Listing {
    files: Vec<ArchiveFile>,
    left: i64,
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters narrow what is read; the engine evaluates all of them again.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let bounds = Bounds::of(filters);
        let scan = Scan {
            table: self.table,
            projection,
            limit,
        };
        let mut plans = match (&self.access.client, &self.access.files) {
            (Some(client), files) => {
                let files = files.as_ref().filter(|_| self.table.is_in_files());
                self.of_server(state, client, files, &scan, &bounds, filters)
                    .await?
            }
            (None, Some(files)) => self.of_files(state, files, &scan, &bounds).await?,
            (None, None) => Vec::new(),
        };
        match plans.len() {
            0 => {
                let schema = self.schema();
                let schema = match projection {
                    Some(columns) => Arc::new(schema.project(columns)?),
                    None => schema,
                };
                Ok(Arc::new(EmptyExec::new(schema)))
            }
            1 => Ok(plans.remove(0)),
            _ => UnionExec::try_new(plans),
        }
    }
}

impl Provider {
    fn columns(&self, projection: Option<&Vec<usize>>) -> Vec<Column> {
        let all = self.table.columns();
        match projection {
            None => all.to_vec(),
            Some(numbers) => numbers.iter().map(|number| all[*number]).collect(),
        }
    }

    /// Reads a server, and `files` of its archive if they are not read by the server.
    async fn of_server(
        &self,
        state: &dyn Session,
        client: &Client,
        files: Option<&Files>,
        scan: &Scan<'_>,
        bounds: &Bounds,
        filters: &[Expr],
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let parents = parents(&self.access.scope, bounds)?;
        let columns = self.columns(scan.projection);
        let filter = cel(self.table, filters);
        let ask = Ask {
            table: self.table,
            parents: &parents,
            filter: &filter,
            columns: &columns,
            limit: scan.limit,
            of_database: files.is_some(),
        };
        let pool = &state.runtime_env().memory_pool;
        let held = || MemoryConsumer::new("rows of the database").register(pool);
        let (read, cold, held) = match files {
            None => {
                let held = held();
                (hot::read(client, &ask, &held).await?, Vec::new(), held)
            }
            Some(place) => {
                let mut tries = 0;
                loop {
                    tries += 1;
                    let held = held();
                    let before = listing(client, &parents).await?;
                    let read = hot::read(client, &ask, &held).await?;
                    let after = listing(client, &parents).await?;
                    if before.left == after.left {
                        let (read, cold) = joined(place, read, &before, after, bounds)?;
                        break (read, cold, held);
                    }
                    if tries == TRIES {
                        return Err(DataFusionError::Execution(format!(
                            "records came back from files of the archive each of {TRIES} times that \
                             the database was read; try again"
                        )));
                    }
                }
            }
        };
        let mut plans = Vec::new();
        if !read.batches.is_empty() {
            plans.push(in_memory(
                state,
                &self.table.schema(),
                scan.projection,
                read,
            )?);
        }
        let kept = state.config().get_extension::<Held>();
        if let Some(kept) = kept {
            let mut kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(held);
        }
        if let Some(place) = files {
            plans.extend(scan.plan(state, place, cold)?);
        }
        Ok(plans)
    }

    /// Reads files alone.
    async fn of_files(
        &self,
        state: &dyn Session,
        place: &Files,
        scan: &Scan<'_>,
        bounds: &Bounds,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let needs_server = match self.table {
            Table::Runs | Table::Records => None,
            Table::Results => Some(
                "the table `results` needs a server; without one, ask `SELECT DISTINCT parent, result_id, \
                 result_uid, ... FROM records`",
            ),
            Table::Logs => Some(
                "the table `logs` needs a server, because files have no logs; give --server in the place of --files",
            ),
        };
        if let Some(why) = needs_server {
            return Err(DataFusionError::Plan(why.to_owned()));
        }
        let is_of_scope = |namespace: &str| match &self.access.scope {
            Scope::All => true,
            Scope::Parents(parents) => parents.iter().any(|parent| parent.namespace() == namespace),
        };
        let found = place.list().await?.into_iter();
        // A record is never older than its result.
        let found = found.filter(|file| {
            is_of_scope(&file.namespace)
                && bounds.may_be_of(&file.namespace, file.cluster.as_deref())
                && bounds.may_be_between(file.begin.unwrap_or(i64::MIN), i64::MAX)
        });
        let files = found.map(|file| ColdFile {
            meta: file.meta,
            namespace: file.namespace,
            only: None,
        });
        scan.plan(state, place, files.collect())
    }
}

/// Of which parents the server is asked.
fn parents(scope: &Scope, bounds: &Bounds) -> Result<Vec<String>> {
    let named = |parents: &BTreeSet<String>| {
        // Text that is no name is no parent's.
        let valid = parents
            .iter()
            .filter_map(|parent| parent.parse::<Parent>().ok());
        valid.collect::<Vec<_>>()
    };
    let asked: Vec<Parent> = match (scope, &bounds.parents) {
        (Scope::All, None) => return Ok(vec!["-".to_owned()]),
        (Scope::All, Some(asked)) => named(asked),
        (Scope::Parents(parents), None) => parents.clone(),
        (Scope::Parents(parents), Some(asked)) => {
            let asked = named(asked).into_iter();
            asked.filter(|parent| parents.contains(parent)).collect()
        }
    };
    if asked.len() > PARENTS {
        return Err(DataFusionError::Plan(format!(
            "{} parents are named, of which one statement reads {PARENTS} at most",
            asked.len()
        )));
    }
    Ok(asked.iter().map(ToString::to_string).collect())
}

/// The files of the archive of the server.
async fn listing(client: &Client, parents: &[String]) -> Result<Listing> {
    let mut listing = Listing::default();
    for parent in parents {
        let mut page_token = String::new();
        loop {
            let request = ListArchiveFilesRequest {
                parent: parent.clone(),
                page_size: 0,
                page_token,
            };
            let page = client.archive().list_archive_files(request).await;
            let page = page.map_err(answered)?.into_inner();
            listing.files.extend(page.files);
            listing.left = listing.left.max(page.left_count);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
    }
    Ok(listing)
}

/// Which files are read beside rows of the database, and which of their rows count.
fn joined(
    place: &Files,
    mut read: Read,
    before: &Listing,
    after: Listing,
    bounds: &Bounds,
) -> Result<(Read, Vec<ColdFile>)> {
    let earlier = before.files.iter();
    let earlier: HashMap<&str, i64> = earlier
        .map(|file| (file.path.as_str(), file.results))
        .collect();
    let seen = Arc::new(std::mem::take(&mut read.names));
    let mut files = Vec::new();
    for file in after.files {
        let parent: Parent = file.parent.parse().map_err(|error| {
            DataFusionError::Execution(format!("the server names a parent that is none: {error}"))
        })?;
        let time = |time: Option<prost_types::Timestamp>, other| {
            let time = time.and_then(|time| hindsight_proto::time::at(time.seconds, time.nanos));
            time.map_or(other, |time| time.as_microsecond())
        };
        let (begin, end) = (
            time(file.begin_time, i64::MIN),
            time(file.end_time, i64::MAX),
        );
        let may_have = bounds.may_be_of(parent.namespace(), parent.cluster())
            && bounds.may_be_between(begin, end);
        if !may_have {
            continue;
        }
        // Nothing left a file, so one with as many results as before has the same.
        let is_same = earlier.get(file.path.as_str()) == Some(&file.results);
        let seen = (!is_same && !seen.is_empty()).then(|| Arc::clone(&seen));
        let results = (!file.result_ids.is_empty()).then(|| file.result_ids.into_iter().collect());
        let is_part = seen.is_some() || results.is_some();
        files.push(ColdFile {
            meta: ObjectMeta {
                location: place.path(&file.path)?,
                last_modified: Default::default(),
                size: u64::try_from(file.bytes).unwrap_or_default(),
                e_tag: None,
                version: None,
            },
            namespace: parent.namespace().to_owned(),
            only: is_part.then(|| Only {
                parent: file.parent,
                results,
                seen,
            }),
        });
    }
    Ok((read, files))
}

/// Rows that were read, in as many parts as are computed at once.
fn in_memory(
    state: &dyn Session,
    schema: &SchemaRef,
    projection: Option<&Vec<usize>>,
    read: Read,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = match projection {
        Some(columns) => Arc::new(schema.project(columns)?),
        None => Arc::clone(schema),
    };
    let count = state
        .config()
        .target_partitions()
        .clamp(1, read.batches.len().max(1));
    let mut parts = vec![Vec::new(); count];
    for (at, batch) in read.batches.into_iter().enumerate() {
        parts[at % count].push(batch);
    }
    Ok(MemorySourceConfig::try_new_exec(&parts, schema, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, results: i64, ids: &[&str]) -> ArchiveFile {
        ArchiveFile {
            path: path.to_owned(),
            parent: "ci".to_owned(),
            results,
            result_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..ArchiveFile::default()
        }
    }

    #[test]
    fn rows_are_compared_by_name_only_with_files_that_got_more_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let place = Files::at(folder.path().to_str().unwrap()).unwrap();
        let before = Listing {
            files: vec![
                file("same", 2, &[]),
                file("grown", 1, &[]),
                file("part", 1, &["a"]),
            ],
            left: 0,
        };
        let after = Listing {
            files: vec![
                file("same", 2, &[]),
                file("grown", 2, &[]),
                file("part", 1, &["a"]),
                file("new", 1, &[]),
            ],
            left: 0,
        };
        let mut read = Read::default();
        read.names.insert(hot::digest("ci/results/a/records/a"));
        let (_, files) = joined(&place, read, &before, after, &Bounds::default()).unwrap();
        let said: Vec<_> = files
            .iter()
            .map(|file| {
                let only = file.only.as_ref();
                let name = file.meta.location.filename().unwrap();
                let (seen, results) = only.map_or((false, false), |only| {
                    (only.seen.is_some(), only.results.is_some())
                });
                (name, seen, results)
            })
            .collect();
        let wanted = [
            ("same", false, false),
            ("grown", true, false),
            ("part", false, true),
            ("new", true, false),
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_statement_asks_for_parents_that_it_names_within_its_scope() {
        let named = |parents: &[&str]| Bounds {
            parents: Some(parents.iter().map(|parent| (*parent).to_owned()).collect()),
            ..Bounds::default()
        };
        let some = Scope::Parents(vec!["ci".parse().unwrap(), "dev".parse().unwrap()]);
        let of = |scope: &Scope, bounds: &Bounds| parents(scope, bounds).unwrap();
        assert_eq!(of(&Scope::All, &Bounds::default()), ["-"]);
        assert_eq!(of(&Scope::All, &named(&["ci", "not a / name"])), ["ci"]);
        assert_eq!(of(&some, &Bounds::default()), ["ci", "dev"]);
        assert_eq!(of(&some, &named(&["dev", "prod"])), ["dev"]);
    }
}
