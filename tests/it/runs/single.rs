//! `hindsight rerun`, `open`, `logs`, and the exit code of `describe`.

use serde_json::Value;

use super::objects::{history, record};
use crate::support::{
    Database, TestServer,
    process::{Said, run},
};

async fn asked(server: &TestServer, arguments: &[&str]) -> Said {
    run(&[arguments, &["--server", &server.url]].concat()).await
}

#[tokio::test]
async fn one_run_is_made_again_opened_and_followed_to_its_logs() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    history(&server).await;
    let said = asked(&server, &["rerun", "shop/release-42", "-o", "json"]).await;
    let made: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(made["metadata"]["generateName"], "release-42-");
    assert_eq!(made["spec"]["params"][0]["value"], "b2");
    assert_eq!(made.get("status"), None);
    let yaml = asked(&server, &["rerun", "shop/release-42"]).await;
    yaml.prints(0, "generateName: release-42-");
    let part = asked(&server, &["rerun", "shop/release-42-test"]).await;
    part.fails(1, "is a part of PipelineRun release-42");

    let record = record("release-42");
    for (flags, below) in [
        (&[][..], "ui/run"),
        (&["--api"], "apis/results.tekton.dev/v1alpha2/parents"),
    ] {
        let address = asked(&server, &[&["open", "shop/release-42"], flags].concat()).await;
        let wanted = format!("{}/{below}/{record}\n", server.url);
        assert_eq!((address.out.as_str(), address.code), (wanted.as_str(), 0));
        let again = asked(&server, &["describe", address.out.trim()]).await;
        again.prints(0, "release-42  PipelineRun");
    }

    let logs = asked(&server, &["logs", "shop/release-42"]).await;
    logs.prints(
        0,
        "kubectl logs -n shop -l tekton.dev/pipelineRun=release-42 ",
    );
    logs.fails(0, "no such log is stored");
    server.stop().await;
}

#[tokio::test]
async fn the_exit_code_says_how_the_run_ended_if_that_is_asked_for() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    history(&server).await;
    for (name, code) in [
        ("shop/release-42", 1),
        ("shop/release-43", 1),
        ("shop/release-45", 0),
        ("shop/release-46", 0),
    ] {
        let said = asked(&server, &["describe", name, "--exit-status"]).await;
        assert_eq!(said.code, code, "{name}: {said:?}");
        assert_eq!(asked(&server, &["describe", name]).await.code, 0);
    }
    server.stop().await;
}

#[tokio::test]
async fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    run(&["man", "--dir", path.to_str().unwrap()])
        .await
        .fails(0, "wrote manual pages");
    let tree = hindsight::cli::command();
    for command in tree.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = format!("hindsight-{}.1", command.get_name());
        let page = std::fs::read_to_string(path.join(&name)).unwrap();
        assert!(page.contains(".TH"), "{name}");
    }
    run(&["man"]).await.prints(0, ".TH hindsight 1");
}
