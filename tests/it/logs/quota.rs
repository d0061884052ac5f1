//! Bounds of what the logs of a parent take.

use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use super::{append, message, read, seal, update_log, whole};
use crate::support::{
    Database, TestServer, each_database,
    objects::{TASK_RUN, bytes, task_run},
    server::refused,
};

const NAME: &str = "shop/results/one/logs/one";

async fn with_quota(database: &Database) -> TestServer {
    TestServer::start_with(database, &[("logs_quota", "100")]).await
}

#[tokio::test]
async fn lines_above_the_quota_of_a_parent_are_refused() {
    for database in each_database().await {
        let server = with_quota(&database).await;
        let line = |length: usize| [&b"x".repeat(length - 1)[..], b"\n"].concat();
        let first = message(NAME, "a", 0, &line(60));
        append(&server, vec![first.clone()]).await.unwrap();
        let more = append(&server, vec![message(NAME, "a", 1, &line(41))]).await;
        refused(
            more,
            Code::ResourceExhausted,
            "logs of parent `shop` have 60 bytes, and logs_quota allows 100",
        );
        append(&server, vec![message(NAME, "b", 0, &line(40))])
            .await
            .unwrap();
        // What is stored already, another parent, and the end of a log need no room.
        append(&server, vec![first]).await.unwrap();
        let elsewhere = "ci/results/one/logs/one";
        append(&server, vec![message(elsewhere, "a", 0, &line(100))])
            .await
            .unwrap();
        let mut hole = message(NAME, "a", 1, b"[hindsight: lines are missing]\n");
        hole.lines.as_mut().unwrap().holes = vec![1];
        let unsealed = append(&server, vec![hole.clone()]).await;
        refused(unsealed, Code::ResourceExhausted, "logs_quota");
        hole.seal = true;
        append(&server, vec![hole, seal(NAME, "b")]).await.unwrap();
        assert_eq!(read(&server, whole(NAME)).await.unwrap().1, [0, 1, 0]);

        // A server that starts anew knows what is stored.
        server.stop().await;
        let server = with_quota(&database).await;
        let more = append(&server, vec![message(NAME, "c", 0, b"1\n")]).await;
        refused(more, Code::ResourceExhausted, "have 131 bytes");
        let run = "shop/results/two/records/two";
        let object = bytes(&task_run("two", "Failed"));
        server.given_record(run, TASK_RUN, &object).await;
        let log = "shop/results/two/logs/two";
        let upload = update_log(&server, &[(log, b"text")]).await;
        refused(upload, Code::ResourceExhausted, "logs_quota");

        // Deleting makes room, which is seen within a second.
        let name = "shop/results/one".to_owned();
        let delete = pb::DeleteResultRequest { name };
        server.rpc().delete_result(delete).await.unwrap();
        while update_log(&server, &[(log, b"text")]).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        server.stop().await;
        database.remove().await;
    }
}
