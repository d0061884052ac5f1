//! Where JSON is read into values.

use crate::source::Source;

/// What reads JSON, or has it read, in a way that depends on keys.
const READERS: [&str; 6] = [
    "serde_json::from_slice",
    "serde_json::from_str",
    "serde_json::from_reader",
    "serde_json::from_value",
    "serde_json::to_value",
    "Deserializer::from_",
];

/// Calls of the reader of JSON outside of tests and of the files that may.
pub(crate) fn readers(files: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut used = Vec::new();
    for file in files {
        let programs = [
            "src/",
            "crates/",
            "controller/src/",
            "proto/src/",
            "watcher/src/",
        ];
        let tests = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
        if tests || !programs.iter().any(|root| file.path.starts_with(root)) {
            continue;
        }
        let code = match file.code.find("#[cfg(test)]\nmod tests {") {
            Some(end) => &file.code[..end],
            None => &file.code,
        };
        let mut found = Vec::new();
        for reader in READERS {
            for (at, _) in code.match_indices(reader) {
                let what =
                    format!("`{reader}` gives some keys a meaning; ask `hindsight_run::json`");
                found.push((at, what));
            }
        }
        for (at, _) in code.match_indices("use serde_json::{") {
            let names = code[at..].split(';').next().unwrap_or_default();
            if let Some(name) = ["from_", "to_value"]
                .iter()
                .find(|name| names.contains(**name))
            {
                let name = if *name == "from_" { "from_str" } else { name };
                found.push((
                    at,
                    format!("name what reads JSON by its path, as in `serde_json::{name}`"),
                ));
            }
        }
        if let Some((path, _)) = allowed.iter().find(|(path, _)| *path == file.path) {
            used.extend((!found.is_empty()).then_some(*path));
            continue;
        }
        found.sort();
        complaints.extend(found.iter().map(|(at, what)| file.complaint(*at, what)));
    }
    for (path, _) in allowed {
        if !used.contains(path) {
            complaints.push(format!(
                "{path}:1: reads no JSON; take it off the list in tests/tidy.rs"
            ));
        }
    }
    complaints
}
