//! A database that an older version filled is read, changed and checked like any other after
//! migrating, from every schema there was.

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, Row, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};

use super::MIGRATIONS;
use crate::{
    filter::{Filter, condition::Column},
    measure::Group,
    model::{Record, Resource, RunResult},
    storage::{
        AggregateQuery, Change, GroupKey, ListQuery,
        conformance::{
            World,
            backends::{Database, PostgresDatabase, SqliteFile},
            fixtures::{everything, later_record, map, record, result, summary},
            pieces::given_runs,
            tests::postgres_server,
        },
        fsck::{Depth, Event, fsck},
        snapshot::Snapshot,
        sql::dialect::Dialect,
    },
};

/// Tables by who refers to whom; the first schema has only the first three.
const TABLES: [&str; 6] = [
    "secrets",
    "results",
    "records",
    "pieces",
    "piece_keys",
    "bodies",
];

/// What is asked before and after.
const FILTERS: [&str; 7] = [
    "data.metadata.labels['tekton.dev/pipeline'] == 'build'",
    "data.metadata.labels['team'] == 'blue'",
    "has(data.metadata.labels['team'])",
    "data.metadata.name == 'odd'",
    "data.status.conditions[0].reason == 'Failed'",
    "data_type == 'tekton.dev/v1.TaskRun' && name != 'raw'",
    "data.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')",
];

/// Everything that a client can see.
#[derive(Debug, PartialEq)]
struct Seen {
    results: Vec<RunResult>,
    records: Vec<Record>,
    found: Vec<(&'static str, Vec<String>)>,
    groups: Vec<Group>,
}

async fn fill(url: &str) {
    let world = World::open(url).await;
    given_runs(&world, "a/results/r", "build", 5).await;
    given_runs(&world, "b/results/r", "test", 3).await;
    let mut summed = result("a/results/summed", 7);
    summed.annotations = map([("repo", "shop")]);
    summed.summary = Some(summary(&summed.name, Some(1), Some(2)));
    let object = serde_json::json!({
        "kind": "TaskRun",
        "metadata": {
            "name": "odd", "namespace": "b", "uid": "u", "labels": {"team": "blue", "": "empty"},
            "creationTimestamp": "2026-02-01T00:00:00Z",
        },
        "spec": {"pipelineRef": {"name": "named"}},
        "status": {
            "startTime": "2026-02-01T00:00:01Z", "completionTime": "2026-02-01T00:05:01Z",
            "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed"}],
        },
    });
    let odd = record("b/results/r/records/odd", 40, &object);
    let mut raw = record("b/results/r/records/raw", 50, &object);
    raw.data.as_mut().unwrap().value = vec![0, 159, 146, 150].into();
    let mut none = record("b/results/r/records/none", 60, &object);
    none.data = None;
    let records = [odd, raw, none].map(Change::InsertRecord);
    world.given([Change::InsertResult(summed)]).await;
    world.given(records).await;
    world.maintenance.close().await;
}

async fn see(world: &World) -> Seen {
    let store = &world.store;
    let results = store.list_results(&everything()).await.unwrap();
    let records = store.list_records(&everything()).await.unwrap();
    let mut found = Vec::new();
    for text in FILTERS {
        let filter = Filter::compile(text, Resource::Records).unwrap();
        let split = filter.split(&|test| store.ability(test));
        let query = ListQuery {
            condition: split.condition,
            bodies: false,
            ..everything()
        };
        let rows = store.list_records(&query).await.unwrap();
        let names = rows.iter().map(|row| row.item.name.to_string());
        found.push((text, names.collect()));
    }
    let keys = [Column::Pipeline, Column::Outcome, Column::Parent];
    let query = AggregateQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: crate::filter::condition::Condition::All,
        keys: keys.map(GroupKey::Column).to_vec(),
        counts: Vec::new(),
        amounts: Vec::new(),
    };
    Seen {
        results: results.into_iter().map(|row| row.item).collect(),
        records: records.into_iter().map(|row| row.item).collect(),
        found,
        groups: store.aggregate(&query).await.unwrap(),
    }
}

