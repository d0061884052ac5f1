//! Records made by the databases: ninety days, two hundred pipelines, fifty parents, eleven
//! tasks to a run.

use sqlx::AssertSqlSafe;

/// A number that looks random, from 0 to the second, for each row.
fn dice(salt: u64, below: u64) -> String {
    format!(
        "((i * {} + {salt}) % 1000003 % {below})",
        7919 + salt * 104_729
    )
}

/// The columns of a record, and what stands in them for row `i` of so many.
/// `json` makes an object of texts, and `bytes` an identifier of text.
fn columns(records: i64, json: &str, bytes: &str) -> (String, String) {
    let pipeline = dice(1, 200);
    let parent = dice(2, 50);
    let created = format!("(1767225600000000 + i * (7776000000000 / {records}))");
    let queue = format!("({} * 997)", dice(3, 30_000));
    let took = format!("({} * {} * 701)", dice(4, 1_000), dice(5, 900));
    let object = format!("'run-' || i || '-abcde-task-' || {}", dice(6, 12));
    let rows = [
        ("result_row", format!("{parent} + 1")),
        ("parent", format!("'ns-' || {parent}")),
        ("id", format!("('5c1d8f7e-0000-4000-8000-' || i){bytes}")),
        ("uid", format!("('9a8b7c6d-0000-4000-8000-' || i){bytes}")),
        (
            "etag",
            "'9a8b7c6d-0000-4000-8000-' || i || '-1767225600000000000'".to_owned(),
        ),
        ("create_us", created.clone()),
        ("update_us", created.clone()),
        (
            "data_type",
            "CASE i % 12 WHEN 0 THEN '\u{1}\u{11}' ELSE '\u{1}\u{10}' END".to_owned(),
        ),
        (
            "object_kind",
            "CASE i % 12 WHEN 0 THEN '\u{1}\u{1a}' ELSE '\u{1}\u{19}' END".to_owned(),
        ),
        ("object_name", object),
        ("object_namespace", "'\u{1}'".to_owned()),
        (
            "object_uid",
            format!("('5c1d8f7e-0000-4000-8000-' || i){bytes}"),
        ),
        (
            "object_reason",
            format!(
                "CASE {} WHEN 0 THEN '\u{1}S' ELSE '\u{1}Q' END",
                dice(7, 10)
            ),
        ),
        ("object_creation_us", created.clone()),
        ("object_start_us", format!("{created} + {queue}")),
        (
            "object_completion_us",
            format!("{created} + {queue} + {took}"),
        ),
        (
            "labels",
            format!(
                "{json}('app.kubernetes.io/managed-by', 'tekton-pipelines', 'tekton.dev/pipeline', \
                 'pipeline-' || {pipeline}, 'tekton.dev/pipelineRun', 'run-' || i / 12, \
                 'tekton.dev/pipelineTask', 'task-' || i % 12, 'team', 'team-' || {})",
                dice(8, 20)
            ),
        ),
        (
            "run_outcome",
            format!("CASE {} WHEN 0 THEN 2 ELSE 1 END", dice(7, 10)),
        ),
        ("run_pipeline", format!("'pipeline-' || {pipeline}")),
    ];
    let names: Vec<_> = rows.iter().map(|row| row.0).collect();
    let values: Vec<_> = rows.iter().map(|row| row.1.as_str()).collect();
    (names.join(", "), values.join(", "))
}

const RESULT: &str = "INSERT INTO results (parent, id, uid, etag, create_us, update_us, annotations) \
     SELECT 'ns-' || (i - 1), '0b9f3a52-7c1e-4c60-9d75-0123456789ab', 'u' || i, 'e', 0, 0, '{}' FROM";

pub(crate) fn sqlite(records: i64) -> Vec<AssertSqlSafe<String>> {
    let numbers = |most: i64| {
        format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) "
        )
    };
    let (names, values) = columns(records, "json_object", "");
    [
        format!("{}{RESULT} n", numbers(50)),
        format!(
            "{}INSERT INTO records ({names}) SELECT {values} FROM n",
            numbers(records)
        ),
        "PRAGMA wal_checkpoint(TRUNCATE)".to_owned(),
    ]
    .map(AssertSqlSafe)
    .into()
}

/// What fills PostgreSQL, and a plain table beside.
pub(crate) fn postgres(records: i64) -> Vec<AssertSqlSafe<String>> {
    let (names, values) = columns(records, "jsonb_build_object", "::bytea");
    let result = RESULT
        .replace("'{}'", "'{}'::jsonb")
        .replace("ab', 'u' || i", "ab'::bytea, ('u' || i)::bytea");
    [
        format!("{result} generate_series(1, 50) AS i"),
        format!(
            "INSERT INTO records ({names}) SELECT {values} FROM generate_series(1, {records}::bigint) AS i"
        ),
        "CREATE TABLE plain AS SELECT jsonb_build_object('kind', object_kind, 'metadata', \
         jsonb_build_object('name', object_name, 'namespace', object_namespace, 'labels', labels, \
         'creationTimestamp', to_timestamp(object_creation_us / 1e6)), 'status', \
         jsonb_build_object('startTime', to_timestamp(object_start_us / 1e6), 'completionTime', \
         to_timestamp(object_completion_us / 1e6), 'conditions', \
         jsonb_build_array(jsonb_build_object('type', 'Succeeded', 'reason', object_reason)))) AS data \
         FROM records"
            .to_owned(),
        "VACUUM ANALYZE".to_owned(),
    ]
    .map(AssertSqlSafe)
    .into()
}

/// The first question, of the plain table.
pub(crate) const PLAIN: &str = "SELECT date_trunc('day', (data -> 'metadata' ->> 'creationTimestamp')::timestamptz), count(*), \
     count(*) FILTER (WHERE data -> 'status' -> 'conditions' -> 0 ->> 'reason' = 'Succeeded'), \
     avg((data -> 'status' ->> 'completionTime')::timestamptz - (data -> 'status' ->> 'startTime')::timestamptz) \
     FROM plain GROUP BY 1";
