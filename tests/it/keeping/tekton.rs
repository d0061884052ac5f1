//! `hindsight import tekton-results` from a database with the schema of Tekton Results, its quirks
//! included.

use hindsight_proto::v1alpha2 as pb;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::support::{
    Database, TestServer,
    database::postgres_or_skip,
    each_database,
    process::{Said, run},
};

const SCHEMA: &str = "
    CREATE TABLE results (
        parent varchar(64), id varchar(64), name varchar(64), annotations jsonb,
        created_time timestamptz DEFAULT now(), updated_time timestamptz DEFAULT now(),
        recordsummary_record varchar(256), recordsummary_type varchar(768),
        recordsummary_start_time timestamptz, recordsummary_end_time timestamptz,
        recordsummary_status integer, recordsummary_annotations jsonb, etag varchar(128),
        PRIMARY KEY (parent, id));
    CREATE UNIQUE INDEX results_by_name ON results (parent, name);
    CREATE TABLE records (
        parent varchar(64), result_id varchar(64), result_name varchar(64), id varchar(64),
        name varchar(64), type varchar(768), data jsonb,
        created_time timestamptz DEFAULT now(), updated_time timestamptz DEFAULT now(),
        etag varchar(128), PRIMARY KEY (parent, result_id, id),
        CONSTRAINT fk_records_result FOREIGN KEY (parent, result_id) REFERENCES results (parent, id)
            ON UPDATE CASCADE ON DELETE CASCADE);
    CREATE UNIQUE INDEX records_by_name ON records (parent, result_name, name);";

/// A result with a summary, one as upstream writes it without, and the odd ones.
const ROWS: &str = r#"
    INSERT INTO results VALUES
        ('ci', 'uid-1', 'build', '{"object.metadata.name": "build-1"}',
         '2026-01-02 03:04:05.123456+00', '2026-01-02 04:04:05.654321+00',
         'ci/results/build/records/run', 'tekton.dev/v1.PipelineRun',
         '2026-01-02 03:04:05+00', '2026-01-02 03:14:05+00', 1, '{"a": "b"}',
         'uid-1-1767326645654321987'),
        ('ci', 'uid-2', 'plain', 'null', '2026-02-01 00:00:00+00', '2026-02-01 00:00:00+00',
         '', '', NULL, NULL, 0, 'null', 'uid-2-1769904000000000000'),
        ('ci', 'uid-3', 'untimed', NULL, NULL, '2026-03-01 00:00:00+00',
         NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        ('ci', 'uid-4', 'nowhen', NULL, NULL, NULL, '', '', NULL, NULL, 0, NULL, ''),
        ('-', 'uid-5', '-', 'null', DEFAULT, DEFAULT, '', '', NULL, NULL, 0, 'null', 'e5'),
        ('ci', 'uid-6', 'summed', 'null', '2026-02-01 00:00:00+00', '2026-02-01 00:00:00+00',
         'not a name', 'x', NULL, NULL, 0, 'null', 'e6');
    INSERT INTO records VALUES
        ('ci', 'uid-1', 'build', 'uid-r1', 'run', 'tekton.dev/v1.PipelineRun',
         '{"kind": "PipelineRun", "metadata": {"name": "build-1", "labels": {"b": "1", "aa": "2"}},
           "n": 1e3}', '2026-01-02 03:04:06.5+00', '2026-01-02 04:04:06.25+00',
         'uid-r1-1767326646250000001'),
        ('ci', 'uid-1', 'build', 'uid-r2', 'log', 'results.tekton.dev/v1alpha3.Log',
         '{"kind": "Log"}', '2026-01-02 03:04:07+00', '2026-01-02 03:04:07+00', 'e-r2'),
        ('ci', 'uid-2', 'plain', 'uid-r3', 'empty', NULL, NULL,
         '2026-02-01 00:00:00+00', 'infinity', NULL),
        ('ci', 'uid-2', 'plain', 'uid-r4', 'null', 'x', 'null',
         '2026-02-01 00:00:00+00', '2026-02-01 00:00:00+00', 'e-r4'),
        ('ci', 'uid-2', 'renamed', 'uid-r5', 'lost', 'x', '1', DEFAULT, DEFAULT, 'e-r5'),
        ('ci', 'uid-4', 'nowhen', 'uid-r6', 'below', 'x', '1', DEFAULT, DEFAULT, 'e-r6'),
        ('-', 'uid-5', '-', 'uid-r7', 'x', 'x', '1', DEFAULT, DEFAULT, 'e-r7');"#;

