//! Big payloads outside the database: in a directory, and in a bucket that speaks the API of S3.

use std::collections::BTreeMap;

use hindsight::config::{Config, Sources};
use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use crate::support::{
    Database, TestServer,
    database::each_database,
    http::Http,
    objects::TASK_RUN,
    process::{Said, hindsight, run},
    s3::Bucket,
    server::{config, refused},
};

const NAME: &str = "ci/results/r/records/big";

/// Bytes that compress to no less than a quarter.
pub(crate) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

async fn listed(server: &TestServer) -> Vec<pb::Record> {
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 100,
        ..pb::ListRecordsRequest::default()
    };
    let reply = server.rpc().list_records(request).await.unwrap();
    reply.into_inner().records
}

pub(crate) fn files(folder: &std::path::Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        count += match path.is_dir() {
            true => files(&path),
            false => usize::from(path.file_name().unwrap() != "database"),
        };
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_of_25_mib_lies_in_a_directory_and_comes_back() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/objects", folder.path().display());
        let more = [("objects_url", url.as_str())];
        let server = TestServer::start_with(&database, &more).await;
        let big = noise(25 << 20);
        server.given_record(NAME, "logs", &big).await;
        let small = "ci/results/r/records/small";
        server.given_record(small, TASK_RUN, b"{}").await;
        assert_eq!(files(folder.path()), 1, "the small one is in the database");
        let read = server.get_record(NAME).await.unwrap();
        assert!(read.data.unwrap().value == big, "the bytes differ");
        let page = listed(&server).await;
        assert!(
            page.iter()
                .any(|record| record.name == NAME && record.data.as_ref().unwrap().value == big)
        );
        server.stop().await;

        let plain = config(&database, &[]);
        let clock = std::sync::Arc::new(hindsight_runtime::clock::SystemClock);
        let why = hindsight::app::App::bind(&plain, clock).await.unwrap_err();
        let why = hindsight_runtime::error::report(&why);
        assert!(
            why.contains("keeps 1 objects") && why.contains("set objects_url"),
            "{why}"
        );

        let db = database.url();
        let said = run(&["migrate", "--db", &db]).await;
        assert_eq!(said.code, 0, "migrating reads no payload: {said:?}");
        let blind = run(&["fsck", "--db", &db]).await;
        blind.fails(1, "objects-url");
        let said = run(&["fsck", "--db", &db, "--objects-url", &url]).await;
        said.prints(0, "1 payloads of");
        database.remove().await;
    }
}

pub(crate) fn cloud(bucket: &Bucket) -> BTreeMap<String, String> {
    let env = bucket.env();
    env.map(|(name, value)| (name.to_owned(), value)).into()
}

pub(crate) fn in_bucket(database: &Database, env: BTreeMap<String, String>) -> Config {
    let flags = [
        ("db", database.url()),
        ("listen", "127.0.0.1:0".to_owned()),
        ("metrics_listen", "127.0.0.1:0".to_owned()),
        ("objects_url", "s3://bucket/some/prefix".to_owned()),
        ("objects_above", "100KiB".to_owned()),
        ("objects_log_above", "1KiB".to_owned()),
    ];
    Config::load(&Sources {
        flags: flags.map(|(key, value)| (key.to_owned(), value)).into(),
        env,
        ..Sources::default()
    })
    .unwrap()
}

