//! The command line as people and scripts use it.

mod program;

use serde_json::{Value, json};

use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::{Said, run},
};

/// What a command says, whose words have no spaces in them.
async fn ask(server: &TestServer, command: &str) -> Said {
    let words: Vec<_> = command.split(' ').collect();
    ask_all(server, &words).await
}

async fn ask_all(server: &TestServer, arguments: &[&str]) -> Said {
    let mut all = arguments.to_vec();
    all.extend(["--server", &server.url]);
    run(&all).await
}

async fn given() -> (Database, TestServer) {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for (name, reason) in [("build-1", "Succeeded"), ("build-2", "Failed")] {
        let run = bytes(&task_run(name, reason));
        server
            .given_record(&format!("ci/results/{name}/records/{name}"), TASK_RUN, &run)
            .await;
    }
    server
        .given_record("ci/results/build-1/records/blob", "blob", b"\xff\x00")
        .await;
    (database, server)
}

#[tokio::test]
async fn a_pipe_gets_values_between_tabs_of_the_columns_it_wants() {
    let (_database, server) = given().await;
    let said = ask(&server, "list runs -n ci").await;
    assert_eq!(
        (said.out.as_str(), said.err.as_str(), said.code),
        (
            "namespace\tname\tkind\tstarted\tduration\tstatus\n\
             ci\tbuild-2\tTaskRun\t2026-03-01T10:00:05Z\t180\tFailed\n\
             ci\tbuild-1\tTaskRun\t2026-03-01T10:00:05Z\t180\tSucceeded\n",
            "",
            0
        )
    );
    for (flags, out) in [
        (
            "--columns status,name -o csv --limit 1",
            "status,name\nFailed,build-2\n",
        ),
        (
            "--columns record --no-headers",
            "ci/results/build-2/records/build-2\n\
            ci/results/build-1/records/build-1\n",
        ),
        ("-o name --limit 1", "ci/results/build-2/records/build-2\n"),
    ] {
        let said = ask(&server, &format!("list runs -n ci {flags}")).await;
        assert_eq!(said.out, out, "{said:?}");
    }
    let said = ask(&server, "list runs -n ci -o jsonl").await;
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
    let said = ask(&server, "list runs -n ci --columns nme").await;
    said.fails(2, "unknown column `nme`; want namespace, name");
    let said = ask(&server, "list runs --no-headers").await;
    assert_eq!((said.out.as_str(), said.code), ("", 0));
    assert!(
        said.err.contains("no runs found in namespace default"),
        "{}",
        said.err
    );
    server.stop().await;
}

#[tokio::test]
async fn a_filter_narrows_a_list_and_a_wrong_one_is_exit_code_2() {
    let (_database, server) = given().await;
    let filter = "data.status.conditions[0].reason == 'Failed'";
    let said = ask_all(
        &server,
        &["list", "records", "-A", "-f", filter, "-o", "json"],
    )
    .await;
    let list: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        list["items"][0]["data"]["value"],
        task_run("build-2", "Failed")
    );
    let said = ask_all(&server, &["list", "runs", "-A", "-f", "nme == 'x'"]).await;
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains("nme"), "{}", said.err);
    server.stop().await;
}

#[tokio::test]
async fn more_rows_than_the_limit_are_announced_and_can_be_continued() {
    let (_database, server) = given().await;
    let first = ask(&server, "list records -A --limit 2 -o json").await;
    let first: Value = serde_json::from_str(&first.out).unwrap();
    let token = first["nextPageToken"].as_str().unwrap();
    let rest = ask_all(
        &server,
        &["list", "records", "-A", "--page-token", token, "-o", "json"],
    )
    .await;
    let rest: Value = serde_json::from_str(&rest.out).unwrap();
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    assert_eq!(rest.get("nextPageToken"), None);
    let said = ask(&server, "list records -A --limit 2").await;
    assert!(said.err.contains("there are more"), "{}", said.err);
    server.stop().await;
}

#[tokio::test]
async fn get_prints_the_stored_bytes() {
    let (_database, server) = given().await;
    let said = ask(&server, "get run build-1 -n ci -o json").await;
    assert_eq!(
        said.out.trim_end().as_bytes(),
        bytes(&task_run("build-1", "Succeeded"))
    );
    let said = ask(&server, "get run uid-build-1 -A -o yaml").await;
    assert!(said.out.contains("name: build-1"), "{}", said.out);
    let said = ask(
        &server,
        "get record ci/results/build-1/records/blob -o json",
    )
    .await;
    let record: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        record["data"],
        json!({"type": "blob", "valueBase64": "/wA="})
    );
    let said = ask(&server, "get result ci/results/build-1").await;
    assert!(said.out.contains("ci/results/build-1"), "{}", said.out);
    server.stop().await;
}

