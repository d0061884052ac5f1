//! Rows in databases, and the same rows in memory, where the answer is worked out the plain way.

use std::{cmp::Ordering, collections::BTreeMap, num::NonZeroU32, sync::Arc};

use crate::query::{Engine, Error, List, Tokens};
use hindsight_filter::model::{
    ParentPattern, Record, Resource, ResultName, ResultPattern, RunResult, Tier,
};
use hindsight_filter::{
    Body, Filter, Order, Row,
    columns::{ObjectColumns, object_columns, of_record, of_result},
    condition::{Column, Condition, Value},
    indexed::Kind,
};
use hindsight_storage::{
    Archive, Batch, Change, ListQuery, Maintenance, Moving, Priority, Projection, Store,
    WholeVersion,
    objects::Bucket,
    resolve::{Options, Schema, open},
};

/// Results of a file, and rows of a commit, at most.
const IN_FILE: usize = 500;
const IN_COMMIT: usize = 1_000;

#[derive(Debug)]
pub(super) struct Opened {
    /// What it is called in complaints.
    pub(super) name: &'static str,
    pub(super) store: Arc<dyn Store>,
    maintenance: Arc<dyn Maintenance>,
    archive: Option<Archive>,
}

impl Opened {
    pub(super) async fn at(name: &'static str, url: &str) -> Self {
        let options = Options {
            max_connections: NonZeroU32::new(6).unwrap(),
            schema: Schema::Migrate,
            archive: name.ends_with("in files").then(Bucket::in_memory),
            ..Options::default()
        };
        let opened = open(url, &options).await.unwrap();
        Self {
            name,
            store: opened.store,
            maintenance: opened.maintenance,
            archive: opened.archive,
        }
    }

    /// Moves the records of every so many results to files, as retention does: those of a parent and day to one, but
    /// for many.
    pub(super) async fn move_to_files(&self, every: usize) {
        let Some(archive) = &self.archive else { return };
        let all = || ListQuery {
            scope: "-/results/-".parse().unwrap(),
            condition: Condition::All,
            order: Order::newest_first(),
            after: None,
            limit: NonZeroU32::MAX,
            bodies: false,
            max_bytes: None,
            projection: Projection::ALL,
            priority: Priority::Normal,
        };
        let mut of_files: BTreeMap<(String, String), Vec<Moving>> = BTreeMap::new();
        let results = self.store.list_results(&all()).await.unwrap();
        for listed in results.into_iter().step_by(every) {
            let mut of_result = all();
            of_result.scope.parent = ParentPattern::Exact(listed.item.name.parent().clone());
            of_result.scope.id = Some(listed.item.name.id().to_owned());
            let rows = self.store.list_columns(&of_result).await.unwrap();
            let updates = rows.iter().map(|row| row.item.record.update_time);
            let version = WholeVersion::of(&listed.item, updates);
            let day = listed.item.create_time.strftime("%F").to_string();
            let moving = Moving::of(&*self.store, listed.item, version).await;
            let moving = moving.unwrap().unwrap();
            let parent = moving.name().parent().to_string();
            of_files.entry((parent, day)).or_default().push(moving);
        }
        let mut moved = 0;
        for moving in of_files.into_values() {
            for moving in moving.chunks(IN_FILE) {
                let written = archive.write(moving.to_vec(), jiff::Timestamp::UNIX_EPOCH);
                // One without records has none that move.
                let changes = written.await.unwrap();
                moved += changes.len();
                self.store.commit(&Batch { changes }).await.unwrap();
            }
        }
        assert!(moved > 0, "{}: nothing was moved", self.name);
    }

    /// Indexes fields, one after the other, and has their indexes filled.
    pub(super) async fn create_index(&self, fields: &[(&str, Kind)]) {
        self.create_indexes_in(fields, NonZeroU32::new(7).unwrap())
            .await;
    }

    /// Likewise, so many rows at once.
    pub(super) async fn create_indexes_in(&self, fields: &[(&str, Kind)], rows: NonZeroU32) {
        for (path, kind) in fields {
            let path = path.parse().unwrap();
            let now = jiff::Timestamp::UNIX_EPOCH;
            let indexed = self
                .maintenance
                .create_index(&path, *kind, now)
                .await
                .unwrap();
            while !self
                .maintenance
                .build_index(indexed.id, rows)
                .await
                .unwrap()
                .ready
            {}
        }
    }

    pub(super) async fn close(self) {
        self.maintenance.close().await;
    }

    /// Names of the rows of every page, in order.
    pub(super) async fn names(&self, ask: &Ask<'_>) -> Result<Vec<String>, Error> {
        Ok(self.first_names(ask, usize::MAX).await?.0)
    }

    /// Names of the rows of the first pages, in order, and whether these are all.
    pub(super) async fn first_names(
        &self,
        ask: &Ask<'_>,
        pages: usize,
    ) -> Result<(Vec<String>, bool), Error> {
        let engine = Engine::new(
            Arc::clone(&self.store),
            Tokens::new(b"key"),
            u64::MAX,
            ask.page_bytes,
        );
        let (mut names, mut token) = (Vec::new(), String::new());
        for _ in 0..pages {
            let list = List {
                scope: ask.scope.parse().unwrap(),
                filter: Arc::new(ask.filter.clone()),
                order: ask.order.clone(),
                size: ask.size,
                token: token.clone(),
                payloads: true,
                method: "List",
            };
            let (page, next): (Vec<_>, _) = match ask.resource {
                Resource::Results => {
                    let page = engine.results(list).await?;
                    let names = page.items.iter().map(|row| row.name.to_string());
                    (names.collect(), page.next)
                }
                Resource::Records => {
                    let page = engine.records(list).await?;
                    let names = page.items.iter().map(|row| row.name.to_string());
                    (names.collect(), page.next)
                }
            };
            assert!(page.len() <= ask.size.get() as usize);
            assert!(next.is_empty() || !page.is_empty(), "an empty page");
            names.extend(page);
            if next.is_empty() {
                return Ok((names, true));
            }
            token = next;
        }
        Ok((names, false))
    }
}

