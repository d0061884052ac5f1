//! Logs in objects: of a directory, and of a bucket that speaks the API of S3.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use hindsight::config::{Config, Sources};
use md5::{Digest as _, Md5};
use serde_json::json;
use tonic::Code;

use super::{describe, given, task_run};
use crate::{
    logs::{get_log, read, whole},
    support::{
        Database, TestServer,
        s3::{ACCESS_KEY, Bucket},
        server::refused,
    },
};

/// A directory of logs, and a server that reads it.
struct Scene {
    folder: tempfile::TempDir,
    server: TestServer,
    /// Removed after the server.
    _database: Database,
}

impl Scene {
    async fn start(more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        let url = format!("file://{}/logs", folder.path().display());
        let all = [&[("logs_objects_url", url.as_str())], more].concat();
        let database = Database::sqlite();
        let server = TestServer::start_with(&database, &all).await;
        Self {
            folder,
            server,
            _database: database,
        }
    }

    fn put(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("logs").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn age(path: &Path, seconds: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

/// The name that upstream gives to the record of a log.
fn log_id(result_uid: &str, uid: &str) -> String {
    let mut md5 = Md5::new();
    md5.update(uuid::Uuid::try_parse(result_uid).unwrap().as_bytes());
    md5.update(uid.as_bytes());
    let digest: [u8; 16] = md5.finalize().into();
    uuid::Builder::from_md5_bytes(digest)
        .into_uuid()
        .to_string()
}

#[tokio::test]
async fn objects_below_the_folder_of_a_run_are_its_containers() {
    let scene = Scene::start(&[]).await;
    let server = &scene.server;
    let log = given(server, "ci", &task_run("u-1", "build")).await;
    scene.put("ci/r/u-1/step-two.log", b"two\n");
    let second = scene.put("ci/r/u-1/step-one-1743932299.log", b"ond\nthird");
    let first = scene.put("ci/r/u-1/step-one-1743932245.log.gz", &gzip(b"first\nsec"));
    age(&first, 1_743_932_250);
    age(&second, 1_743_932_300);
    scene.put("ci/r/u-10/step-one.log", b"of another run\n");
    let (text, _) = get_log(server, &log).await.unwrap();
    let expected = "[one] first\n[one] second\n[one] third\n\n[two] two\n\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let found = describe(server, &log).await.unwrap();
    assert_eq!(
        found.containers[0].first_time.unwrap().seconds,
        1_743_932_250
    );
    let absent = given(server, "ci", &task_run("u-2", "build")).await;
    refused(
        get_log(server, &absent).await,
        Code::NotFound,
        "does not exist",
    );
    assert_eq!(read(server, whole(&absent)).await.unwrap().0, b"");
    scene.server.stop().await;
}

#[tokio::test]
async fn a_file_that_tekton_results_wrote_comes_byte_for_byte() {
    let scene = Scene::start(&[]).await;
    let server = &scene.server;
    let log = given(server, "ci", &task_run("u-1", "build")).await;
    let result = server.get_result("ci/results/r").await.unwrap();
    let id = log_id(&result.uid, "u-1");
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    scene.put(&format!("ci/{id}/build-log"), &bytes);
    let (text, _) = get_log(server, &log).await.unwrap();
    assert!(text == bytes, "{} bytes", text.len());
    // By the record that tells of the log, too.
    let object = json!({
        "kind": "Log", "spec": {"resource": {"uid": "u-1"}, "type": "File"},
        "status": {"path": "../../../../etc/passwd", "size": 7, "isStored": true},
    });
    let record = format!("ci/results/r/records/{id}");
    let data_type = "results.tekton.dev/v1alpha3.Log";
    server
        .given_record(&record, data_type, object.to_string().as_bytes())
        .await;
    let (text, _) = get_log(server, &format!("ci/results/r/logs/{id}"))
        .await
        .unwrap();
    assert!(text == bytes);
    scene.server.stop().await;
}

#[tokio::test]
async fn lines_of_json_have_their_containers_and_times() {
    let scene = Scene::start(&[("logs_objects_format", "json")]).await;
    let log = given(&scene.server, "ci", &task_run("u-1", "build")).await;
    let vector = json!({"message": "from vector", "timestamp": "2026-03-02T09:00:01.5Z",
        "kubernetes": {"pod_name": "pod", "container_name": "step-two"}});
    let fluent = json!({"log": "from fluent bit\n", "date": 1_772_442_002.25,
        "kubernetes": {"pod_name": "pod", "container_name": "step-one"}});
    // Collectors append members and frames to each other.
    let parts = [format!("{vector}\n"), format!("{fluent}\nno json\n")];
    let packed = parts.map(|part| zstd::encode_all(part.as_bytes(), 3).unwrap());
    scene.put("ci/r/u-1/1743932245-chunk.json.zst", &packed.concat());
    let found = describe(&scene.server, &log).await.unwrap();
    let told: Vec<_> = found
        .containers
        .iter()
        .map(|it| {
            let source = it.source.clone().unwrap();
            (source.pod, source.container, it.first_time.unwrap().nanos)
        })
        .collect();
    assert_eq!(
        told[..2],
        [
            ("pod".to_owned(), "step-one".to_owned(), 250_000_000),
            ("pod".to_owned(), "step-two".to_owned(), 500_000_000),
        ]
    );
    let (text, _) = read(&scene.server, whole(&log)).await.unwrap();
    assert_eq!(text, b"from fluent bit\nfrom vector\nno json\n");
    scene.server.stop().await;
}

#[tokio::test]
async fn an_object_of_zstd_is_read_and_one_that_is_cut_or_wide_is_not() {
    let scene = Scene::start(&[]).await;
    let server = &scene.server;
    // Larger than a block, and than what is unpacked at once.
    let text: String = (0..60_000).map(|at| format!("line {at}\n")).collect();
    let log = given(server, "ci", &task_run("u-1", "build")).await;
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    scene.put("ci/r/u-1/step-one.log.zst", &packed);
    let (read, _) = get_log(server, &log).await.unwrap();
    let lines = String::from_utf8(read).unwrap().replace("[one] ", "");
    assert_eq!(lines.trim_end(), text.trim_end());
    let cut = given(server, "ci", &task_run("u-2", "build")).await;
    scene.put("ci/r/u-2/step-one.log.zst", &packed[..packed.len() - 9]);
    refused(
        get_log(server, &cut).await,
        Code::Unavailable,
        "does not unpack",
    );
    // Its frame would have the server hold 128 MiB.
    let wide = given(server, "ci", &task_run("u-3", "build")).await;
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(b"wide\n").unwrap();
    scene.put("ci/r/u-3/step-one.log.zst", &encoder.finish().unwrap());
    refused(
        get_log(server, &wide).await,
        Code::Unavailable,
        "does not unpack",
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn names_that_clients_write_lead_nowhere_outside() {
    let paths = "${parent}/${uid}/${name} ${parent}/${result}/${record}/";
    let scene = Scene::start(&[("logs_objects_paths", paths)]).await;
    let server = &scene.server;
    std::fs::write(scene.folder.path().join("secret"), "secret\n").unwrap();
    scene.put("other/r/u/step.log", b"of another parent\n");
    for (at, (uid, name)) in [
        ("..", "secret"),
        ("../..", "secret"),
        ("..", "other/r/u/step.log"),
        ("%2e%2e", "secret"),
        ("x", "../../secret"),
        ("../other/r/u", "step.log"),
    ]
    .iter()
    .enumerate()
    {
        let mut object = task_run("plain", name);
        object["metadata"]["uid"] = json!(uid);
        object["status"]["path"] = json!("../../secret");
        let record = format!("ci/results/r/records/run-{at}");
        let value = object.to_string();
        server
            .given_record(&record, "tekton.dev/v1.TaskRun", value.as_bytes())
            .await;
        let log = format!("ci/results/r/logs/run-{at}");
        refused(
            get_log(server, &log).await,
            Code::NotFound,
            "does not exist",
        );
    }
    scene.server.stop().await;
}

#[tokio::test]
async fn what_does_not_unpack_or_is_too_long_says_so() {
    let scene = Scene::start(&[("logs_home_bytes", "1MiB")]).await;
    let server = &scene.server;
    let whole_gzip = gzip(&b"text of a build\n".repeat(10_000));
    let cut = &whole_gzip[..whole_gzip.len() / 2];
    scene.put("ci/r/u-1/step-one.log.gz", cut);
    let log = given(server, "ci", &task_run("u-1", "build")).await;
    let call = get_log(server, &log).await;
    refused(
        call.clone(),
        Code::Unavailable,
        "the object store at file://",
    );
    refused(call, Code::Unavailable, "does not unpack");
    scene.put("ci/r/u-2/step-one.log.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0]);
    let log = given(server, "ci", &task_run("u-2", "build")).await;
    refused(
        get_log(server, &log).await,
        Code::Unavailable,
        "does not unpack",
    );
    // 64 MiB of one letter are 64 KiB of gzip, and 4 KiB of zstd.
    let letters = vec![b'a'; 64 << 20];
    let gzip = gzip(&letters);
    let zstd = zstd::encode_all(&letters[..], 3).unwrap();
    for (uid, name, bomb) in [("u-3", "one.log.gz", gzip), ("u-4", "one.log.zst", zstd)] {
        scene.put(&format!("ci/r/{uid}/{name}"), &bomb);
        let log = given(server, "ci", &task_run(uid, "build")).await;
        let (text, _) = get_log(server, &log).await.unwrap();
        assert!(text.len() < (1 << 20) + 1_000, "{} bytes", text.len());
        let end = String::from_utf8_lossy(&text[text.len() - 200..]).into_owned();
        assert!(end.contains("has more of this log"), "{end}");
    }
    scene.server.stop().await;
}

/// A server whose logs lie in a bucket.
fn of_bucket(database: &Database, bucket: &Bucket, key: &str) -> Config {
    let flags = [
        ("db", database.url()),
        ("listen", "127.0.0.1:0".to_owned()),
        ("metrics_listen", "127.0.0.1:0".to_owned()),
        ("logs_objects_url", "s3://bucket/logs".to_owned()),
        ("logs_home_timeout", "5s".to_owned()),
    ];
    let env = [
        ("AWS_ENDPOINT", bucket.endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "eu-1"),
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", "hidden"),
    ];
    Config::load(&Sources {
        flags: flags.map(|(key, value)| (key.to_owned(), value)).into(),
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..Sources::default()
    })
    .unwrap()
}

#[tokio::test]
async fn a_bucket_is_read_and_one_that_refuses_is_named_without_its_key() {
    let (database, bucket) = (Database::sqlite(), Bucket::start().await);
    bucket.put("logs/ci/r/u-1/step-one.log", "of the bucket\n".into());
    let server = TestServer::start_as(&of_bucket(&database, &bucket, ACCESS_KEY)).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    let (text, _) = get_log(&server, &log).await.unwrap();
    assert_eq!(text, b"[one] of the bucket\n\n");
    bucket.go_away();
    let other = given(&server, "ci", &task_run("u-2", "build")).await;
    let call = get_log(&server, &other).await;
    refused(
        call,
        Code::Unavailable,
        "the object store at s3://bucket/logs does not give it",
    );
    server.stop().await;

    let (database, bucket) = (Database::sqlite(), Bucket::start().await);
    let server = TestServer::start_as(&of_bucket(&database, &bucket, "wrong-key")).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    let call = get_log(&server, &log).await;
    let said = format!("{call:?}");
    assert!(
        !said.contains("hidden") && !said.contains("wrong-key"),
        "{said}"
    );
    refused(
        call,
        Code::Unavailable,
        "the object store at s3://bucket/logs",
    );
    server.stop().await;
}
