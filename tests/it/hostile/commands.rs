//! Commands that meet odd input, output and servers.

use std::process::Stdio;

use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::{hindsight, run},
    server::on_each,
};

#[tokio::test]
async fn of_several_states_of_a_run_in_one_input_the_last_stays() {
    on_each(|server| async move {
        let folder = tempfile::tempdir().unwrap();
        let watched = folder.path().join("watched.json");
        let states = (0..60).map(|n| {
            let mut state = task_run("build", "Succeeded");
            state["metadata"]["resourceVersion"] = json!(n.to_string());
            state.to_string()
        });
        std::fs::write(&watched, states.collect::<Vec<_>>().join("\n")).unwrap();
        // Each of these began before the one in front of it, and is then what the result is about.
        let event = folder.path().join("event.json");
        let runs = (10..60).rev().map(|n| {
            let mut run = task_run(&format!("r{n}"), "Succeeded");
            run["metadata"]["labels"]["triggers.tekton.dev/triggers-eventid"] = json!("event");
            run["status"]["startTime"] = json!(format!("2026-03-01T10:00:{n}Z"));
            run.to_string()
        });
        std::fs::write(&event, runs.collect::<Vec<_>>().join("\n")).unwrap();
        let said = run(&[
            "import",
            watched.to_str().unwrap(),
            event.to_str().unwrap(),
            "--concurrency=256",
            "--server",
            &server.url,
        ])
        .await;
        assert!(
            said.out
                .contains("51 created, 59 updated, 0 unchanged, 0 refused"),
            "{said:?}"
        );
        let name = "ci/results/uid-build/records/uid-build";
        let stored = server.get_record(name).await.unwrap().data.unwrap().value;
        let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        assert_eq!(stored["metadata"]["resourceVersion"], "59");
    })
    .await;
}

#[tokio::test]
async fn lists_inside_lists_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.json");
    std::fs::write(&file, "[".repeat(20_000) + &"]".repeat(20_000)).unwrap();
    let said = run(&["import", file.to_str().unwrap()]).await;
    said.fails(2, "more than 8 Lists inside each other");
}

#[tokio::test]
async fn output_that_nobody_reads_ends_a_command_without_noise() {
    for arguments in [["completion", "bash"], ["config", "docs"]] {
        let ended = tokio::task::spawn_blocking(move || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = hindsight();
            command
                .args(arguments)
                .stdout(writer)
                .stderr(Stdio::piped());
            command.output().unwrap()
        })
        .await
        .unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
        assert_eq!(ended.status.code(), Some(0));
    }
}

#[tokio::test]
async fn names_do_not_steer_the_terminal() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut object = task_run("build", "Failed");
    object["metadata"]["name"] = json!("\u{1b}[2Jred\nrow\u{9b}31m");
    object["status"]["conditions"][0]["message"] = json!("first\nsecond\u{7}");
    server
        .given_record("ci/results/r/records/a", TASK_RUN, &bytes(&object))
        .await;
    let said = run(&["list", "runs", "-n", "ci", "--server", &server.url]).await;
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
    let name = "ci/results/r/records/a";
    let got = run(&["get", "record", name, "--server", &server.url]).await;
    assert!(got.out.contains("second\\u{7}"), "{got:?}");
    for out in [said.out, got.out] {
        assert!(
            !out.chars()
                .any(|c| c.is_control() && !['\n', '\t'].contains(&c)),
            "{out:?}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_silent_is_exit_code_5() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let said = run(&["list", "runs", "--timeout", "1", "--server", &url]).await;
    said.fails(5, "did not answer in time");
}

#[tokio::test]
async fn a_file_is_called_what_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = hindsight();
    command
        .current_dir(&folder)
        .args(["migrate", "--db", "sqlite:file:x.db"]);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert!(folder.path().join("file:x.db").exists());
    assert!(!folder.path().join("x.db").exists());
}