async fn tekton() -> Option<Database> {
    let database = postgres_or_skip().await?;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql(SCHEMA)
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::raw_sql(ROWS).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    Some(database)
}

fn stamp(seconds: i64, nanos: i32) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp { seconds, nanos })
}

async fn everything(server: &TestServer) -> (Vec<pb::Result>, Vec<pb::Record>) {
    let mut rpc = server.rpc();
    let request = pb::ListResultsRequest {
        parent: "-".to_owned(),
        ..pb::ListResultsRequest::default()
    };
    let results = rpc.list_results(request).await.unwrap().into_inner();
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        ..pb::ListRecordsRequest::default()
    };
    let records = rpc.list_records(request).await.unwrap().into_inner();
    (results.results, records.records)
}

/// What cannot be taken, and what cannot be kept as it was, is said.
fn says_what_is_not_kept(said: &Said) {
    for line in [
        "results: 4 created, 0 updated, 0 unchanged, 2 refused",
        "records: 4 created, 0 updated, 0 unchanged, 3 refused",
        "verified: 8 rows are in the target with the same content",
    ] {
        assert!(said.out.contains(line), "{line}: {said:?}");
    }
    for line in [
        "refused ci/results/nowhen: it has neither `created_time` nor `updated_time`",
        "refused -/results/-: ",
        "refused ci/results/renamed/records/lost: it is shown below `renamed` and belongs to",
        "refused ci/results/nowhen/records/below: its result is not in the target",
        "refused -/results/-/records/x: ",
        "note ci/results/untimed: it has no `created_time` that can be kept",
        "note ci/results/plain/records/empty: it has no `updated_time` that can be kept",
        "note ci/results/summed: its summary was left out: ",
    ] {
        assert!(said.err.contains(line), "{line}: {said:?}");
    }
}

fn results_are_kept(results: &[pb::Result]) {
    let named = |name: &str| results.iter().find(|r| r.name == name).unwrap();
    let build = named("ci/results/build");
    assert_eq!(build.uid, "uid-1");
    assert_eq!(build.etag, "uid-1-1767326645654321987");
    assert_eq!(build.create_time, stamp(1_767_323_045, 123_456_000));
    assert_eq!(build.update_time, stamp(1_767_326_645, 654_321_000));
    assert_eq!(build.annotations["object.metadata.name"], "build-1");
    let summary = build.summary.as_ref().unwrap();
    assert_eq!(summary.record, "ci/results/build/records/run");
    assert_eq!(summary.end_time, stamp(1_767_323_645, 0));
    assert_eq!(
        (summary.status, summary.annotations["a"].as_str()),
        (1, "b")
    );
    assert!(named("ci/results/plain").summary.is_none());
    assert!(named("ci/results/summed").summary.is_none());
    let untimed = named("ci/results/untimed");
    assert_eq!(untimed.create_time, untimed.update_time);
    assert_eq!(untimed.etag, "uid-3-1772323200000000000");
}

