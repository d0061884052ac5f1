//! ConfigMaps that are converted, and those that are refused.

use super::*;

fn map(data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: tekton-results-config-results-retention-policy\n\
         data:\n{data}"
    )
}

#[test]
fn a_config_map_becomes_a_file() {
    let text = map(
        "  runAt: \"5 5 * * 0\"\n  defaultRetention: \"30\"\n  policies: |\n    - name: Failed runs\n      \
         selector:\n        matchNamespaces: [ci, \"o'neil\"]\n        matchLabels:\n          \
         app: [shop]\n        matchStatuses: [Failed]\n      retention: 720h\n",
    );
    let file = converted(&text, "Europe/Berlin").unwrap();
    let rules = Rules::parse(&file).unwrap();
    let wanted = "run_at = \"5 5 * * 0 Europe/Berlin\"\nat_start = false\n\n[[policies]]\n\
        name = \"failed-runs\"\nwhen = 'parent in [\"ci\", \"o''neil\"] && data.metadata.labels[\"app\"] in [\"shop\"] \
        && data.status.conditions[0].reason in [\"Failed\"]'\nkeep_for = \"720h\"\n\n[default]\nkeep_for = \"30d\"\n";
    let when = rules.policies[0].when.as_ref().unwrap().text();
    assert!(
        when.starts_with("parent in [\"ci\", \"o'neil\"] && data.metadata.labels"),
        "{when}"
    );
    let lines = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("when"))
            .count()
    };
    assert_eq!(lines(&file), lines(wanted), "{file}");
    assert!(
        file.contains("keep_for = \"720h\"") && file.contains("keep_for = \"30d\""),
        "{file}"
    );
}

#[test]
fn what_the_agent_would_take_for_all_runs_is_refused() {
    let policy = |selector: &str, retention: &str| {
        map(&format!(
            "  policies: |\n    - name: p\n      selector:{selector}\n      retention: {retention}\n"
        ))
    };
    for (text, said) in [
        (policy(" {}", "7d"), "its selector is empty"),
        (
            policy("\n        matchNamespace: [ci]", "7d"),
            "matchNamespace",
        ),
        (
            policy("\n        matchLabels: {app: []}", "7d"),
            "has no values",
        ),
        (
            policy("\n        matchNamespaces: [ci]", "0"),
            "would delete every run",
        ),
        (policy("\n        matchNamespaces: [ci]", "soon"), "`soon`"),
        (map("  defaultRetention: -1h\n"), "-1h"),
        (map("  defaultRetension: 7d\n"), "defaultRetension"),
        (
            map("  defaultRetention: 7d\n  maxRetention: 8d\n"),
            "maxRetention",
        ),
        (map("  runAt: \"7 7 * * 8\"\n"), "7 7 * * 8"),
        ("kind: Secret\ndata: {}\n".to_owned(), "no ConfigMap"),
    ] {
        let why = converted(&text, "UTC").unwrap_err();
        assert!(why.contains(said), "{text}: {why}");
    }
}
