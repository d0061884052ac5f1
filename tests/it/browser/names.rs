//! What assistive technology is told of rows: their states, names and times, as words.

use serde_json::json;

use super::{staged, tab::Tab};

const FAILED: &str = "/ui/runs?q=failed+pipeline:release+is:top&ns=shop";

/// The names of what has this role.
async fn names(tab: &mut Tab, role: &str) -> Vec<String> {
    let tree = tab.call("Accessibility.getFullAXTree", json!({})).await;
    let nodes = tree["nodes"].as_array().unwrap().iter();
    nodes
        .filter(|node| node["ignored"] != true && node["role"]["value"] == role)
        .map(|node| {
            node["name"]["value"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The names of the cells of the first rows; a failed run whose reason says no more than its state has none.
const ROWS: [&str; 2] = [
    "failed, shop/release-44-f7752 PipelineRun, release, , 13:26:01 37 min ago, 5 m 42 s",
    "failed, shop/release-43-3d7bf PipelineRun, release, , 07:33:01 6 h ago, 6 m 23 s",
];

#[tokio::test]
async fn rows_of_a_list_are_told_in_words() {
    let Some(mut tab) = staged().await else {
        return;
    };
    tab.go(FAILED).await;
    let heads = names(&mut tab, "columnheader").await;
    assert_eq!(
        heads.join(", "),
        "Status, Run, Pipeline, Reason, Started, Took"
    );
    let cells = names(&mut tab, "cell").await;
    let rows: Vec<_> = cells.chunks(6).map(|row| row.join(", ")).take(2).collect();
    assert_eq!(rows, ROWS);
    // What leads on says where to.
    let links = names(&mut tab, "link").await;
    assert!(
        links.len() > 20 && !links.contains(&String::new()),
        "{links:?}"
    );
    tab.close().await;
}

#[tokio::test]
async fn parts_of_a_run_are_told_in_words() {
    let Some(mut tab) = staged().await else {
        return;
    };
    tab.go(FAILED).await;
    let open = "document.querySelector('main tbody td a')";
    tab.leave(async |tab: &mut Tab| tab.click(open).await).await;
    let told = names(&mut tab, "DisclosureTriangle").await;
    let test = told.iter().find(|it| it.contains("test"));
    assert_eq!(
        test.map_or("", |it| it),
        "failed test on the critical path waited 1.0 s took 2 m 40 s \"step-run\" exited with code 137: OOMKilled (memory limit 512Mi)",
        "{told:#?}"
    );
    let links = names(&mut tab, "link").await;
    assert!(links.iter().any(|link| link == "Page of test"), "{links:?}");
    tab.close().await;
}
