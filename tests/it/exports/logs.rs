//! `hindsight export logs`, and what `hindsight import logs` makes of it.

use hindsight_proto::v1::{DescribeLogRequest, LogContainer};

use super::export;
use crate::logs::{append, get_log, message, seal, update_log};
use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::run,
    server::on_each,
};

const RUN: &str = "ci/results/build/records/build";
const LOG: &str = "ci/results/build/logs/build";
const UPLOADED: &str = "ci/results/old/logs/old";

async fn given_records(server: &TestServer) {
    for name in ["build", "old"] {
        let record = format!("ci/results/{name}/records/{name}");
        let object = bytes(&task_run(name, "Failed"));
        server.given_record(&record, TASK_RUN, &object).await;
    }
}

async fn given(server: &TestServer) {
    given_records(server).await;
    let long = [&b"x".repeat(300_000)[..], b"\nend without a line feed"].concat();
    let odd = b"\xff\x00\x1b[31mred\xe2\x80\xae\r\n\n";
    let mut holed = message(LOG, "step-open", 0, b"one\nlines are missing\n");
    holed.lines.as_mut().unwrap().holes = vec![1];
    let messages = vec![
        message(LOG, "step-run", 0, odd),
        message(LOG, "step-run", 2, &long),
        seal(LOG, "step-run"),
        seal(LOG, "step-empty"),
        holed,
    ];
    append(server, messages).await.unwrap();
    update_log(server, &[(UPLOADED, b"text\n\xfeof long ago")])
        .await
        .unwrap();
}

async fn described(server: &TestServer, log: &str) -> Vec<LogContainer> {
    let name = log.to_owned();
    let reply = server
        .client()
        .logs()
        .describe_log(DescribeLogRequest {
            name,
            only_stored: true,
        })
        .await;
    let mut containers = reply.unwrap().into_inner().containers;
    for log in &mut containers {
        // The time of an upload is that of its arrival.
        if log
            .source
            .as_ref()
            .is_none_or(|source| source.container.is_empty())
        {
            (log.first_time, log.last_time) = (None, None);
        }
    }
    containers
}

/// Whether a line is one of the upload.
fn is_uploaded(line: &str) -> bool {
    line.ends_with(r#""text":"text\n"}"#) || line.ends_with(r#""textBase64":"/m9mIGxvbmcgYWdv"}"#)
}

#[tokio::test]
async fn logs_are_imported_again_byte_for_byte() {
    on_each(|server| async move {
        given(&server).await;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let [file, part, again, cursor] = ["all", "part", "again", "cursor"].map(path);
        let arguments = ["logs", "-A", "--file", &file, "--cursor", &cursor];
        export(&server, &arguments)
            .await
            .fails(0, "exported 4 logs");
        export(&server, &arguments)
            .await
            .fails(0, "the export is complete");
        let database = Database::sqlite();
        let other = TestServer::start(&database).await;
        given_records(&other).await;
        let import =
            async |file: &str| run(&["import", "logs", file, "--server", &other.url]).await;

        // As if the file, and so the import, had been cut off.
        let text = std::fs::read_to_string(&file).unwrap();
        let cut = text.find("xxxx").unwrap();
        let cut = text[..cut].rfind('\n').unwrap() + 1;
        std::fs::write(&part, &text[..cut]).unwrap();
        let said = import(&part).await;
        said.fails(1, "the file ends before it does");

        let said = import(&file).await;
        said.prints(0, "4 created, 0 updated, 0 unchanged, 0 refused");
        for log in [LOG, UPLOADED] {
            assert_eq!(described(&other, log).await, described(&server, log).await);
            assert_eq!(
                get_log(&other, log).await.unwrap().0,
                get_log(&server, log).await.unwrap().0
            );
        }
        let said = import(&file).await;
        said.prints(0, "0 created, 0 updated, 4 unchanged, 0 refused");
        export(&other, &["logs", "-n", "ci", "--file", &again])
            .await
            .fails(0, "exported 4");
        let again = std::fs::read_to_string(&again).unwrap();
        // Lines of the upload have other times.
        let sorted = |text: &str| {
            let lines = text.lines().map(str::to_owned);
            let mut lines: Vec<_> = lines.filter(|line| !is_uploaded(line)).collect();
            lines.sort();
            lines
        };
        assert!(sorted(&again) == sorted(&text), "{again:.2000}");
        other.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_log_that_cannot_be_imported_is_refused() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server).await;
    let said = export(&server, &["logs", "-n", "ci", "build"]).await;
    assert!(said.out.contains(r#""hole":true"#), "{said:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logs").display().to_string();
    let import = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(&["import", "logs", &file, "--server", &server.url]).await
    };
    let digest = said.out.find("\"sha256\":\"").unwrap() + 10;
    let mut changed = said.out.clone();
    changed.replace_range(digest..digest + 4, "0000");
    import(&changed)
        .await
        .fails(1, "has other bytes under this name");
    import("{\"line\":0}\n").await.fails(2, "line 1: ");
    import("what?").await.fails(2, "line 1: ");
    let orphan = "{\"log\":\"ci/results/none/logs/none\"}\n{\"lines\":0,\"bytes\":0,\"sealed\":true,\"sha256\":\"e3\"}\n";
    import(orphan)
        .await
        .fails(1, "refused ci/results/none/logs/none");
    export(&server, &["logs", "-A", "-o", "csv"])
        .await
        .fails(2, "as jsonl only");
    assert_eq!(described(&server, LOG).await.len(), 3, "{RUN}");
    server.stop().await;
    database.remove().await;
}