fn records_are_kept(records: &[pb::Record]) {
    let named = |name: &str| {
        let record = records.iter().find(|r| r.name == name).unwrap();
        (record, record.data.clone().unwrap_or_default())
    };
    let (run_record, data) = named("ci/results/build/records/run");
    assert_eq!(run_record.etag, "uid-r1-1767326646250000001");
    assert_eq!(run_record.update_time, stamp(1_767_326_646, 250_000_000));
    assert_eq!(data.r#type, "tekton.dev/v1.PipelineRun");
    // As PostgreSQL writes it, which is what its API showed.
    let text = br#"{"n": 1000, "kind": "PipelineRun", "metadata": {"name": "build-1", "labels": {"b": "1", "aa": "2"}}}"#;
    assert_eq!(data.value, text.as_slice());
    assert!(named("ci/results/plain/records/empty").0.data.is_none());
    assert_eq!(
        named("ci/results/plain/records/null").1.value,
        b"null".as_slice()
    );
}

#[tokio::test]
async fn rows_keep_names_uids_etags_times_and_bytes_and_what_cannot_is_said() {
    for target in each_database().await {
        let Some(source) = tekton().await else { return };
        let arguments = [
            "import",
            "tekton-results",
            &source.url(),
            "--db",
            &target.url(),
        ];
        let said = run(&arguments).await;
        assert_eq!(said.code, 1, "some rows are refused: {said:?}");
        says_what_is_not_kept(&said);
        let server = TestServer::start(&target).await;
        let before = everything(&server).await;
        results_are_kept(&before.0);
        records_are_kept(&before.1);
        let filter = run(&[
            "list",
            "records",
            "-A",
            "--server",
            &server.url,
            "-o",
            "json",
            "--filter",
            "data.metadata.name == 'build-1'",
        ])
        .await;
        assert!(
            filter.out.contains("uid-r1"),
            "columns are filled: {filter:?}"
        );

        let said = run(&arguments).await;
        for line in [
            "results: 0 created, 0 updated, 4 unchanged, 2 refused",
            "records: 0 created, 0 updated, 4 unchanged, 3 refused",
        ] {
            assert!(said.out.contains(line), "{line}: {said:?}");
        }
        assert_eq!(
            everything(&server).await,
            before,
            "a second import changes nothing"
        );

        // Upstream goes on: one row changes, one comes.
        let mut connection = PgConnection::connect(&source.url()).await.unwrap();
        let more = r#"UPDATE records SET data = '{"n": 2}', updated_time = '2026-05-01', etag = 'e-2'
                      WHERE name = 'run';
                      INSERT INTO records VALUES ('ci', 'uid-2', 'plain', 'uid-r9', 'new', 'x', '2',
                      DEFAULT, DEFAULT, 'e-9')"#;
        connection.execute(sqlx::raw_sql(more)).await.unwrap();
        connection.close().await.unwrap();
        let said = run(&arguments).await;
        let line = "records: 1 created, 1 updated, 3 unchanged, 3 refused";
        assert!(said.out.contains(line), "{said:?}");
        let fsck = run(&["fsck", "--db", &target.url()]).await;
        assert_eq!(fsck.code, 0, "{fsck:?}");
        server.stop().await;
        target.remove().await;
        source.remove().await;
    }
}

#[tokio::test]
async fn a_database_that_is_not_of_tekton_results_is_refused_with_the_reason() {
    let Some(other) = Database::postgres().await else {
        return;
    };
    let target = Database::sqlite();
    let import = async || {
        let target = target.url();
        run(&["import", "tekton-results", &other.url(), "--db", &target]).await
    };
    let said = import().await;
    assert_eq!(said.code, 1, "{said:?}");
    let why = "this is no database of Tekton Results: it has no column `results.parent`";
    assert!(said.err.contains(why), "{said:?}");
    TestServer::start(&other).await.stop().await;
    let said = import().await;
    said.fails(1, "copy it with `hindsight copy`");
    other.remove().await;
}

/// What upstream stores of logs: a record that tells of one, and files.
const LOG_ROWS: &str = r#"
    INSERT INTO results (parent, id, name, updated_time) VALUES ('ci', 'uid-1', 'build', now());
    INSERT INTO records (parent, result_id, result_name, id, name, type, data) VALUES
        ('ci', 'uid-1', 'build', 'r1', 'run', 'tekton.dev/v1.TaskRun',
         '{"kind": "TaskRun", "metadata": {"name": "build-1", "uid": "run"}}'),
        ('ci', 'uid-1', 'build', 'r2', 'log', 'results.tekton.dev/v1alpha3.Log',
         '{"kind": "Log", "metadata": {"name": "build-1-log", "namespace": "ci", "uid": "log"},
           "spec": {"resource": {"uid": "run"}, "type": "File"},
           "status": {"path": "ci/log/build-1-log", "size": 7, "isStored": true}}'),
        ('ci', 'uid-1', 'build', 'r3', 'gone', 'results.tekton.dev/v1alpha2.Log',
         '{"kind": "Log", "metadata": {"name": "build-2-log"}, "spec": {"resource": {"uid": "run-2"}}}'),
        ('ci', 'uid-1', 'build', 'r4', 'sly', 'results.tekton.dev/v1alpha3.Log',
         '{"kind": "Log", "metadata": {"name": "sly-log"}, "spec": {"resource": {"uid": "run-3"}},
           "status": {"path": "../../secret"}}'),
        ('ci', 'uid-1', 'build', 'r5', 'slyer', 'results.tekton.dev/v1alpha3.Log',
         '{"kind": "Log", "metadata": {"name": "../../secret"},
           "spec": {"resource": {"uid": "run-4"}}}');"#;

/// The text of a log, as clients of Tekton Results read it.
async fn text_of(server: &TestServer, name: &str) -> Vec<u8> {
    let request = pb::GetLogRequest {
        name: name.to_owned(),
    };
    let channel = tonic::transport::Channel::from_shared(server.url.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut client = pb::logs_client::LogsClient::new(channel);
    let mut parts = client.get_log(request).await.unwrap().into_inner();
    let mut text = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        text.extend_from_slice(&part.data);
    }
    text
}

#[tokio::test]
async fn logs_of_files_become_uploaded_logs_with_their_bytes() {
    for target in each_database().await {
        let Some(source) = postgres_or_skip().await else {
            return;
        };
        let mut connection = PgConnection::connect(&source.url()).await.unwrap();
        for sql in [SCHEMA, LOG_ROWS] {
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("logs/ci/log");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        // More than is stored at once, bytes that are no text, and no end of a line.
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(place.join("build-1-log"), &bytes).unwrap();
        let url = format!("file://{}/logs", folder.path().display());
        let (from, to) = (source.url(), target.url());
        let base = [
            "import",
            "tekton-results",
            &from,
            "--db",
            &to,
            "--logs",
            &url,
        ];
        let import = async || run(&base).await;
        let said = import().await;
        assert_eq!(said.code, 1, "two are refused: {said:?}");
        let line = "logs: 1 created, 0 updated, 0 unchanged, 2 refused, 1 not there, \
                    0 with lines of containers; 5000000 bytes stored, 0 texts redacted";
        assert!(said.out.contains(line), "{said:?}");
        for line in [
            "refused the log of ci/results/build/records/sly: its `status.path` is not \
             `ci/sly/sly-log`",
            "refused the log of ci/results/build/records/slyer: its `metadata.name` is no name",
            "note the log of ci/results/build/records/gone: there is no `ci/gone/build-2-log` in",
        ] {
            assert!(said.err.contains(line), "{line}: {said:?}");
        }
        let server = TestServer::start(&target).await;
        let log = async |id: &str| text_of(&server, &format!("ci/results/build/logs/{id}")).await;
        for id in ["run", "log"] {
            assert!(log(id).await == bytes, "by {id}");
        }
        let said = import().await;
        let line = "logs: 0 created, 0 updated, 1 unchanged, 2 refused";
        assert!(said.out.contains(line), "{said:?}");
        std::fs::write(place.join("build-1-log"), "token=abc other\n").unwrap();
        let redacting = [&base[..], &["--logs-redact", r"token=\S+"]].concat();
        for line in [
            "logs: 0 created, 1 updated, 0 unchanged, 2 refused, 1 not there, \
             0 with lines of containers; 10 bytes stored, 1 texts redacted",
            "logs: 0 created, 0 updated, 1 unchanged, 2 refused",
        ] {
            let said = run(&redacting).await;
            assert!(said.out.contains(line), "{said:?}");
        }
        assert_eq!(log("run").await, b"*** other\n");
        server.stop().await;
        target.remove().await;
        source.remove().await;
    }
}
