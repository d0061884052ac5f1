//! The command `hindsight logs`.

use super::{append, message, seal};
use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes},
    process::run,
};
use serde_json::json;

#[tokio::test]
async fn the_failed_step_is_printed_and_nothing_steers_a_terminal() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "test", "namespace": "shop", "uid": "test"},
        "status": {
            "startTime": "2026-03-02T09:00:00Z", "completionTime": "2026-03-02T09:01:00Z",
            "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed"}],
            "steps": [
                {"name": "fetch", "container": "step-fetch", "terminated": {"exitCode": 0}},
                {"name": "unit", "container": "step-unit", "terminated": {"exitCode": 2, "reason": "Error"}},
            ],
        },
    });
    server
        .given_record("shop/results/test/records/test", TASK_RUN, &bytes(&object))
        .await;
    let asked = async |flags: &[&str]| {
        let server = ["--server", server.url.as_str()];
        run(&[&["logs", "shop/test"], flags, &server].concat()).await
    };
    asked(&[])
        .await
        .prints(0, "kubectl logs -n shop -l tekton.dev/taskRun=test ");
    let name = "shop/results/test/logs/test";
    append(
        &server,
        vec![
            message(name, "step-fetch", 0, b"cloning\n"),
            message(
                name,
                "step-unit",
                0,
                b"ok\n\x1b[31mFAIL\x1b[0m \x1b[2J\nexit 2\n",
            ),
            seal(name, "step-fetch"),
            seal(name, "step-unit"),
        ],
    )
    .await
    .unwrap();
    for (flags, expected) in [
        (
            &[][..],
            "[unit] ok\n[unit] FAIL \\u{1b}[2J\n[unit] exit 2\n",
        ),
        (&["--tail", "1"], "[unit] exit 2\n"),
        (&["--step", "fetch", "--prefix", "never"], "cloning\n"),
        (
            &["--grep", "exit|fail", "-i", "--all"],
            "[unit] FAIL \\u{1b}[2J\n[unit] exit 2\n",
        ),
        (
            &["--raw"],
            "ok\n\u{1b}[31mFAIL\u{1b}[0m \u{1b}[2J\nexit 2\n",
        ),
        (
            &["--tail", "1", "--timestamps"],
            "2026-03-02T10:00:02.000000Z [unit] exit 2\n",
        ),
        (
            &["--follow", "--tail", "1"],
            "[fetch] cloning\n[unit] exit 2\n",
        ),
    ] {
        let said = asked(flags).await;
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, expected),
            "{flags:?}: {}",
            said.err
        );
    }
    asked(&["--grep", "("]).await.fails(2, "--grep");
    asked(&["--since", "soon"]).await.fails(2, "such as 10m");
    server.stop().await;
}
