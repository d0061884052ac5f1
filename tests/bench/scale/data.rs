//! The data set: made once for each size, kept between runs, and shown to be whole before
//! anything is measured on it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use hindsight_storage::{
    Batch, Change, Error,
    resolve::{Opened, Options, Schema, open},
};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::{
    corpus::{self, RECORDS, Run},
    plain::Plain,
};

/// Runs of one commit.
const BATCH: usize = 50;
/// Commits under way at once.
const CLIENTS: usize = 3;

/// A database of so many records.
#[derive(Debug)]
pub struct Database {
    pub label: &'static str,
    pub url: String,
    pub records: usize,
}

impl Database {
    pub fn runs(&self) -> usize {
        self.records / RECORDS
    }

    /// The SQLite file for a size in `folder`.
    fn sqlite(folder: &Path, records: usize) -> Self {
        let file = folder.join(format!("scale-{records}-v{}.db", corpus::VERSION));
        Self {
            label: "sqlite",
            url: format!("sqlite:{}", file.display()),
            records,
        }
    }

    /// The database for a size in the server at `server`; it is made if it is not there.
    async fn postgres(server: &str, records: usize) -> Self {
        let name = format!("scale_{records}_v{}", corpus::VERSION);
        let mut admin = PgConnection::connect(server).await.unwrap();
        let known = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
        if known.fetch_optional(&mut admin).await.unwrap().is_none() {
            let make = AssertSqlSafe(format!("CREATE DATABASE {name}"));
            admin.execute(make).await.unwrap();
        }
        Self {
            label: "postgres",
            url: format!("{}/{name}", server.rsplit_once('/').unwrap().0),
            records,
        }
    }

    /// Those of `records` records on the engines that `chosen` names. Without a server of PostgreSQL it says
    /// that `make <target>` starts one.
    pub async fn each(folder: &Path, records: usize, chosen: &str, target: &str) -> Vec<Self> {
        let mut databases = Vec::new();
        if chosen.contains("sqlite") {
            databases.push(Self::sqlite(folder, records));
        }
        match std::env::var("HINDSIGHT_TEST_POSTGRES") {
            Ok(server) if chosen.contains("postgres") => {
                databases.push(Self::postgres(&server, records).await);
            }
            _ => println!("without PostgreSQL: use `make {target}`"),
        }
        databases
    }

    /// Opens it; what another version of the schema left there is thrown away.
    pub async fn open(&self) -> Opened {
        let options = Options {
            schema: Schema::Migrate,
            ..Options::default()
        };
        match open(&self.url, &options).await {
            Ok(opened) => opened,
            Err(Error::Incompatible(why)) => {
                println!("  made anew, because {why}");
                self.clear().await;
                open(&self.url, &options).await.unwrap()
            }
            Err(error) => panic!("{}: {error}", self.label),
        }
    }

    async fn clear(&self) {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                for end in ["", "-wal", "-shm"] {
                    match std::fs::remove_file(PathBuf::from(format!("{path}{end}"))) {
                        Err(e) if e.kind() != std::io::ErrorKind::NotFound => panic!("{path}: {e}"),
                        _ => {}
                    }
                }
            }
            None => {
                let mut database = Plain::connect(&self.url).await;
                database
                    .run("DROP SCHEMA public CASCADE; CREATE SCHEMA public".to_owned())
                    .await;
                database.close().await;
            }
        }
    }

    /// Where the plain table beside it is.
    pub fn plain_url(&self) -> String {
        match self.url.strip_suffix(".db") {
            Some(path) => format!("{path}-plain.db"),
            None => self.url.clone(),
        }
    }

    /// Adds the runs that are missing.
    pub async fn fill(&self) {
        let opened = self.open().await;
        let mut database = Plain::connect(&self.url).await;
        let ids = match self.label {
            "postgres" => "SELECT encode(id, 'hex') FROM results",
            _ => "SELECT hex(id) FROM results",
        };
        let there = database.texts(ids).await.into_iter();
        let there = there.map(|id| uuid::Uuid::parse_str(&id).unwrap().to_string());
        let there: Arc<HashSet<String>> = Arc::new(there.collect());
        let began = Instant::now();
        let runs = self.runs();
        let missing = runs - there.len();
        let batches: Vec<usize> = (0..runs).step_by(BATCH).collect();
        let store = &opened.store;
        stream::iter(batches)
            .map(|first| {
                let there = Arc::clone(&there);
                async move {
                    let make = move || batch(first, runs, &there);
                    let batch = tokio::task::spawn_blocking(make).await.unwrap();
                    if !batch.changes.is_empty() {
                        store.commit(&batch).await.unwrap();
                    }
                }
            })
            .buffered(CLIENTS)
            .collect::<()>()
            .await;
        if missing > 0 {
            let took = began.elapsed();
            println!(
                "  {} records were made in {:.0} s, {:.0}/s",
                missing * RECORDS,
                took.as_secs_f64(),
                per_second(missing * RECORDS, took)
            );
            if self.label == "postgres" {
                // What autovacuum does a minute later.
                database.run("VACUUM ANALYZE".to_owned()).await;
            }
        }
        database.close().await;
        opened.maintenance.close().await;
    }

    /// Shows that every record is there with the payload that was made for it.
    pub async fn verify(&self, folder: &Path) {
        let mut database = Plain::connect(&self.url).await;
        for (table, count) in [
            ("results", self.runs()),
            ("records", self.records),
            ("bodies", self.records),
        ] {
            let found = database
                .number(format!("SELECT count(*) FROM {table}"))
                .await;
            assert_eq!(usize::try_from(found).unwrap(), count, "{table}");
        }
        let mut sum = 0_u64;
        let digests = "SELECT body_sha256 FROM records";
        database
            .bytes(digests, |digest| sum = sum.wrapping_add(first(digest)))
            .await;
        assert_eq!(
            sum,
            checksum(folder, self.runs()),
            "the payloads are those that were made"
        );
        database.close().await;
    }
}

pub fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Those of the runs from `first` on that are not there yet.
fn batch(first: usize, runs: usize, there: &HashSet<String>) -> Batch {
    let mut results = Vec::new();
    let mut records = Vec::new();
    for number in first..(first + BATCH).min(runs) {
        let run = Run::new(number, runs);
        if there.contains(&run.uid) {
            continue;
        }
        let (result, own) = run.rows();
        results.push(Change::InsertResult(result));
        records.extend(own.into_iter().map(Change::InsertRecord));
    }
    results.extend(records);
    Batch { changes: results }
}

fn first(sha256: &[u8]) -> u64 {
    u64::from_be_bytes(sha256[..8].try_into().unwrap())
}

/// The sum over all payloads of the beginnings of their digests; worked out once.
fn checksum(folder: &Path, runs: usize) -> u64 {
    let file = folder.join(format!("checksum-{runs}-v{}", corpus::VERSION));
    if let Ok(text) = std::fs::read_to_string(&file) {
        return text.parse().unwrap();
    }
    let part = move |from: usize| {
        let mut sum = 0_u64;
        for number in (from..runs).step_by(2) {
            for record in Run::new(number, runs).rows().1 {
                let value = record.data.unwrap().value;
                sum = sum.wrapping_add(first(&Sha256::digest(&value)));
            }
        }
        sum
    };
    let other = std::thread::spawn(move || part(1));
    let sum = part(0).wrapping_add(other.join().unwrap());
    std::fs::write(file, sum.to_string()).unwrap();
    sum
}
