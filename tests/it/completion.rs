//! What shells complete, with a server and without one.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::{Said, run},
};

/// A busy machine may take longer than a person waits, which is not what these tests are about.
const PATIENT: &str = "--patience=60000";

/// A server with two runs, one of which has a name that no shell takes as it is.
async fn given() -> (Database, TestServer) {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for (id, name) in [("a", "build-1"), ("b", "build-2;reboot")] {
        let mut object = task_run(name, "Failed");
        object["metadata"]["labels"]["example.dev/owner"] = json!(id);
        let record = format!("ci/results/r/records/{id}");
        server
            .given_record(&record, TASK_RUN, &bytes(&object))
            .await;
    }
    (database, server)
}

async fn completed(server: &TestServer, words: &[&str]) -> Said {
    let (command, words) = words.split_first().unwrap();
    let first = [
        "__complete",
        PATIENT,
        "--",
        command,
        "--server",
        &server.url,
    ];
    run(&[&first[..], words].concat()).await
}

#[tokio::test]
async fn words_go_on_with_what_the_server_has() {
    let (_database, server) = given().await;
    for (words, found) in [
        (&["why", "-n", "ci", "bu"][..], "build-1\n"),
        (&["describe", "ci/b"], "ci/build-1\n"),
        (&["runs", "-A", "pipeline:n"], "pipeline:nightly\n"),
        (&["runs", "-A", "label:ex"], "label:example.dev/owner=\n"),
        (
            &["runs", "-A", "label:example.dev/owner="],
            "label:example.dev/owner=b\nlabel:example.dev/owner=a\n",
        ),
        (
            &["list", "runs", "-A", "-l", "te"],
            "team=\ntekton.dev/pipeline=\n",
        ),
    ] {
        let said = completed(&server, words).await;
        assert_eq!((said.out.as_str(), said.code), (found, 0), "{words:?}");
        assert_eq!(said.err, "", "{words:?}");
    }
    // Bash takes apart words at colons and equals signs.
    let line = format!("hindsight runs --server {} -A pipeline:ni", server.url);
    let said = run(&["__complete", PATIENT, "--line", &line]).await;
    assert_eq!(said.out, "nightly\n");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_slow_or_away_suggests_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("http://{}", silent.local_addr().unwrap());
    for server in [slow.as_str(), "http://127.0.0.1:9", "nonsense"] {
        let began = Instant::now();
        let said = run(&["__complete", "--", "why", "--server", server, "bu"]).await;
        let took = began.elapsed();
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.code),
            ("", "", 0)
        );
        // 250 ms, and the start of the program on a busy machine.
        assert!(took < Duration::from_secs(3), "{server}: {took:?}");
        // A server that is silent was waited for.
        assert!(
            server != slow || took >= Duration::from_millis(250),
            "{took:?}"
        );
    }
    let always = run(&["__complete", "--", "why", "--server", &slow, ""]).await;
    assert_eq!(always.out, "@last\n@last-failed\n");
}

#[tokio::test]
async fn bash_completes_by_its_script() {
    let (_database, server) = given().await;
    let program = env!("CARGO_BIN_EXE_hindsight");
    let script = format!(
        r#"source <("$1" completion bash)
patient() {{
    command=$1; shift
    "{program}" "$command" {PATIENT} "$@"
}}
complete_line() {{
    COMP_LINE=$1 COMP_POINT=${{#1}} COMPREPLY=()
    _hindsight patient
    printf '%s\n' "${{COMPREPLY[@]}}"
}}
complete_line "hindsight fla"
complete_line "hindsight why --server {url} -n ci bui"
complete_line "hindsight runs --server {url} -A pipeline:"
complete_line "hindsight runs --outp""#,
        url = server.url
    );
    let shell = tokio::task::spawn_blocking(move || {
        let mut bash = Command::new("bash");
        bash.args(["-c", &script, "bash", program]);
        Said::from(bash.output().unwrap())
    });
    let said = shell.await.unwrap();
    assert_eq!(said.out, "flaky\nbuild-1\nnightly\n--output\n", "{said:?}");
    server.stop().await;
}