async fn fsck(database: &Database, bucket: &Bucket, more: &[&str]) -> Said {
    let mut command = hindsight();
    command.args(["fsck", "--db", &database.url()]).args(more);
    command.args(["--objects-url", "s3://bucket/some/prefix"]);
    command.envs(cloud(bucket));
    tokio::task::spawn_blocking(move || command.output().unwrap().into())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_lie_in_what_speaks_the_api_of_s3() {
    let (database, bucket) = (Database::sqlite(), Bucket::start().await);
    let server = TestServer::start_as(&in_bucket(&database, cloud(&bucket))).await;
    let big = noise(25 << 20);
    server.given_record(NAME, "logs", &big).await;
    let other = "ci/results/r/records/other";
    server.given_record(other, "logs", &big[..1 << 20]).await;
    let read = server.get_record(NAME).await.unwrap();
    assert!(read.data.unwrap().value == big, "the bytes differ");
    assert_eq!(listed(&server).await.len(), 2);
    let objects: Vec<_> = bucket.list();
    assert_eq!(objects.len(), 3, "two and the mark: {objects:?}");
    assert!(
        objects
            .iter()
            .all(|(name, _)| name.starts_with("some/prefix/"))
    );
    let mut admin = Http::one(&format!("http://{}", server.admin)).await;
    let page = admin.send("GET", "/metrics", &[], "").await.text();
    for line in [
        "hindsight_objects_total{operation=\"write\"} 2",
        "hindsight_objects_failed_total{operation=\"read\"} 0",
        "hindsight_object_bytes_total{operation=\"write\"}",
        "hindsight_objects_there{state=\"held\"}",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    let said = fsck(&database, &bucket, &[]).await;
    said.prints(0, "2 payloads of");
    // A stranger is found, being from January, and removed.
    let (folder, _) = objects[0].0.rsplit_once('/').unwrap();
    let folder = folder.split('/').take(3).collect::<Vec<_>>().join("/");
    let stranger = format!("{folder}/00/00000000000000000000000000000000");
    bucket.put(&stranger, "stranger".into());
    let said = fsck(&database, &bucket, &["--quick"]).await;
    said.prints(6, "object-orphan");
    let said = fsck(&database, &bucket, &["--remove-orphans"]).await;
    said.prints(0, "1 objects of 8 bytes were removed");
    assert_eq!(bucket.list(), objects);

    let is_big = |(_, size): &&(String, usize)| *size > 10 << 20;
    let lost = objects.iter().find(is_big).unwrap().0.clone();
    let bytes = bucket.lose(&lost);
    refused(
        server.get_record(NAME).await,
        Code::DataLoss,
        &format!("s3://bucket/{lost}"),
    );
    bucket.put(&lost, bytes);
    server.delete_record(NAME).await.unwrap();
    assert_eq!(bucket.list().len(), 3, "it stays a while");
    bucket.go_away();
    refused(
        server.get_record(other).await,
        Code::Unavailable,
        "the object store is not available",
    );
    server
        .given_record("ci/results/r/records/small", TASK_RUN, b"{}")
        .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_refuses_is_told_at_the_start() {
    let (database, bucket) = (Database::sqlite(), Bucket::start().await);
    let mut env = cloud(&bucket);
    env.insert("AWS_ACCESS_KEY_ID".to_owned(), "stranger".to_owned());
    let clock = std::sync::Arc::new(hindsight_runtime::clock::SystemClock);
    let config = in_bucket(&database, env);
    let why = hindsight::app::App::bind(&config, clock).await.unwrap_err();
    let why = hindsight_runtime::error::report(&why);
    assert!(
        why.contains("the object store `s3://bucket/some/prefix` cannot be used"),
        "{why}"
    );
    assert!(
        why.contains("check objects_url and the credentials"),
        "{why}"
    );
    assert!(!why.contains("secret"), "{why}");
    bucket.go_away();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_tells_of_payloads_outside_and_keeps_indexes() {
    let database = Database::sqlite();
    let folder = tempfile::tempdir().unwrap();
    let objects = format!("file://{}/objects", folder.path().display());
    let more = [("objects_url", objects.as_str()), ("objects_above", "1KiB")];
    let server = TestServer::start_with(&database, &more).await;
    server.given_record(NAME, "logs", &noise(5000)).await;
    for (id, env) in ["prod", "test", "prod"].iter().enumerate() {
        let text = format!(r#"{{"spec":{{"params":[{{"name":"env","value":"{env}"}}]}}}}"#);
        let name = format!("ci/results/r/records/{id}");
        server.given_record(&name, TASK_RUN, text.as_bytes()).await;
    }
    let db = database.url();
    let path = "data.spec.params[name==\"env\"].value";
    let said = run(&["index", "add", path, "--db", &db, "--objects-url", &objects]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let asked = "data.spec.params.exists(p, p.name == 'env' && p.value == 'prod')";
    let before = server.ids("ci/results/-", asked).await.unwrap();
    assert_eq!(before.len(), 2);
    let to = folder.path().join("copy.db");
    let said = run(&["backup", "--db", &db, "--to", &to.display().to_string()]).await;
    said.prints(0, "1 payloads (5000 bytes) lie in the object store");
    assert!(said.out.contains("they stay there for 7d"), "{said:?}");
    // Into another object store, and, without one, into the database itself.
    let other = format!("file://{}/other", folder.path().display());
    let copy = format!("sqlite:{}", folder.path().join("other.db").display());
    let from = ["copy", "--from", &db, "--to", &copy];
    let blind = run(&from).await;
    blind.fails(1, "keeps 1 objects");
    let places = ["--from-objects", &objects, "--to-objects", &other];
    let above = ["--objects-above", "1KiB"];
    let said = run(&[&from[..], &places, &above].concat()).await;
    said.prints(0, "verified: 5 rows");
    assert_eq!(files(&folder.path().join("other")), 1);
    let said = run(&["fsck", "--db", &copy, "--objects-url", &other]).await;
    assert_eq!(said.code, 0, "{said:?}");

    // After the backup: the object of what is deleted is still there.
    server.delete_record(NAME).await.unwrap();
    server.stop().await;

    let restored = Database::sqlite();
    let (db, to) = (restored.url(), to.display().to_string());
    let said = run(&["restore", "--from", &to, "--db", &db]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let said = run(&["index", "list", "--db", &db, "--objects-url", &objects]).await;
    said.prints(0, "env");
    let said = run(&["fsck", "--db", &db, "--objects-url", &objects]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let server = TestServer::start_with(&restored, &more).await;
    assert_eq!(server.ids("ci/results/-", asked).await.unwrap(), before);
    let read = server.get_record(NAME).await.unwrap();
    assert!(read.data.unwrap().value == noise(5000));
    server.stop().await;
}
