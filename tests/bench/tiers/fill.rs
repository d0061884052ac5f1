//! Fills stores: results whose records are in files, which the archive of the first one writes as for records that
//! are moved, and the newest runs in each database.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
    time::Instant,
};

use futures::{StreamExt as _, stream};
use hindsight_filter::model::RunResult;
use hindsight_storage::{
    ArchiveFile, Batch, Change, Moving, WholeVersion,
    objects::{Bucket, Settings},
    resolve::{Opened, Options, Schema, open},
};
use jiff::Timestamp;
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::{
    bodies::{NAMESPACES, RECORDS, Runs, day_of, namespace_of, parent},
    figures::Figures,
    fresh::Database,
    unmoved::Unmoved,
};

/// Files that are written at once, and commits of new runs.
const AT_ONCE: usize = 3;
/// Runs of one commit.
const BATCH: usize = 50;
/// Bytes that a run may take in files.
const MOST: f64 = 12_288.0;
/// Fewer runs than these in a file share too little with each other.
const SHARED: usize = 40;

pub async fn fill(databases: &[Database], folder: &Path, runs: &Arc<Runs>, figures: &mut Figures) {
    let mut stores = Vec::new();
    for database in databases {
        stores.push((database, Arc::new(opened(database, folder).await)));
    }
    let Some((database, first)) = stores.first() else {
        return;
    };
    figures.database = database.label;
    let empty = bytes(database).await;
    let began = Instant::now();
    let files = each_part(runs, |day, namespace| {
        let (opened, runs) = (Arc::clone(first), Arc::clone(runs));
        async move { write(&opened, &runs, day, namespace).await }
    });
    let files = files.await;
    let cold = runs.of_day(runs.cold_days()).start;
    let rate = per_second(cold * RECORDS, began);
    figures.value("records written to files in a second", rate, "/s", None);
    figures.value("files", files as f64, "", None);
    let in_files = size(folder) as f64 / cold as f64;
    let is_dense = cold / files.max(1) >= SHARED;
    let bound = is_dense.then_some(in_files);
    let met = bound.map(|bytes| bytes <= MOST);
    figures.value("bytes of a run in files", in_files.round(), "", met);
    store_newest((database, first), (empty, bound), runs, figures).await;

    let written = first.index.archive_files().await.unwrap();
    let written: HashMap<_, _> = written
        .into_iter()
        .map(|file| ((file.parent.to_string(), day_of(file.begin)), file))
        .collect();
    let written = Arc::new(written);
    for (database, opened) in stores.iter().skip(1) {
        figures.database = database.label;
        let empty = bytes(database).await;
        let noted = each_part(runs, |day, namespace| {
            let (opened, runs) = (Arc::clone(opened), Arc::clone(runs));
            let written = Arc::clone(&written);
            async move {
                let file = written.get(&(parent(namespace), day));
                note(&opened, &runs, (day, namespace), file).await
            }
        });
        assert_eq!(noted.await, files);
        store_newest((database, opened), (empty, bound), runs, figures).await;
    }
    for (_, opened) in stores {
        opened.maintenance.close().await;
    }
}

async fn opened(database: &Database, folder: &Path) -> Opened {
    let settings = Settings {
        url: format!("file://{}", folder.display()),
        above: 0,
        log_above: 0,
        keep: None,
        options: BTreeMap::new(),
    };
    let options = Options {
        schema: Schema::Migrate,
        archive: Some(Bucket::open(&settings).unwrap()),
        ..Options::default()
    };
    open(&database.url, &options).await.unwrap()
}

/// Does what is to be done for the runs of each day and namespace that are in a file; says how many have any.
async fn each_part<F>(runs: &Runs, part: impl Fn(usize, usize) -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let parts = (0..runs.cold_days()).flat_map(|day| (0..NAMESPACES).map(move |at| (day, at)));
    stream::iter(parts)
        .map(|(day, namespace)| tokio::spawn(part(day, namespace)))
        .buffer_unordered(AT_ONCE)
        .fold(0, |sum, has| async move { sum + usize::from(has.unwrap()) })
        .await
}

