//! What is true of the SQLite store alone: its files, its schema, its plans.

mod names;
mod sums;

use std::{fs, path::Path};

use serde_json::json;
use sqlx::{AssertSqlSafe, Executor, Row, sqlite::SqliteConnection};
use tempfile::TempDir;

use super::{bind::query, file::File, migrate, reader::PooledReader, writer};
use crate::{
    conformance::{
        World,
        backends::{
            is_migrated_once, lists_that_cost_the_page, lists_that_find_few, pages_of_logs, refusal,
        },
        fixtures::{everything, kind, record, result, summary, test},
    },
    driver::{
        Database as _, Purpose, Reader as _, Work,
        options::{Options, Schema, Synchronous},
    },
    seam::{Change, ListQuery},
    sql::{access_path::AccessPath, dialect::Dialect, list, statement::Statement},
};
use hindsight_filter::{
    Order,
    condition::{Column, Is, Value},
    model::Resource,
};

fn dir() -> TempDir {
    TempDir::new().unwrap()
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

async fn connect(path: &Path) -> SqliteConnection {
    migrate::connect(File::at(path).options().create_if_missing(true))
        .await
        .unwrap()
}

/// The steps by which SQLite finds the rows of a statement.
async fn plan_of(connection: &mut SqliteConnection, statement: &Statement) -> Vec<String> {
    let explain = statement.prefixed("EXPLAIN QUERY PLAN ");
    let rows = query(&explain).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.get(3)).collect()
}

/// Makes a database of ours with some rows in it, closed.
async fn filled(path: &Path) {
    let world = World::open(&url(path)).await;
    for at in 0..50 {
        let mut value = result(&format!("a/results/r{at}"), at);
        if at % 3 > 0 {
            value.summary = Some(summary(&value.name, Some(at), Some(at)));
        }
        world.given([Change::InsertResult(value)]).await;
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn a_new_file_is_migrated_once_by_many() {
    let dir = dir();
    is_migrated_once(&url(&dir.path().join("new.db"))).await;
}

#[tokio::test]
async fn places_that_are_no_file_are_refused() {
    let dir = dir();
    let path = dir.path();
    let shown = path.display();
    assert_eq!(
        refusal(&url(path), Schema::Migrate).await,
        format!("`{shown}` is a directory; give a file, `sqlite:PATH`")
    );
    let lost = path.join("none/x.db");
    assert_eq!(
        refusal(&url(&lost), Schema::Migrate).await,
        format!("`{shown}/none/x.db` cannot be made: there is no directory `{shown}/none`")
    );
    let sealed = path.join("sealed.db");
    filled(&sealed).await;
    let mut rights = fs::metadata(&sealed).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&sealed, rights).unwrap();
    assert_eq!(
        refusal(&url(&sealed), Schema::Require).await,
        format!("`{shown}/sealed.db` is read-only; let hindsight write to it")
    );
}

#[tokio::test]
async fn texts_that_are_no_address_are_refused() {
    for (text, why) in [
        ("sqlite:", "`sqlite:` names no file"),
        ("sqlite::memory:", "a database in memory keeps nothing"),
        (
            "mysql://me:secret@db/x",
            "`mysql:` is no database known here",
        ),
        (
            "history.db",
            "`history.db` is not the address of a database",
        ),
    ] {
        let want = "want `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
        assert_eq!(
            refusal(text, Schema::Migrate).await,
            format!("{why}; {want}")
        );
    }
}

#[tokio::test]
async fn an_unmigrated_file_is_refused_and_not_made() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let why = refusal(&url(&path), Schema::Require).await;
    assert_eq!(
        why,
        format!(
            "there is no file `{}`; name the database with --db, or make one with `hindsight migrate`",
            path.display()
        )
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_left_alone() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let mut other = connect(&path).await;
    other
        .execute("CREATE TABLE wp_posts (id INTEGER)")
        .await
        .unwrap();
    sqlx::Connection::close(other).await.unwrap();
    let before = fs::read(&path).unwrap();
    for schema in [Schema::Require, Schema::Migrate] {
        let why = refusal(&url(&path), schema).await;
        assert!(
            why.contains("belongs to another program: it has the table `wp_posts`"),
            "{why}"
        );
    }
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let mut newer = connect(&path).await;
    let add = "INSERT INTO hindsight_schema (version, title, sha256) VALUES (99, 'x', x'00')";
    newer.execute(add).await.unwrap();
    sqlx::Connection::close(newer).await.unwrap();
    for schema in [Schema::Require, Schema::Migrate] {
        let why = refusal(&url(&path), schema).await;
        assert!(why.contains("has schema version 99"), "{why}");
        assert!(why.ends_with("use a newer hindsight"), "{why}");
    }
}

#[tokio::test]
async fn a_broken_file_is_refused() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let whole = fs::read(&path).unwrap();
    let mut scratched = whole.clone();
    scratched[100..300].fill(0xaa);
    let broken = [
        b"This is a letter, not a database.".repeat(100),
        whole[..whole.len() / 3].to_vec(),
        whole[..1000].to_vec(),
        scratched,
    ];
    for (at, bytes) in broken.into_iter().enumerate() {
        fs::write(&path, &bytes).unwrap();
        for schema in [Schema::Require, Schema::Migrate] {
            let why = refusal(&url(&path), schema).await;
            assert!(
                why.contains("is not a SQLite database, or is damaged"),
                "{at}: {why}"
            );
        }
        assert!(fs::read(&path).unwrap() == bytes, "file {at} was changed");
    }
}

