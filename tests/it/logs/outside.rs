//! Parts of sealed logs in an object store: in a directory, and in a bucket that goes away.

use std::time::Duration;

use tonic::Code;

use super::{append, get_log, message, read, seal, whole};
use crate::{
    outside::{cloud, files, in_bucket, noise},
    support::{
        Database, TestServer,
        database::each_database,
        s3::Bucket,
        server::{config, refused},
    },
};

const NAME: &str = "ci/results/r/logs/run";

/// A text of 9 MiB, three parts, of lines that compress little.
fn text() -> Vec<u8> {
    let mut text = noise(9 << 20);
    for (at, byte) in text.iter_mut().enumerate() {
        *byte = if at % 100 == 99 {
            b'\n'
        } else {
            *byte % 64 + b' '
        };
    }
    text
}

/// Appends a log of that text and seals it.
async fn given_sealed(server: &TestServer, name: &str) {
    let mut first = 0;
    for part in text().chunks(1_000_000) {
        let message = message(name, "step", first, part);
        first += i64::try_from(message.lines.as_ref().unwrap().times.len()).unwrap();
        append(server, vec![message]).await.unwrap();
    }
    append(server, vec![seal(name, "step")]).await.unwrap();
}

async fn until(mut holds: impl FnMut() -> bool) {
    let patience = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(2), patience).await;
    waited.expect("it comes true in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sealed_log_lies_in_a_directory_and_comes_back() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/objects", folder.path().display());
        let more = [("objects_url", url.as_str())];
        let server = TestServer::start_with(&database, &more).await;
        append(&server, vec![message(NAME, "open", 0, b"one\n")])
            .await
            .unwrap();
        given_sealed(&server, NAME).await;
        until(|| files(folder.path()) >= 3).await;
        let (found, _) = read(&server, whole(NAME)).await.unwrap();
        assert!(found.ends_with(&text()) || found.starts_with(&text()));
        server.stop().await;
        let plain = config(&database, &[]);
        let clock = std::sync::Arc::new(hindsight_runtime::clock::SystemClock);
        let why = hindsight::app::App::bind(&plain, clock).await.unwrap_err();
        let why = hindsight_runtime::error::report(&why);
        assert!(why.contains("set objects_url"), "{why}");
        let server = TestServer::start_with(&database, &more).await;
        let (found, numbers) = read(&server, whole(NAME)).await.unwrap();
        assert_eq!(found.len(), text().len() + 4);
        assert_eq!(numbers.len(), text().len().div_ceil(100) + 1);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_bucket_is_gone_lines_are_taken_and_what_lies_there_is_unavailable() {
    let (database, bucket) = (Database::sqlite(), Bucket::start().await);
    let server = TestServer::start_as(&in_bucket(&database, cloud(&bucket))).await;
    given_sealed(&server, NAME).await;
    // Three parts and the mark.
    until(|| bucket.list().len() >= 4).await;
    let (found, _) = read(&server, whole(NAME)).await.unwrap();
    assert!(found == text(), "the text differs");

    bucket.go_away();
    refused(
        read(&server, whole(NAME)).await,
        Code::Unavailable,
        "the object store",
    );
    refused(
        get_log(&server, NAME).await,
        Code::Unavailable,
        "the object store",
    );
    // What is repeated is not compared with what lies there.
    given_sealed(&server, NAME).await;
    let other = "ci/results/r/logs/other";
    given_sealed(&server, other).await;
    let (found, _) = read(&server, whole(other)).await.unwrap();
    assert!(found == text(), "the text differs");

    bucket.come_back();
    until(|| bucket.list().len() >= 7).await;
    for name in [NAME, other] {
        let (found, _) = read(&server, whole(name)).await.unwrap();
        assert!(found == text(), "the text differs");
    }
    server.stop().await;
}