/// A statement that copies the columns which both have.
fn copy(
    table: &str,
    columns: &[String],
    from: &str,
    to: &str,
    overriding: &str,
) -> AssertSqlSafe<String> {
    let columns = columns.join(", ");
    AssertSqlSafe(format!(
        "INSERT INTO {to}.{table} ({columns}) {overriding} SELECT {columns} FROM {from}.{table}"
    ))
}

/// Bodies as the first schema kept them: each by itself.
fn first_bodies(records: &[Record], ids: &[(i64, String)]) -> Vec<(i64, i64, Vec<u8>)> {
    let mut bodies = Vec::new();
    for (at, (row, name)) in ids.iter().enumerate() {
        let record = records
            .iter()
            .find(|record| record.name.to_string() == *name);
        let Some(data) = record.and_then(|record| record.data.as_ref()) else {
            continue;
        };
        let whole = data.value.to_vec();
        bodies.push(match at % 2 {
            0 => (*row, 0, whole),
            _ => (*row, 1, zstd::bulk::compress(&whole, 3).unwrap()),
        });
    }
    bodies
}

const NAMES: &str =
    "SELECT row_id, parent || '/results/' || result_id || '/records/' || id FROM records";
const BODY: &str = "INSERT INTO bodies (record_row, codec, bytes) VALUES ($1, $2, $3)";
const APPLIED: &str = "INSERT INTO hindsight_schema VALUES ($1, $2, $3)";

/// Makes the file at `old` what a program of schema `version` would have made of the file at
/// `url`.
async fn as_sqlite_had_it(url: &str, old: &str, version: usize, records: &[Record]) {
    let options: SqliteConnectOptions = old.parse().unwrap();
    let mut db = options.create_if_missing(true).connect().await.unwrap();
    for migration in &MIGRATIONS[..version] {
        db.execute(migration.sql(Dialect::Sqlite)).await.unwrap();
        let applied = sqlx::query(APPLIED)
            .bind(migration.version)
            .bind(migration.title);
        let applied = applied.bind(migration.sha256(Dialect::Sqlite));
        applied.execute(&mut db).await.unwrap();
    }
    let attach = format!("ATTACH '{}' AS new", url.strip_prefix("sqlite:").unwrap());
    db.execute(AssertSqlSafe(attach)).await.unwrap();
    for table in TABLES {
        let columns = format!("SELECT name FROM pragma_table_info('{table}', 'main')");
        let columns = db.fetch_all(AssertSqlSafe(columns)).await.unwrap();
        let columns: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
        if !columns.is_empty() && (version > 1 || table != "bodies") {
            db.execute(copy(table, &columns, "new", "main", ""))
                .await
                .unwrap();
        }
    }
    if version == 1 {
        let rows = db.fetch_all(NAMES).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        for (row, codec, bytes) in first_bodies(records, &ids) {
            let body = sqlx::query(BODY).bind(row).bind(codec).bind(bytes);
            body.execute(&mut db).await.unwrap();
        }
    }
    db.close().await.unwrap();
}