#[tokio::test]
async fn first_pages_cost_the_page() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let mut connection = connect(&path).await;
    for (name, resource, wanted, path) in lists_that_cost_the_page() {
        for part in list::parts(resource, &wanted) {
            let statement = list::list(Dialect::Sqlite, resource, &wanted, part, path, 50).unwrap();
            let plan = plan_of(&mut connection, &statement).await;
            let text = plan.join("\n");
            assert!(!text.contains("TEMP B-TREE"), "{name}:\n{text}");
            let bare = |line: &String| ["SCAN records", "SCAN results"].contains(&line.as_str());
            assert!(!plan.iter().any(bare), "{name}:\n{text}");
        }
    }
}

#[tokio::test]
async fn pages_of_logs_cost_the_page() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let mut connection = connect(&path).await;
    for (name, statement) in pages_of_logs() {
        let plan = plan_of(&mut connection, &statement).await;
        let text = plan.join("\n");
        assert!(
            text.contains("SEARCH log_sources USING INDEX log_sources_by_name (result_row=?"),
            "{name}:\n{text}"
        );
        assert!(!text.contains("TEMP B-TREE"), "{name}:\n{text}");
        let whole = |line: &String| line.starts_with("SCAN ") && !line.contains(" USING INDEX ");
        assert!(!plan.iter().any(whole), "{name}:\n{text}");
    }
}

#[tokio::test]
async fn few_rows_are_found_by_their_own_index() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let mut connection = connect(&path).await;
    for (index, wanted) in lists_that_find_few() {
        let part = list::Part::With;
        let list = list::list(
            Dialect::Sqlite,
            Resource::Records,
            &wanted,
            part,
            AccessPath::DatabaseChoice,
            50,
        )
        .unwrap();
        let plan = plan_of(&mut connection, &list).await;
        assert!(
            plan.iter().any(|line| line.contains(index)),
            "{index}: {plan:#?}"
        );
    }
}

