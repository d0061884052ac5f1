//! Which databases are taken.

use super::*;

fn applied(versions: &[i64]) -> Found {
    Found::Ours(
        versions
            .iter()
            .map(|&version| Applied {
                version,
                sha256: MIGRATIONS
                    .iter()
                    .find(|m| m.version == version)
                    .map_or(vec![], |m| m.sha256(Dialect::Sqlite)),
            })
            .collect(),
    )
}

#[track_caller]
fn refuses(found: &Found, because: &str) {
    let error = needed(found, Dialect::Sqlite, "`x.db`")
        .unwrap_err()
        .to_string();
    assert_eq!(error, because);
}

#[test]
fn migrations_are_numbered_from_one_without_gaps() {
    for (at, migration) in MIGRATIONS.iter().enumerate() {
        assert_eq!(migration.version, i64::try_from(at).unwrap() + 1);
    }
}

#[test]
fn an_empty_database_needs_all_and_a_current_one_none() {
    assert_eq!(
        needed(&Found::Empty, Dialect::Sqlite, "x").unwrap().len(),
        MIGRATIONS.len()
    );
    let all: Vec<i64> = MIGRATIONS.iter().map(|m| m.version).collect();
    assert_eq!(
        needed(&applied(&all), Dialect::Sqlite, "x").unwrap().len(),
        0
    );
    require_current(&applied(&all), Dialect::Sqlite, "x").unwrap();
}

#[test]
fn an_unmigrated_database_is_refused_with_the_remedy() {
    let error = require_current(&Found::Empty, Dialect::Sqlite, "`x.db`")
        .unwrap_err()
        .to_string();
    let newest = MIGRATIONS.len();
    assert_eq!(
        error,
        format!(
            "`x.db` has schema version 0 and this program needs {newest}; run `hindsight migrate`"
        )
    );
}

#[test]
fn strangers_are_refused() {
    refuses(
        &Found::Foreign("wp_posts".to_owned()),
        "`x.db` belongs to another program: it has the table `wp_posts` and no \
         `hindsight_schema`; give an empty database or one that hindsight made",
    );
    let mut versions: Vec<i64> = MIGRATIONS.iter().map(|m| m.version).collect();
    versions.push(99);
    let newest = MIGRATIONS.len();
    refuses(
        &applied(&versions),
        &format!(
            "`x.db` has schema version 99 and this program knows versions up to {newest}; use a \
             newer hindsight"
        ),
    );
    let mut otherwise = applied(&[1]);
    if let Found::Ours(applied) = &mut otherwise {
        applied[0].version = 0;
    }
    refuses(
        &otherwise,
        "`x.db` was migrated otherwise: its migration 0 is not number 1 (`baseline`) of this \
         program; restore a backup, or use the program that made it",
    );
}

#[test]
fn a_schema_from_before_the_baseline_is_refused_with_the_remedy() {
    refuses(
        &Found::Ours(vec![Applied {
            version: 1,
            sha256: vec![1],
        }]),
        "`x.db` has the schema of another development version of hindsight; use the version that \
         made it, or give an empty database",
    );
}

fn migration(postgres: &'static str) -> Migration {
    Migration {
        version: 2,
        title: "x",
        sqlite: "",
        postgres,
    }
}

#[test]
fn a_migration_says_itself_that_it_runs_outside_of_a_transaction() {
    let together = "ALTER TABLE t ADD COLUMN c BIGINT;";
    assert_eq!(
        migration(together).steps(),
        Ok(Steps::Together("ALTER TABLE t ADD COLUMN c BIGINT;"))
    );
    let outside = "-- no-transaction\n-- Why.\n\nCREATE INDEX CONCURRENTLY a ON t (c);\n\
                   -- Also\nCREATE UNIQUE INDEX CONCURRENTLY b ON t\n (d);\n";
    let Ok(Steps::Concurrently(made)) = migration(outside).steps() else {
        panic!("it is not outside");
    };
    let names: Vec<_> = made.iter().map(|one| one.index).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(made[0].sql, "CREATE INDEX CONCURRENTLY a ON t (c)");
}

#[test]
fn nothing_but_concurrent_indexes_runs_outside_of_a_transaction() {
    for sql in [
        "CREATE INDEX a ON t (c)",
        "UPDATE t SET c = 1",
        "DROP INDEX a",
    ] {
        let outside: &'static str = Box::leak(format!("-- no-transaction\n{sql};").into());
        assert_eq!(migration(outside).steps(), Err(sql));
    }
}

#[test]
fn every_migration_can_be_run() {
    for migration in MIGRATIONS {
        migration.steps().unwrap();
    }
}
