//! Each kind of damage is done to a sound database, and found: that, and nothing else.

use super::{Depth, Event, Finding, Kind, Seen, fsck};
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, SqliteFile, tamper},
        dictionaries::given_runs,
        fixtures::{Dice, pipeline, record, version},
        tests::postgres_server,
    },
    driver::options::Options,
    seam::Change,
    sql::{row::SqlRow as _, statement::Statement, walk::TABLES},
    store::resolve::open,
    tools::snapshot::Snapshot,
};

/// What is found in the database at `url`.
async fn look(url: &str, depth: Depth) -> (Vec<Finding>, Seen) {
    let mut found = Vec::new();
    let mut snapshot = Snapshot::open(url).await.unwrap();
    let mut take = |event| {
        if let Event::Found(finding) = event {
            found.push(finding);
        }
    };
    let seen = fsck(&mut snapshot, depth, &mut take).await.unwrap();
    snapshot.close().await;
    (found, seen)
}

/// Runs of one pipeline, a payload that is not JSON, none, and a result of another.
async fn sound(url: &str) {
    let world = World::open(url).await;
    given_runs(&world, "a/results/r", "build", 5).await;
    given_runs(&world, "a/results/other", "build", 1).await;
    let mut raw = record("a/results/r/records/raw", 50, &serde_json::Value::Null);
    raw.data.as_mut().unwrap().value = Dice::new(1).bytes(3000).into();
    let mut plain = record("a/results/r/records/plain", 51, &serde_json::Value::Null);
    plain.data = None;
    let mut empty = record("a/results/r/records/empty", 52, &serde_json::Value::Null);
    empty.data.as_mut().unwrap().value = bytes::Bytes::new();
    world
        .given([raw, plain, empty].map(Change::InsertRecord))
        .await;
    world.maintenance.close().await;
    let database = open(url, &Options::default()).await.unwrap();
    let [first, second] = ["v1", "v2"].map(|name| version("p", name));
    let (tables, hello) = (&database.pipelines, pipeline("p", "hello"));
    tables.create_pipeline(&hello, Some(&first)).await.unwrap();
    tables.create_version(&second).await.unwrap();
    database.maintenance.close().await;
}

/// One way to damage a database, and what is then found.
struct Damage {
    sqlite: &'static str,
    postgres: &'static str,
    found: &'static [(Kind, &'static str)],
    /// Whether it is seen without opening payloads.
    quick: bool,
}