#[tokio::test]
async fn what_is_missing_is_exit_code_3_and_a_server_that_is_missing_5() {
    let (_database, server) = given().await;
    let said = ask(&server, "get run no-such -n ci").await;
    said.fails(3, "no run `no-such` in namespace ci");
    let said = ask(&server, "get record ci/results/x/records/y").await;
    assert_eq!(said.code, 3, "{said:?}");
    server.stop().await;
    let said = run(&["list", "runs", "--server", "http://127.0.0.1:1"]).await;
    said.fails(5, "http://127.0.0.1:1 does not answer");
    let said = run(&["list", "runs", "--server", "ftp://x"]).await;
    assert_eq!(said.code, 2, "{said:?}");
}

#[tokio::test]
async fn delete_asks_first_and_removes_for_good() {
    let (_database, server) = given().await;
    let name = "ci/results/build-1/records/blob";
    let said = ask_all(&server, &["delete", "record", name]).await;
    said.fails(2, "--yes");
    let said = ask_all(&server, &["delete", "record", name, "--yes"]).await;
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "ci/results/build-1/records/blob deleted\n")
    );
    let said = ask(
        &server,
        "delete result ci/results/none ci/results/build-2 --yes",
    )
    .await;
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(
        said.out, "ci/results/build-2 deleted\n",
        "the next name is deleted all the same"
    );
    assert!(
        said.err.contains("ci/results/none was not deleted"),
        "{}",
        said.err
    );
    assert_eq!(server.ids("-/results/-", "").await.unwrap(), ["build-1"]);
    server.stop().await;
}

/// A pipeline run with a task run, in a result that the trigger shares with another run.
async fn given_pipeline(server: &TestServer, result: &str, name: &str) {
    let object = |kind: &str, name: &str, owner: Option<&str>| {
        let mut object = json!({"apiVersion": "tekton.dev/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "ci", "uid": format!("uid-{name}")}});
        if let Some(owner) = owner {
            let owner = json!([{"kind": "PipelineRun", "uid": format!("uid-{owner}")}]);
            object["metadata"]["ownerReferences"] = owner;
        }
        object
    };
    let task = format!("{name}-task");
    let pipeline = "tekton.dev/v1.PipelineRun";
    for (id, data_type, object) in [
        (name, pipeline, object("PipelineRun", name, None)),
        (&task, TASK_RUN, object("TaskRun", &task, Some(name))),
    ] {
        let record = format!("ci/results/{result}/records/{id}");
        server
            .given_record(&record, data_type, &bytes(&object))
            .await;
    }
}

#[tokio::test]
async fn a_run_is_deleted_with_what_it_owns_and_its_result_with_the_last_run() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_pipeline(&server, "event", "first").await;
    given_pipeline(&server, "event", "second").await;
    let log = "results.tekton.dev/v1.EventList";
    server
        .given_record("ci/results/event/records/log", log, b"{}")
        .await;
    let delete = ["delete", "run", "first", "-n", "ci", "--yes"];
    let said = ask_all(&server, &delete).await;
    assert_eq!(said.code, 0, "{said:?}");
    let mut left = server.ids("ci/results/event", "").await.unwrap();
    left.sort();
    assert_eq!(left, ["log", "second", "second-task"]);
    let said = ask(&server, "delete run second -n ci --yes").await;
    assert_eq!(said.out, "ci/results/event deleted\n", "{said:?}");
    let said = ask(&server, "list results -A -o name").await;
    assert_eq!(said.out, "", "no result is left behind");
    let said = ask_all(&server, &[&delete[..], &["--ignore-not-found"]].concat()).await;
    assert_eq!(said.code, 0, "{said:?}");
    server.stop().await;
}

#[tokio::test]
async fn jobs_and_declared_kinds_are_runs() {
    let (_database, server) = given().await;
    for (data_type, name) in [
        ("batch/v1.Job", "backup-1"),
        ("acme.example/v1.Render", "film"),
    ] {
        let (api, kind) = data_type.rsplit_once('.').unwrap();
        let object = json!({"apiVersion": api, "kind": kind,
            "metadata": {"name": name, "namespace": "ci", "uid": name}});
        let record = format!("ci/results/{name}/records/{name}");
        server
            .given_record(&record, data_type, &bytes(&object))
            .await;
        let said = ask_all(&server, &["get", "run", name, "-n", "ci", "-o", "json"]).await;
        assert_eq!(said.code, 0, "{said:?}");
    }
    let said = ask(&server, "list runs -n ci -o json").await;
    let listed: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 4, "not the blob");
    let said = ask(&server, "stats -n ci --measure count -o json").await;
    assert!(said.out.contains(r#"{"count":4}"#), "{}", said.out);
    let said = ask(&server, "list runs --result ci/results/film").await;
    assert!(said.out.contains("film"), "{said:?}");
    let having = [
        "stats",
        "-n",
        "ci",
        "--by",
        "reason",
        "--having",
        "count >= 10",
    ];
    let said = ask_all(&server, &having).await;
    assert!(
        said.err.contains("no group passes --having"),
        "{}",
        said.err
    );
    server.stop().await;
}