#[tokio::test]
async fn of_a_label_and_a_parent_of_many_rows_the_rarer_leads_to_a_sorted_list() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let labelled = json!({"kind": "TaskRun", "metadata": {"name": "x", "labels": {"team": "web"}}});
    world
        .given([
            Change::InsertResult(result("a/results/r", 0)),
            Change::InsertResult(result("b/results/r", 0)),
            Change::InsertRecord(record("a/results/r/records/x", 0, &labelled)),
        ])
        .await;
    // More of each than are counted: two of three rows are in `a`, one in `b`, and every other one has the label.
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 18000) INSERT INTO records \
                  (result_row, parent, id, uid, etag, create_us, update_us, data_type, labels) \
                  SELECT results.row_id, results.parent, randomblob(16), randomblob(16), '', i * 1000, i * 1000, 'x', \
                  CASE i % 2 WHEN 0 THEN (SELECT labels FROM records LIMIT 1) END FROM n JOIN results \
                  ON results.parent = CASE i % 3 WHEN 0 THEN 'b' ELSE 'a' END";
    connect(&path).await.execute(copies).await.unwrap();
    for (scope, leads) in [
        ("a/results/-", "index of the label team=web"),
        ("b/results/-", "rows of the parent b"),
    ] {
        let query = ListQuery {
            scope: scope.parse().unwrap(),
            condition: test(
                Column::Label("team".to_owned()),
                Is::Equal(Value::Text("web".to_owned())),
            ),
            order: Order::by(Column::Ended, true),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        let steps = plan.unwrap().steps;
        let wanted = format!("access path: {leads} (5000 rows)");
        assert_eq!(steps[0], wanted, "{steps:#?}");
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn any_value_of_a_label_is_each_of_few_values() {
    let dir = dir();
    let world = World::open(&url(&dir.path().join("x.db"))).await;
    let mut changes = vec![Change::InsertResult(result("a/results/r", 0))];
    for number in 0..20 {
        let labels = json!({"tier": format!("t{}", number % 3), "run": format!("r{number}")});
        let object = json!({"kind": "TaskRun", "metadata": {"name": "x", "labels": labels}});
        let name = format!("a/results/r/records/x{number}");
        changes.push(Change::InsertRecord(record(&name, number, &object)));
    }
    world.given(changes).await;
    for (key, leads, rows) in [
        ("tier", "index of labels, several of", 20),
        ("run", "scan of all rows in order", 20),
        // Of a condition that is false SQLite looks at no row.
        ("none", "scan of all rows in order", 0),
    ] {
        let query = ListQuery {
            condition: test(Column::Label(key.to_owned()), Is::Present),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        let steps = plan.unwrap().steps;
        assert!(steps[0].contains(leads), "{key}: {steps:#?}");
        let found = world.store.list_records(&query).await.unwrap();
        assert_eq!(found.len(), rows, "{key}");
        let times = found.iter().map(|listed| listed.item.create_time);
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{key}");
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn a_transaction_that_sqlite_ends_by_itself_harms_only_the_batch_that_broke_it() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    // As SQLite does when the disk is full.
    let trigger = "CREATE TRIGGER full BEFORE INSERT ON results WHEN new.uid = 'poison'
                   BEGIN SELECT raise(ROLLBACK, 'no room'); END";
    connect(&path).await.execute(trigger).await.unwrap();
    for round in 0..5 {
        let commits: Vec<_> = (0..20)
            .map(|at| {
                let mut value = result(&format!("a/results/{round}-{at}"), at);
                if at == 7 {
                    value.uid = "poison".to_owned();
                }
                (
                    at,
                    value.name.clone(),
                    world.start(Change::InsertResult(value)),
                )
            })
            .collect();
        for (at, name, commit) in commits {
            let outcome = kind(&commit.await.unwrap());
            assert_eq!(outcome, if at == 7 { "database" } else { "done" });
            assert_eq!(world.result(&name).await.is_some(), at != 7);
        }
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn writes_are_durable_and_pages_are_large() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    let mut connection = writer::connect(&File::at(&path)).await.unwrap();
    for (pragma, wanted) in [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("foreign_keys", "1"),
        ("page_size", "8192"),
        ("temp_store", "2"),
    ] {
        let sql = AssertSqlSafe(format!(
            "SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}"
        ));
        let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
        assert_eq!(row.get::<String, _>(0), wanted, "{pragma}");
    }
    let checkpoint = sqlx::query("PRAGMA wal_autocheckpoint");
    let row = checkpoint.fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 4_000);
}

#[tokio::test]
async fn what_writes_wait_for_can_be_chosen_and_less_is_said() {
    let dir = dir();
    let path = dir.path().join("x.db");
    filled(&path).await;
    for (wanted, level, weak) in [
        (Synchronous::Durable, "2", 0),
        (Synchronous::Named("extra"), "3", 0),
        (Synchronous::Named("normal"), "1", 1),
        (Synchronous::Named("off"), "0", 1),
    ] {
        let options = Options {
            synchronous: wanted,
            ..Options::default()
        };
        let (store, opening) = super::open(&path, &options).await.unwrap();
        assert_eq!(opening.weak.len(), weak, "{opening:?}");
        let mut connection = migrate::connect(migrate::writing(&store.file))
            .await
            .unwrap();
        let sql = "SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous";
        let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
        assert_eq!(row.get::<String, _>(0), level);
        store.close().await;
    }
    let options = Options {
        synchronous: Synchronous::Named("local"),
        ..Options::default()
    };
    let why = super::open(&path, &options).await.unwrap_err().to_string();
    assert!(why.contains("knows no synchronous `local`"), "{why}");
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_is_interrupted() {
    const ENDLESS: &str = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) \
                           SELECT count(*) FROM c";
    let dir = dir();
    let pool = sqlx::SqlitePool::connect_with(
        File::at(&dir.path().join("h.db"))
            .options()
            .create_if_missing(true),
    );
    let pool = pool.await.unwrap();
    let mut lent = PooledReader::new(pool.acquire().await.unwrap(), Work::Page, "waiting")
        .await
        .unwrap();
    let watched = lent.watched();
    let answer = sqlx::query(ENDLESS).fetch_one(&mut *lent);
    let short = std::time::Duration::from_millis(50);
    tokio::time::timeout(short, answer).await.unwrap_err();
    drop(lent);
    // SQLite lets go of what it looked at once the connection is closed, after the statement.
    let ended = async {
        while watched.strong_count() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let patience = std::time::Duration::from_secs(20);
    tokio::time::timeout(patience, ended).await.unwrap();
    let row = sqlx::query("SELECT 7").fetch_one(&pool).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 7, "others are not disturbed");
}

#[tokio::test]
async fn nothing_is_read_in_a_transaction_that_was_given_up() {
    let dir = dir();
    let options = File::at(&dir.path().join("h.db")).options();
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect_with(options.create_if_missing(true)).await;
    let pool = pool.unwrap();
    for _ in 0..2 {
        let lent = pool.acquire().await.unwrap();
        let mut lent = PooledReader::new(lent, Work::Lookup, "reading")
            .await
            .unwrap();
        lent.begin(Purpose::List).await.unwrap();
    }
}