const fn both(sql: &'static str, found: &'static [(Kind, &'static str)], quick: bool) -> Damage {
    Damage {
        sqlite: sql,
        postgres: sql,
        found,
        quick,
    }
}

const RAW: &str = "a/results/r/records/raw";

const DAMAGES: &[Damage] = &[
    Damage {
        sqlite: "UPDATE bodies SET bytes = zeroblob(length(bytes)) WHERE codec = 0",
        postgres: "UPDATE bodies SET bytes = decode(repeat('00', length(bytes)), 'hex') \
                   WHERE codec = 0",
        found: &[(Kind::BodyDamaged, RAW)],
        quick: false,
    },
    both(
        "UPDATE bodies SET codec = 9 WHERE codec = 0",
        &[(Kind::BodyDamaged, RAW)],
        false,
    ),
    both(
        "UPDATE records SET body_size = 2999 WHERE id = 'raw'",
        &[(Kind::BodyDamaged, RAW)],
        false,
    ),
    both(
        "UPDATE records SET body_sha256 = (SELECT body_sha256 FROM records WHERE id = 'x1') \
         WHERE id = 'raw'",
        &[(Kind::BodyDamaged, RAW)],
        false,
    ),
    both(
        "UPDATE records SET body_sha256 = NULL WHERE id = 'raw'",
        &[(Kind::RowDamaged, RAW)],
        false,
    ),
    both(
        "DELETE FROM bodies WHERE codec = 0",
        &[(Kind::BodyMissing, RAW)],
        true,
    ),
    both(
        "INSERT INTO bodies (record_row, codec, bytes) SELECT plain.row_id, codec, bytes FROM \
         records AS plain, bodies WHERE codec = 0 AND plain.id = 'plain'",
        &[(Kind::BodyUnexpected, "a/results/r/records/plain")],
        true,
    ),
    both(
        "DELETE FROM records WHERE id = 'raw'",
        &[(Kind::BodyOrphan, "body 7")],
        true,
    ),
    both(
        "INSERT INTO log_sources (result_row, lines, bytes, stored_bytes, holes, packed, version, update_us, kind, \
         restart, log, pod, container) SELECT row_id, 3, 30, 0, 0, 0, 1, 1, 0, 0, '\\x01', 'p', 'c' FROM results WHERE id = 'other'",
        &[(Kind::LogDamaged, "log 1")],
        true,
    ),
    both(
        "DELETE FROM results WHERE id = 'other'",
        &[(Kind::RecordOrphan, "a/results/?/records/x0")],
        true,
    ),
    both(
        "UPDATE records SET parent = 'b' WHERE id = 'raw'",
        &[(Kind::RecordMisplaced, "b/results/r/records/raw")],
        true,
    ),
    both(
        "UPDATE records SET object_name = 'x' WHERE id = 'x3'",
        &[(Kind::ColumnDiffers, "a/results/r/records/x3")],
        false,
    ),
    Damage {
        sqlite: "INSERT INTO given_labels (labels) VALUES ('{\"key\": \"x\"}'); \
                 UPDATE records SET labels = (SELECT json_array(max(row_id)) FROM labels) \
                 WHERE id = 'x3'",
        postgres: "UPDATE records SET labels = '{\"key\": \"x\"}' WHERE id = 'x3'",
        found: &[(Kind::ColumnDiffers, "a/results/r/records/x3")],
        quick: false,
    },
    both(
        "UPDATE records SET run_outcome = NULL, run_ended_us = create_us WHERE id = 'x3'",
        &[
            (Kind::ColumnDiffers, "a/results/r/records/x3"),
            (Kind::ColumnDiffers, "a/results/r/records/x3"),
        ],
        false,
    ),
    Damage {
        sqlite: "UPDATE dictionaries SET bytes = zeroblob(length(bytes)) WHERE row_id = 2",
        postgres: "UPDATE dictionaries SET bytes = decode(repeat('00', length(bytes)), 'hex') \
                   WHERE row_id = 2",
        found: &[
            (Kind::DictionaryUnreadable, "a/results/other/records/x0"),
            (Kind::DictionaryUnreadable, "a/results/r/records/x1"),
            (Kind::DictionaryUnreadable, "a/results/r/records/x2"),
            (Kind::DictionaryUnreadable, "a/results/r/records/x3"),
            (Kind::DictionaryUnreadable, "a/results/r/records/x4"),
            (Kind::DictionaryDamaged, "dictionary 2"),
        ],
        quick: false,
    },
    both(
        "DELETE FROM dictionaries WHERE row_id = 2; DELETE FROM dictionary_keys WHERE dictionary = 2",
        &[
            (Kind::DictionaryMissing, "a/results/other/records/x0"),
            (Kind::DictionaryMissing, "a/results/r/records/x1"),
            (Kind::DictionaryMissing, "a/results/r/records/x2"),
            (Kind::DictionaryMissing, "a/results/r/records/x3"),
            (Kind::DictionaryMissing, "a/results/r/records/x4"),
        ],
        true,
    ),
    both(
        "UPDATE results SET annotations = '[1]' WHERE id = 'r'",
        &[(Kind::RowDamaged, "a/results/r")],
        true,
    ),
    Damage {
        sqlite: "UPDATE records SET create_us = 9223372036854775807 WHERE id = 'x3'; UPDATE \
                 record_labels SET at_us = 9223372036854775807 WHERE record_row = (SELECT row_id \
                 FROM records WHERE id = 'x3')",
        postgres: "UPDATE records SET create_us = 9223372036854775807 WHERE id = 'x3'",
        found: &[(Kind::RowDamaged, "a/results/r/records/x3")],
        quick: true,
    },
    both(
        "UPDATE pipelines SET versions = 3",
        &[(Kind::RowDamaged, "pipelines/hello")],
        true,
    ),
    Damage {
        sqlite: "DROP TRIGGER pipeline_versions_go; DELETE FROM pipeline_versions WHERE name = 'v1'; \
                 CREATE TRIGGER pipeline_versions_go AFTER DELETE ON pipeline_versions BEGIN UPDATE pipelines SET \
                 versions = versions - 1, revision = revision + 1 WHERE row_id = OLD.pipeline_row; END",
        postgres: "ALTER TABLE pipeline_versions DISABLE TRIGGER USER; DELETE FROM pipeline_versions \
                   WHERE name = 'v1'; ALTER TABLE pipeline_versions ENABLE TRIGGER USER",
        found: &[(Kind::RowDamaged, "pipelines/hello")],
        quick: true,
    },
    both(
        "DELETE FROM index_generation",
        &[(Kind::RowDamaged, "index_generation")],
        true,
    ),
    Damage {
        sqlite: "INSERT INTO secrets (name, value) VALUES ('page tokens', x'')",
        postgres: "INSERT INTO secrets (name, value) VALUES ('page tokens', '')",
        found: &[(Kind::RowDamaged, "secret page tokens")],
        quick: true,
    },
    // The index goes on being sorted by the times of creation. The file is of no use afterwards.
    Damage {
        sqlite: "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE INDEX \
                 records_by_create ON records (body_size)' WHERE name = 'records_by_create'",
        postgres: "UPDATE pg_index SET indisready = false WHERE indexrelid = \
                   'results_pkey'::regclass; INSERT INTO results (parent, id, uid, etag, \
                   create_us, update_us, annotations) VALUES ('a', 'z', 'u', 'e', 1, 1, '{}'); \
                   UPDATE pg_index SET indisready = true WHERE indexrelid = \
                   'results_pkey'::regclass",
        found: &[],
        quick: true,
    },
];

/// What only SQLite has tables of.
const DAMAGES_OF_LABELS: &[Damage] = &[
    both(
        "DELETE FROM record_labels WHERE record_row = \
         (SELECT row_id FROM records WHERE id = 'x3')",
        &[(Kind::LabelDiffers, "a/results/r/records/x3")],
        true,
    ),
    both(
        "DELETE FROM labels; DELETE FROM record_labels WHERE record_row <> 4",
        &[
            (Kind::ColumnDiffers, "a/results/other/records/x0"),
            (Kind::ColumnDiffers, "a/results/r/records/x0"),
            (Kind::ColumnDiffers, "a/results/r/records/x1"),
            (Kind::ColumnDiffers, "a/results/r/records/x2"),
            (Kind::ColumnDiffers, "a/results/r/records/x3"),
            (Kind::ColumnDiffers, "a/results/r/records/x4"),
            (Kind::LabelDiffers, "a/results/other/records/x0"),
            (Kind::LabelDiffers, "a/results/r/records/x0"),
            (Kind::LabelDiffers, "a/results/r/records/x1"),
            (Kind::LabelDiffers, "a/results/r/records/x2"),
            (Kind::LabelDiffers, "a/results/r/records/x3"),
            (Kind::LabelDiffers, "a/results/r/records/x4"),
            (Kind::LabelDiffers, "record in row 4"),
        ],
        true,
    ),
    both(
        "INSERT INTO record_labels (label, at_us, record_row) SELECT label, at_us + 1, record_row \
         FROM record_labels WHERE record_row = 4",
        &[(Kind::LabelDiffers, "record in row 4")],
        true,
    ),
    both(
        "UPDATE record_labels SET type = 1 WHERE record_row = 4",
        &[(Kind::LabelDiffers, "record in row 4")],
        true,
    ),
    both(
        // Under another row, so that as many rows are counted as are deleted in the end.
        "INSERT INTO record_names (record_names, rowid, name) \
         SELECT 'delete', row_id, object_name FROM records WHERE id = 'x3'; \
         INSERT INTO record_names (rowid, name) \
         SELECT 1000000, object_name FROM records WHERE id = 'x3'",
        &[(Kind::NameDiffers, "a/results/r/records/x3")],
        true,
    ),
];

/// What only PostgreSQL has a table of.
const DAMAGES_OF_NAMES: &[Damage] = &[
    both(
        "DELETE FROM pipeline_names",
        &[(Kind::RowDamaged, "pipelines/hello")],
        true,
    ),
    both(
        "UPDATE pipeline_names SET name = 'Hello'",
        &[(Kind::RowDamaged, "pipelines/hello")],
        true,
    ),
];

/// Empties the tables and begins to number their rows anew.
async fn empty(url: &str) {
    let tables = "DELETE FROM pipeline_versions; DELETE FROM pipeline_tags; DELETE FROM pipelines; DELETE FROM log_sources; DELETE FROM bodies; DELETE FROM records; DELETE FROM results; \
                  DELETE FROM dictionary_keys; DELETE FROM dictionaries; DELETE FROM sqlite_sequence; \
                  DELETE FROM record_labels; DELETE FROM labels; DELETE FROM secrets; \
                  DELETE FROM index_generation; \
                  INSERT INTO index_generation (generation) VALUES (0)";
    let truncate = "DELETE FROM pipeline_versions; DELETE FROM pipeline_tags; DELETE FROM pipelines; DELETE FROM log_sources; DELETE FROM bodies; DELETE FROM records; DELETE FROM results; \
                    DELETE FROM dictionary_keys; DELETE FROM dictionaries; DELETE FROM secrets; \
                    DELETE FROM index_generation; \
                    INSERT INTO index_generation (generation) VALUES (0); \
                    ALTER TABLE results ALTER row_id RESTART; \
                    ALTER TABLE records ALTER row_id RESTART; \
                    ALTER TABLE dictionaries ALTER row_id RESTART";
    tamper(url, tables, truncate).await;
}

async fn finds_each_damage(url: &str, damages: impl Iterator<Item = &Damage>) {
    World::open(url).await.maintenance.close().await;
    let on_sqlite = url.starts_with("sqlite:");
    for damage in damages {
        empty(url).await;
        sound(url).await;
        let (found, seen) = look(url, Depth::Full).await;
        assert_eq!(found, [], "before: {}", damage.sqlite);
        let seen = (seen.results, seen.records, seen.verified_payloads);
        assert_eq!(seen, (2, 9, 7));
        tamper(url, damage.sqlite, damage.postgres).await;
        for depth in [Depth::Full, Depth::Quick] {
            let (found, _) = look(url, depth).await;
            let mut found: Vec<(Kind, &str)> = found
                .iter()
                .map(|finding| (finding.kind, finding.of.as_str()))
                .collect();
            found.sort_unstable();
            let mut wanted = damage.found.to_vec();
            if wanted.is_empty() && on_sqlite {
                // The engine says it for each row.
                found.dedup();
                wanted = vec![(Kind::TableDamaged, "records")];
            } else if wanted.is_empty() {
                wanted = vec![(Kind::CountDiffers, "results")];
            }
            wanted.sort_unstable();
            if depth == Depth::Quick {
                // What columns say is compared with payloads.
                wanted.retain(|(kind, _)| damage.quick && *kind != Kind::ColumnDiffers);
            }
            assert_eq!(found, wanted, "{depth:?} after {}", damage.sqlite);
        }
    }
}

#[tokio::test]
async fn each_damage_is_found_and_nothing_else_on_sqlite() {
    let file = SqliteFile::fresh().await;
    finds_each_damage(&file.url(), DAMAGES_OF_LABELS.iter().chain(DAMAGES)).await;
}

#[tokio::test]
async fn each_damage_is_found_and_nothing_else_on_postgres() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    finds_each_damage(&database.url(), DAMAGES_OF_NAMES.iter().chain(DAMAGES)).await;
    database.remove().await;
}

/// Which tables a database has.
async fn tables(url: &str) -> Vec<String> {
    let mut snapshot = Snapshot::open(url).await.unwrap();
    let catalog = match url.starts_with("sqlite:") {
        true => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        false => {
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' \
                  AND relnamespace = 'public'::regnamespace"
        }
    };
    let rows = snapshot.rows(&Statement::new(catalog)).await.unwrap();
    let names = rows.iter().map(|row| row.text(0).unwrap().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "hindsight_schema").collect();
    names.sort();
    snapshot.close().await;
    names
}

/// The table of versions is compared when the database is opened.
#[tokio::test]
async fn every_table_of_the_schema_is_looked_at() {
    let mut listed = TABLES.map(|(name, _)| name.to_owned()).to_vec();
    listed.sort();
    let file = SqliteFile::fresh().await;
    sound(&file.url()).await;
    assert_eq!(tables(&file.url()).await, listed);
    if let Some(server) = postgres_server() {
        let database = PostgresDatabase::fresh(&server).await;
        sound(&database.url()).await;
        listed.retain(|name| !name.ends_with("labels") && !name.starts_with("record_names"));
        listed.extend(["changes_floor", "pipeline_names"].map(str::to_owned));
        listed.sort();
        assert_eq!(tables(&database.url()).await, listed);
        database.remove().await;
    }
}

/// Looks again and again while runs come and go and dictionaries are swept.
async fn stays_clean_beside_writers(url: &str) {
    let world = World::open(url).await;
    given_runs(&world, "a/results/first", "build", 3).await;
    let writer = world.clone();
    let writing = tokio::spawn(async move {
        for round in 0..12 {
            let name = format!("a/results/w{round}");
            given_runs(&writer, &name, &format!("{:x<1$}", "p", round), 3).await;
            let name = name.parse().unwrap();
            writer
                .given([Change::DeleteResult { name, expect: None }])
                .await;
            let most = std::num::NonZeroU32::MAX;
            writer.maintenance.sweep(most, 0).await.unwrap();
        }
    });
    let mut looks = 0;
    while !writing.is_finished() || looks < 2 {
        let (found, seen) = look(url, Depth::Full).await;
        assert_eq!(found, [], "look {looks}");
        assert!(seen.records >= 3);
        looks += 1;
    }
    writing.await.unwrap();
    world.maintenance.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_database_is_clean_beside_writers() {
    let database = SqliteFile::fresh().await;
    stays_clean_beside_writers(&database.url()).await;
    if let Some(server) = postgres_server() {
        let database = PostgresDatabase::fresh(&server).await;
        stays_clean_beside_writers(&database.url()).await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_name_that_is_too_long_to_be_divided_is_no_finding() {
    let database = SqliteFile::fresh().await;
    sound(&database.url()).await;
    let world = World::open(&database.url()).await;
    let object = serde_json::json!({"metadata": {"name": "long".repeat(65)}});
    let long = record("a/results/r/records/long", 53, &object);
    world.given([Change::InsertRecord(long)]).await;
    world.maintenance.close().await;
    assert_eq!(look(&database.url(), Depth::Full).await.0, []);
}

#[tokio::test]
async fn looking_changes_no_byte_of_a_file_even_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let url = format!("sqlite:{}", path.display());
    sound(&url).await;
    let before = std::fs::read(&path).unwrap();
    let rights = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), rights).unwrap();
    };
    for mode in [0o700, 0o500] {
        rights(mode);
        assert_eq!(look(&url, Depth::Full).await.0, []);
        assert!(std::fs::read(&path).unwrap() == before);
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["x.db"], "nothing was left beside it");
    }
    rights(0o700);
}
