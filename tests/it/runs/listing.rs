//! `hindsight runs`, as scripts see it.

use serde_json::{Value, json};

use super::{
    list::some,
    objects::{given, release},
};
use crate::support::{
    process::{Said, run},
    server::{TestServer, on_each},
};

async fn runs(server: &TestServer, arguments: &[&str]) -> Said {
    let mut all = vec!["runs", "--server", &server.url];
    all.extend(arguments);
    run(&all).await
}

#[tokio::test]
async fn a_script_gets_values_between_tabs() {
    on_each(|server| async move {
        some(&server).await;
        let said = runs(&server, &["failed", "is:top", "-A"]).await;
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.code),
            (
                "status\trun\tkind\tpipeline\treason\tstarted\ttook\n\
                 timeout\tshop/release-3\tPipelineRun\trelease\tPipelineRunTimeout\t\
                 2026-03-02T10:00:04Z\t421\n\
                 failed\tshop/release-2\tPipelineRun\trelease\tFailed\t\
                 2026-03-02T09:00:04Z\t421\n",
                "",
                0
            )
        );
        let flags = [
            "-n",
            "shop",
            "--status",
            "succeeded,timeout",
            "-p",
            "rel*",
            "--kind",
            "pr",
            "--slower-than",
            "7m",
            "--since",
            "2026-03-02T08:00:00Z",
            "--until",
            "2026-03-02T10:00:00Z",
            "--columns",
            "name,label:team",
            "--no-headers",
            "-o",
            "csv",
        ];
        assert_eq!(runs(&server, &flags).await.out, "release-1,ops\n");
        let coloured = [
            "-A",
            "release-1",
            "--color",
            "always",
            "--columns",
            "status",
        ];
        let said = runs(&server, &coloured).await;
        assert_eq!(said.out, "status\n\u{1b}[32msucceeded\u{1b}[0m\n");
        let labelled = ["-A", "-l", "team=web", "-o", "name"];
        let said = runs(&server, &labelled).await;
        assert_eq!(said.out, "shop/results/release-2/records/release-2\n");
    })
    .await;
}

#[tokio::test]
async fn lists_go_on_until_the_limit_or_the_end() {
    on_each(|server| async move {
        for number in 0..7 {
            given(&server, &release(&format!("r-{number}"), 8, "a", "Failed")).await;
        }
        let some = ["-n", "shop", "--limit", "3", "-o", "json"];
        let said = runs(&server, &some).await;
        let told: Value = serde_json::from_str(&said.out).unwrap();
        let names: Vec<_> = told["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| &run["name"])
            .collect();
        assert_eq!(names, ["r-6", "r-5", "r-4"]);
        assert!(
            said.err.contains("there are more runs: raise --limit"),
            "{said:?}"
        );
        let all = [
            "-n",
            "shop",
            "--all",
            "-o",
            "jsonl",
            "--order-by",
            "run.start_time, data.metadata.name",
        ];
        let said = runs(&server, &all).await;
        assert_eq!((said.out.lines().count(), said.err.as_str()), (7, ""));
        let none = runs(&server, &["-n", "shop", "not:failed"]).await;
        assert!(
            none.err.contains("no runs found in namespace shop"),
            "{none:?}"
        );
        assert_eq!((none.out.lines().count(), none.code), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn hostile_names_reach_no_terminal() {
    on_each(|server| async move {
        let mut object = release("hostile", 8, "a", "Failed");
        object["metadata"]["name"] = json!("\u{1b}]0;x\u{7}\u{202e}\0\u{9b}2J\nrow\t");
        object["metadata"]["labels"]["team"] = json!("\u{1b}[31m");
        given(&server, &object).await;
        for form in ["table", "wide", "json", "jsonl", "csv", "yaml"] {
            let asked = ["-A", "-o", form, "--columns", "name,label:team,reason"];
            let said = runs(&server, &asked).await;
            let steers = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
            assert_eq!(said.code, 0, "{said:?}");
            assert!(!said.out.contains(steers), "{form}: {said:?}");
            assert!(said.out.contains("202e"), "{form}: {said:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_filter_of_words_can_be_seen() {
    let shown = [
        "runs",
        "--failed",
        "--show-filter",
        "release",
        "not:label:team",
    ];
    let said = run(&shown).await;
    let filter = "data.metadata.name.contains(\"release\") && !(has(run.labels[\"team\"])) && \
                  run.outcome in [FAILURE, TIMEOUT]\n";
    assert_eq!((said.out.as_str(), said.code), (filter, 0));
}

#[tokio::test]
async fn what_is_wrong_is_pointed_at_before_a_server_is_asked() {
    let said = run(&["runs", "failed", "pipline:x"]).await;
    said.fails(2, "did you mean `pipeline`?");
    said.fails(2, "\n  failed pipline:x\n         ^^^^^^^\n");
    let said = run(&["runs", "data.kind ==", "'x' && nme == 1"]).await;
    said.fails(
        2,
        "\n  data.kind == 'x' && nme == 1\n                      ^\n",
    );
    let said = run(&["list", "runs", "-f", "nme == 1"]).await;
    said.fails(2, "\n  --filter nme == 1\n           ^\n");
    run(&["runs", "--columns", "nme"])
        .await
        .fails(2, "unknown column `nme`; want status, run");
}

#[tokio::test]
async fn without_a_server_it_says_what_to_start() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let said = run(&["runs", "--server", &url]).await;
    said.fails(5, "start one with `hindsight serve`");
}
