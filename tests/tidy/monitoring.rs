//! Rules about alerts and dashboards: they name metrics that the programs have, and what to do
//! about an alert is written down.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::source::{self, Source};

/// The names of metrics that the sources register, as Prometheus shows them.
pub(crate) fn registered(files: &[Source]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|file| !file.path.starts_with("tests/")) {
        // The registry of the server puts its own name in front.
        let front = if file.path.starts_with("watcher/") {
            ""
        } else {
            "hindsight_"
        };
        // What is looked at when somebody asks is described then.
        let starts = [".register(", ".register_with(", ".encode_descriptor("];
        let all = starts
            .iter()
            .flat_map(|start| file.text.match_indices(start));
        for (at, start) in all {
            let rest = file.text[at + start.len()..].trim_start();
            let Some((name, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'))
            else {
                continue;
            };
            for end in ["", "_total", "_bucket", "_sum", "_count"] {
                names.insert(format!("{front}{name}{end}"));
            }
        }
    }
    names
}

/// The metrics that an expression names.
fn named(expression: &str) -> impl Iterator<Item = &str> {
    expression
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("hindsight_") || word.starts_with("watcher_"))
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| key == "expr") {
                    Some(text) => found.push(text.to_owned()),
                    None => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

/// Complains about metrics that nobody has, and about alerts without a remedy.
pub(crate) fn strangers(known: &BTreeSet<String>, what: &Value, runbook: &str) -> Vec<String> {
    let mut found = Vec::new();
    expressions(what, &mut found);
    let mut complaints: Vec<_> = found
        .iter()
        .flat_map(|text| named(text))
        .filter(|name| !known.contains(*name))
        .map(|name| format!("`{name}` is no metric of ours"))
        .collect();
    for rule in what["groups"][0]["rules"].as_array().unwrap_or(&Vec::new()) {
        let name = rule["alert"].as_str().unwrap_or_default();
        if !runbook.contains(&format!("\n#### {name}\n\n")) {
            complaints.push(format!(
                "docs/operate.md does not say what to do about `{name}`"
            ));
        }
    }
    if found.is_empty() {
        complaints.push("there is no expression at all".to_owned());
    }
    complaints
}

/// The alerts, the dashboard, and the page with the remedies.
pub(crate) fn read() -> (Value, Value, String) {
    let read = |path: &str| {
        std::fs::read_to_string(source::root().join(path))
            .expect("the file is there and can be read")
    };
    let alerts = serde_saphyr::from_str(&read("deploy/monitoring/alerts.yaml"))
        .expect("the file is there and can be read");
    let dashboard = serde_json::from_str(&read("deploy/monitoring/dashboard.json"))
        .expect("the file is there and can be read");
    (alerts, dashboard, read("docs/operate.md"))
}