/// A list that is asked for, page by page.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) resource: Resource,
    pub(super) scope: &'a str,
    pub(super) filter: &'a Filter,
    pub(super) order: Order,
    pub(super) size: NonZeroU32,
    pub(super) page_bytes: usize,
}

/// A set of rows, in the order in which they are inserted.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) results: Vec<RunResult>,
    pub(super) records: Vec<Kept>,
}

/// A record with what is worked out once.
#[derive(Debug)]
pub(super) struct Kept {
    record: Record,
    body: Body,
    columns: ObjectColumns,
}

impl Rows {
    /// Each name once; records only of results that are there.
    pub(super) fn new(results: Vec<RunResult>, records: Vec<Record>) -> Self {
        let mut seen = std::collections::HashSet::new();
        let results: Vec<_> = results
            .into_iter()
            .filter(|row| seen.insert(row.name.to_string()))
            .collect();
        let records = records.into_iter().filter(|row| {
            seen.contains(&row.name.result().to_string()) && seen.insert(row.name.to_string())
        });
        let kept = |record: Record| Kept {
            body: Body::of(&record),
            columns: record.data.as_ref().map(object_columns).unwrap_or_default(),
            record,
        };
        let records = records.map(kept).collect();
        Self { results, records }
    }

    /// Puts them into a store.
    pub(super) async fn fill(&self, store: &dyn Store) {
        let results = self.results.iter().cloned().map(Change::InsertResult);
        let records = self.records.iter().map(|kept| kept.record.clone());
        let changes: Vec<_> = results.chain(records.map(Change::InsertRecord)).collect();
        for changes in changes.chunks(IN_COMMIT) {
            let changes = changes.to_vec();
            store.commit(&Batch { changes }).await.unwrap();
        }
    }

    /// The answer by the words of the language.
    pub(super) fn names(&self, ask: &Ask<'_>) -> Vec<String> {
        let scope: ResultPattern = ask.scope.parse().unwrap();
        let (names, keys): (Vec<_>, Vec<Vec<_>>) = match ask.resource {
            Resource::Results => self
                .results
                .iter()
                .filter(|row| covers(&scope, &row.name))
                .filter(|row| ask.filter.matches(&Row::Result(row)).unwrap())
                .map(|row| {
                    (
                        row.name.to_string(),
                        keys(&ask.order, |c| of_result(row, c)),
                    )
                })
                .unzip(),
            Resource::Records => self
                .records
                .iter()
                .filter(|kept| covers(&scope, kept.record.name.result()))
                .filter(|kept| ask.filter.matches(&kept.row()).unwrap())
                .map(|kept| {
                    let value = |c: &Column| of_record(&kept.record, Tier::Hot, &kept.columns, c);
                    (kept.record.name.to_string(), keys(&ask.order, value))
                })
                .unzip(),
        };
        let mut places: Vec<usize> = (0..names.len()).collect();
        places.sort_by(|&a, &b| {
            let by_keys = compare(&ask.order, &keys[a], &keys[b]);
            by_keys.then(if ask.order.ties_descend() {
                b.cmp(&a)
            } else {
                a.cmp(&b)
            })
        });
        places.into_iter().map(|at| names[at].clone()).collect()
    }

    /// A row as a complaint shows it.
    pub(super) fn show(&self, name: &str) -> String {
        let record = self
            .records
            .iter()
            .find(|row| row.record.name.to_string() == name);
        let result = self.results.iter().find(|row| row.name.to_string() == name);
        match (record, result) {
            (Some(kept), _) => {
                let data = kept.record.data.as_ref();
                let payload = data.map(|data| String::from_utf8_lossy(&data.value).into_owned());
                format!(
                    "{name} uid {:?} created {} type {:?}\n  {}",
                    kept.record.uid,
                    kept.record.create_time,
                    data.map(|data| &data.data_type),
                    payload.unwrap_or_default()
                )
            }
            (None, result) => format!("{result:?}"),
        }
    }
}

impl Kept {
    fn row(&self) -> Row<'_> {
        Row::Record {
            record: &self.record,
            tier: Tier::Hot,
            body: &self.body,
        }
    }
}

fn covers(scope: &ResultPattern, name: &ResultName) -> bool {
    let parent = match &scope.parent {
        ParentPattern::Any => true,
        ParentPattern::Exact(parent) => parent == name.parent(),
    };
    parent && scope.id.as_ref().is_none_or(|id| id == name.id())
}

fn keys(order: &Order, value: impl Fn(&Column) -> Option<Value>) -> Vec<Option<Value>> {
    order.keys().iter().map(|key| value(&key.column)).collect()
}

/// Rows without a value come last, whatever the direction.
fn compare(order: &Order, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let pairs = order.keys().iter().zip(a.iter().zip(b));
    pairs.fold(Ordering::Equal, |so_far, (key, pair)| {
        so_far.then_with(|| {
            let up = match pair {
                (Some(Value::Text(a)), Some(Value::Text(b))) => a.as_bytes().cmp(b.as_bytes()),
                (Some(Value::Int(a)), Some(Value::Int(b))) => a.cmp(b),
                (Some(Value::Time(a)), Some(Value::Time(b))) => a.cmp(b),
                (a, b) => return b.is_some().cmp(&a.is_some()),
            };
            if key.descending { up.reverse() } else { up }
        })
    })
}