/// Makes the database what a program of schema `version` would have made of it.
async fn as_postgres_had_it(url: &str, version: usize, records: &[Record]) {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut db = options.connect().await.unwrap();
    db.execute("CREATE SCHEMA old").await.unwrap();
    db.execute("SET search_path = old").await.unwrap();
    for migration in &MIGRATIONS[..version] {
        db.execute(migration.sql(Dialect::Postgres)).await.unwrap();
        let applied = sqlx::query(APPLIED)
            .bind(migration.version)
            .bind(migration.title);
        let applied = applied.bind(migration.sha256(Dialect::Postgres));
        applied.execute(&mut db).await.unwrap();
    }
    for table in TABLES {
        let columns = format!(
            "SELECT column_name::text FROM information_schema.columns \
             WHERE table_schema = 'old' AND table_name = '{table}'"
        );
        let columns = db.fetch_all(AssertSqlSafe(columns)).await.unwrap();
        let columns: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
        if columns.is_empty() || (version == 1 && table == "bodies") {
            continue;
        }
        let all = copy(table, &columns, "public", "old", "OVERRIDING SYSTEM VALUE");
        db.execute(all).await.unwrap();
        if columns.iter().any(|column| column == "row_id") {
            let next = format!(
                "SELECT setval(pg_get_serial_sequence('old.{table}', 'row_id'), \
                 (SELECT max(row_id) + 1 FROM old.{table}))"
            );
            db.execute(AssertSqlSafe(next)).await.unwrap();
        }
    }
    if version == 1 {
        let rows = db.fetch_all(NAMES).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        for (row, codec, bytes) in first_bodies(records, &ids) {
            let body = sqlx::query(BODY).bind(row).bind(codec).bind(bytes);
            body.execute(&mut db).await.unwrap();
        }
    }
    db.execute("DROP SCHEMA public CASCADE").await.unwrap();
    db.execute("ALTER SCHEMA old RENAME TO public")
        .await
        .unwrap();
    db.close().await.unwrap();
}

/// The migrated database holds what was there, and takes what a new one takes.
async fn goes_on(url: &str, before: &Seen, version: usize) {
    let world = World::open(url).await;
    let after = see(&world).await;
    assert_eq!(after.found, before.found, "from schema {version}");
    assert_eq!(after.groups, before.groups, "from schema {version}");
    assert!(
        after == *before,
        "rows differ from those of schema {version}"
    );
    for (text, names) in &before.found {
        assert!(!names.is_empty(), "{text} shows nothing");
    }
    let old = &before.records[0];
    let value = later_record(old, 1_000);
    world
        .given([Change::ReplaceRecord {
            expect: old.etag.clone(),
            value: value.clone(),
        }])
        .await;
    let read = world.store.record(&value.name).await.unwrap();
    assert_eq!(read, Some(value));
    given_runs(&world, "c/results/new", "build", 3).await;
    world
        .given([Change::DeleteResult {
            name: "a/results/r".parse().unwrap(),
            expect: None,
        }])
        .await;
    let left = see(&world).await;
    assert_eq!(left.records.len(), before.records.len() + 3 - 5);
    assert!(
        left.records
            .iter()
            .all(|record| record.name.result().parent().to_string() != "a")
    );
    world.maintenance.close().await;
    let mut findings = Vec::new();
    let mut snapshot = Snapshot::open(url).await.unwrap();
    let mut take = |event| {
        if let Event::Found(finding) = event {
            findings.push(finding);
        }
    };
    fsck(&mut snapshot, Depth::Full, &mut take).await.unwrap();
    snapshot.close().await;
    assert!(findings.is_empty(), "from schema {version}: {findings:#?}");
}

async fn before(url: &str) -> Seen {
    fill(url).await;
    let world = World::open(url).await;
    let seen = see(&world).await;
    world.maintenance.close().await;
    seen
}

#[tokio::test]
async fn files_of_every_schema_go_on() {
    for version in 1..MIGRATIONS.len() {
        let (new, old) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
        let seen = before(&new.url()).await;
        as_sqlite_had_it(&new.url(), &old.url(), version, &seen.records).await;
        goes_on(&old.url(), &seen, version).await;
        new.remove().await;
        old.remove().await;
    }
}

#[tokio::test]
async fn databases_of_every_schema_go_on() {
    let Some(server) = postgres_server() else {
        return;
    };
    for version in 1..MIGRATIONS.len() {
        let database = PostgresDatabase::fresh(&server).await;
        let seen = before(&database.url()).await;
        as_postgres_had_it(&database.url(), version, &seen.records).await;
        goes_on(&database.url(), &seen, version).await;
        database.remove().await;
    }
}
