//! What assistive technology is told of rows: their states, names and times, as words.

use serde_json::{Value, json};

use super::{staged, tab::Tab};

/// The names of what has one of these roles, in the order of the page.
async fn names(tab: &mut Tab, roles: &[&str]) -> Vec<String> {
    let tree = tab.call("Accessibility.getFullAXTree", json!({})).await;
    let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
    let nodes = tree["nodes"].as_array().unwrap().iter();
    nodes
        .filter(|node| node["ignored"] != true && roles.contains(&text(&node["role"]).as_str()))
        .map(|node| format!("{} {}", text(&node["role"]), text(&node["name"])))
        .collect()
}

#[tokio::test]
async fn rows_of_a_list_are_told_in_words() {
    let Some(mut tab) = staged().await else { return };
    tab.go("/ui/runs?q=failed+pipeline:release+is:top&ns=shop").await;
    let told = names(&mut tab, &["columnheader", "row", "cell", "rowheader"]).await;
    assert_eq!(told[..20].join("\n"), "");
    tab.close().await;
}
