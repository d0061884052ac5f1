//! Fills a database with pipelines by its own statements: through the API it would take hours.

use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

/// When the first pipeline was made; each is a second younger.
pub(crate) const FIRST_SECOND: i64 = 1_700_000_000;

const SPEC: &str = r#"{"components":{"comp-say":{"executorLabel":"exec-say"}},"deploymentSpec":{"executors":{"exec-say":{"container":{"command":["echo","hello"],"image":"python:3.11"}}}},"pipelineInfo":{"name":"hello"},"root":{"dag":{"tasks":{"say":{"cachingOptions":{"enableCache":true},"componentRef":{"name":"comp-say"},"taskInfo":{"name":"say"}}}}},"schemaVersion":"2.1.0","sdkVersion":"kfp-2.17.0"}"#;

/// The id of the pipeline with this number.
pub(crate) fn pipeline_id(number: u64) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

const PIPELINES: &str = "INSERT INTO pipelines (id, namespace, name, display_name, description, tags, create_s, bytes) \
     SELECT HEX || '-0000-4000-8000-000000000000', '', 'pipeline-' || i, 'Pipeline ' || i, \
     'It does what number ' || i || ' does.', '{\"team\":\"t' || (i % 100) || '\"}', FIRST + i, 100 FROM SERIES";

const TAGS: &str = "INSERT INTO pipeline_tags (key, value, pipeline_row) \
     SELECT 'team', 't' || (substr(name, 10) % 100), row_id FROM pipelines";

const TAGS_POSTGRES: &str = "INSERT INTO pipeline_tags (key, value, pipeline_row) \
     SELECT 'team', 't' || (substr(name, 10)::bigint % 100), row_id FROM pipelines";

const VERSIONS: &str = "INSERT INTO pipeline_versions (pipeline_row, id, name, display_name, description, tags, create_s, bytes, \
     package_url, code_source_url, spec) SELECT row_id, substr(id, 1, 35) || i, 'v' || i, 'Version ' || i, '', '{}', \
     create_s + i, 700, '', '', 'SPEC' FROM pipelines, SERIES";

pub(crate) async fn fill(url: &str, size: u64) {
    let first = FIRST_SECOND.to_string();
    if url.starts_with("sqlite") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        let series = |count: u64| {
            format!(
                "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count}) SELECT i FROM n)"
            )
        };
        let pipelines = PIPELINES
            .replace("HEX", "printf('%08x', i)")
            .replace("FIRST", &first)
            .replace("SERIES", &series(size));
        let versions = VERSIONS
            .replace("SERIES", &series(10))
            .replace("SPEC", SPEC);
        for statement in [pipelines, TAGS.to_owned(), versions, "ANALYZE".to_owned()] {
            let statement = sqlx::AssertSqlSafe(statement);
            connection.execute(statement).await.unwrap();
        }
        connection.close().await.unwrap();
        return;
    }
    let mut connection = PgConnection::connect(url).await.unwrap();
    let series = |count: u64| format!("generate_series(0, {}) AS i", count - 1);
    // Counted here: triggers that count a million versions in one transaction leave ten dead copies of each pipeline, which
    // cannot be pruned as between the transactions of a server.
    let pipelines = PIPELINES
        .replace("create_s, bytes)", "create_s, bytes, versions, revision)")
        .replace("100 FROM", "100, 10, 10 FROM")
        .replace("HEX", "lpad(to_hex(i), 8, '0')")
        .replace("FIRST", &first)
        .replace("SERIES", &series(size));
    let versions = VERSIONS
        .replace("SERIES", &series(10))
        .replace("SPEC", SPEC);
    let uncounted = "ALTER TABLE pipeline_versions DISABLE TRIGGER USER".to_owned();
    let counted = "ALTER TABLE pipeline_versions ENABLE TRIGGER USER".to_owned();
    for statement in [
        pipelines,
        TAGS_POSTGRES.to_owned(),
        uncounted,
        versions,
        counted,
    ] {
        connection
            .execute(sqlx::AssertSqlSafe(statement))
            .await
            .unwrap();
    }
    let vacuum = "VACUUM ANALYZE pipelines, pipeline_names, pipeline_tags, pipeline_versions";
    connection.execute(vacuum).await.unwrap();
    // What was written is on disk before lists are asked for.
    connection.execute("CHECKPOINT").await.unwrap();
    connection.close().await.unwrap();
}
