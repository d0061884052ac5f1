//! `hindsight index`, beside a server.

use std::time::Duration;

use hindsight_proto::v1::{ExplainRequest, Listed};
use serde_json::{Value, json};

use crate::support::{
    Database, TestServer,
    database::each_database,
    objects::TASK_RUN,
    process::{Said, hindsight, run},
};

const PATH: &str = "data.spec.params[name==\"env\"].value";
const ASKED: &str = "data.spec.params.exists(p, p.name == 'env' && p.value == 'prod')";

async fn index(database: &Database, arguments: &[&str]) -> Said {
    let url = database.url();
    let mut all = vec!["index"];
    all.extend(arguments);
    all.extend(["--db", &url]);
    run(&all).await
}

async fn given(server: &TestServer, ids: impl Iterator<Item = u32>) {
    for id in ids {
        let env = if id % 5 == 0 { "prod" } else { "test" };
        let object =
            json!({"kind": "TaskRun", "spec": {"params": [{"name": "env", "value": env}]}});
        let name = format!("ci/results/r/records/{id}");
        server
            .given_record(&name, TASK_RUN, object.to_string().as_bytes())
            .await;
    }
}

/// What the database is asked, and how it goes about it.
async fn told(server: &TestServer) -> (String, Vec<String>) {
    let request = ExplainRequest {
        parent: "ci/results/-".to_owned(),
        listed: Listed::Records.into(),
        filter: ASKED.to_owned(),
        ..ExplainRequest::default()
    };
    let reply = server.client().queries().explain(request).await;
    let reply = reply.unwrap().into_inner();
    (reply.asked, reply.plan)
}

/// The ids that the filter finds, in ascending order.
async fn found(server: &TestServer) -> Vec<u32> {
    let ids = server.ids("ci/results/-", ASKED).await.unwrap();
    let mut ids: Vec<u32> = ids.iter().map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// Waits until the server has heard of the index, which takes no list.
async fn once_used(server: &TestServer, records: u32) -> (String, Vec<String>) {
    loop {
        let told = told(server).await;
        if told.0.contains("(indexed)") {
            assert_eq!(found(server).await, fifths(records));
            return told;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn fifths(below: u32) -> Vec<u32> {
    (0..below).filter(|id| id % 5 == 0).collect()
}

#[tokio::test]
async fn a_part_of_payloads_is_indexed_used_shown_and_removed() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        given(&server, 0..30).await;
        assert_eq!(told(&server).await.0, "every row");
        let said = index(&database, &["add", PATH]).await;
        assert_eq!(said.code, 0, "{said:?}");
        let done = "is indexed: 30 records in";
        assert!(said.out.contains(done), "{said:?}");

        let (asked, used) = once_used(&server, 30).await;
        assert_eq!(asked, format!("{PATH} (indexed) = \"prod\""));
        let by_index = |step: &String| step.contains("index_entries") || step.contains(" led ");
        assert!(used.iter().any(by_index), "{used:?}");
        given(&server, 30..60).await;
        assert_eq!(found(&server).await, fifths(60));

        let said = index(&database, &["list"]).await;
        assert!(
            said.out.contains(PATH) && said.out.contains("ready"),
            "{said:?}"
        );
        let said = index(&database, &["list", "-o", "json"]).await;
        let shown: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(shown[0]["path"], PATH);
        assert_eq!(shown[0]["type"], "text");
        let said = index(&database, &["add", PATH]).await;
        assert_eq!(
            (said.code, said.err.contains("is indexed already")),
            (1, true)
        );

        let said = index(&database, &["remove", PATH]).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(found(&server).await, fifths(60));
        let said = index(&database, &["remove", PATH]).await;
        assert_eq!((said.code, said.err.contains("is not indexed")), (3, true));
        let said = index(&database, &["list"]).await;
        assert_eq!((said.code, said.out.lines().count()), (0, 1), "{said:?}");
        server.stop().await;
        let fsck = run(&["fsck", "--db", &database.url()]).await;
        assert_eq!(fsck.code, 0, "{fsck:?}");
        database.remove().await;
    }
}

#[tokio::test]
async fn what_cannot_be_indexed_is_refused_with_advice() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for (arguments, code, told) in [
        (&["add", "spec.a"][..], 2, "a path begins with `data`"),
        (&["add", "data.a[name]"], 2, "column 12"),
        (&["add", "data.metadata.name"], 2, "is a column already"),
        (&["add", "data.metadata.labels.a"], 2, "is a column already"),
        (
            &["add", "data.a", "--type", "json"],
            2,
            "possible values: text, number, bool, time",
        ),
        (&["remove", "data.a"], 3, "is not indexed"),
        (&["remove", "a"], 2, "a path begins with `data`"),
    ] {
        let said = index(&database, arguments).await;
        assert_eq!(said.code, code, "{arguments:?}: {said:?}");
        assert!(said.err.contains(told), "{arguments:?}: {said:?}");
    }
    let said = index(&database, &["add", "data.a", "--type", "number"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let said = index(&database, &["add", "data.a"]).await;
    assert_eq!(
        (said.code, said.err.contains("is indexed as number")),
        (1, true)
    );
    server.stop().await;
    let said = run(&["index", "list", "--db", "postgres://a:b@127.0.0.1:1/c"]).await;
    assert_eq!(said.code, 5, "{said:?}");
    database.remove().await;
}

/// Killed over and over while a server writes, the same command finishes in the end, and at no
/// time is a record missing from an answer.
#[tokio::test]
async fn a_killed_build_goes_on_where_it_stopped_and_loses_nothing() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        let mut records = 1_200;
        given(&server, 0..records).await;
        let mut kills = 0;
        loop {
            let mut child = hindsight()
                .args(["index", "add", PATH, "--db", &database.url()])
                .spawn()
                .unwrap();
            given(&server, records..records + 10).await;
            records += 10;
            assert_eq!(found(&server).await, fifths(records));
            tokio::time::sleep(Duration::from_millis(20 + kills * 15)).await;
            // SIGKILL, unless it has finished.
            if let Some(status) = child.try_wait().unwrap() {
                // Killed just after it was done, the next one has nothing to do.
                assert!(matches!(status.code(), Some(0 | 1)), "{status:?}");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        once_used(&server, records).await;
        assert_eq!(found(&server).await, fifths(records));
        server.stop().await;
        let fsck = run(&["fsck", "--db", &database.url()]).await;
        assert_eq!(fsck.code, 0, "{fsck:?}");
        database.remove().await;
    }
}