/// Stores the newest runs, after those that are in files, which take so many bytes each.
async fn store_newest(
    (database, opened): (&Database, &Opened),
    (empty, in_files): (f64, Option<f64>),
    runs: &Runs,
    figures: &mut Figures,
) {
    let rows = bytes(database).await - empty;
    let cold = runs.of_day(runs.cold_days()).start;
    let began = Instant::now();
    let numbers: Vec<usize> = (cold..runs.count).collect();
    stream::iter(numbers.chunks(BATCH))
        .map(|numbers| insert(opened, runs, numbers))
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    let rate = per_second(numbers.len() * RECORDS, began);
    figures.value("records stored in a second", rate, "/s", None);
    let stored = (bytes(database).await - empty - rows) / numbers.len() as f64;
    let row = rows / cold as f64;
    let case = "bytes in the database of a run that is in files";
    figures.value(case, row.round(), "", None);
    let case = "bytes in the database of a run that is there";
    let met = in_files.map(|bytes| bytes + row < stored);
    figures.value(case, stored.round(), "", met);
}

/// Writes the file of the runs of a day and namespace, and their results; false if there are none.
async fn write(opened: &Opened, runs: &Runs, day: usize, namespace: usize) -> bool {
    let (mut moving, mut results) = (Vec::new(), Vec::new());
    for number in runs.of_day(day) {
        if namespace_of(number) != namespace {
            continue;
        }
        let unmoved = Unmoved {
            run: runs.run(number),
            first: number * RECORDS + 1,
        };
        let result = unmoved.run.result.clone();
        let updates = unmoved.run.records.iter().map(|it| it.update_time);
        let version = WholeVersion::of(&result, updates);
        let read = Moving::of(&unmoved, result.clone(), version).await.unwrap();
        moving.push(read.expect("nothing changes a run meanwhile"));
        results.push(result);
    }
    let archive = opened.archive.as_ref().unwrap();
    let changes = archive.write(moving, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(changes.len(), results.len());
    match changes.first() {
        Some(Change::ArchiveResult { file, .. }) => insert_moved(opened, results, *file).await,
        Some(change) => panic!("{change:?}"),
        None => return false,
    }
    true
}

/// Notes a file that another store wrote, and its results; false if there are none.
async fn note(
    opened: &Opened,
    runs: &Runs,
    (day, namespace): (usize, usize),
    file: Option<&ArchiveFile>,
) -> bool {
    let numbers = runs.of_day(day).filter(|it| namespace_of(*it) == namespace);
    let results: Vec<_> = numbers.map(|number| runs.run(number).result).collect();
    let Some(file) = file else {
        assert!(results.is_empty());
        return false;
    };
    assert_eq!(file.results, results.len() as u64);
    let noted = opened.index.begin_file(file, Timestamp::UNIX_EPOCH);
    insert_moved(opened, results, noted.await.unwrap()).await;
    true
}

/// Stores results whose records are in a file, and were never in the database.
async fn insert_moved(opened: &Opened, results: Vec<RunResult>, file: i64) {
    let mut batch = Batch::default();
    for result in results {
        let moved = Change::ArchiveResult {
            name: result.name.clone(),
            version: WholeVersion::of(&result, []),
            now: Timestamp::UNIX_EPOCH,
            file,
        };
        batch.changes.extend([Change::InsertResult(result), moved]);
    }
    opened.store.commit(&batch).await.unwrap();
}

async fn insert(opened: &Opened, runs: &Runs, numbers: &[usize]) {
    let mut batch = Batch::default();
    for number in numbers {
        let run = runs.run(*number);
        batch.changes.push(Change::InsertResult(run.result));
        let records = run.records.into_iter();
        batch.changes.extend(records.map(Change::InsertRecord));
    }
    opened.store.commit(&batch).await.unwrap();
}

/// Bytes of a database but for the changes that followers may ask for.
async fn bytes(database: &Database) -> f64 {
    let bytes: i64 = match database.url.starts_with("sqlite:") {
        true => {
            let mut connection = SqliteConnection::connect(&database.url).await.unwrap();
            let sum = "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name <> 'changes'";
            let sum = sqlx::query_scalar(sum).fetch_one(&mut connection);
            sum.await.unwrap()
        }
        false => {
            let mut connection = PgConnection::connect(&database.url).await.unwrap();
            connection.execute("VACUUM ANALYZE").await.unwrap();
            let sum = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' \
                AND relnamespace = 'public'::regnamespace AND relname NOT IN ('changes', 'changes_floor')";
            let sum = sqlx::query_scalar(sum).fetch_one(&mut connection);
            sum.await.unwrap()
        }
    };
    bytes as f64
}

/// Bytes of the files below a directory.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        }
    });
    sizes.sum()
}

fn per_second(count: usize, began: Instant) -> f64 {
    (count as f64 / began.elapsed().as_secs_f64()).round()
}
