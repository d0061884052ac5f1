//! Rules about files: how long, how they open, whether anything leads to them.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

pub(crate) fn too_long(files: &[Source], longest: usize) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        if file.text.lines().count() > longest {
            let last = file.text.trim_end().len();
            let text = format!("more than {longest} lines; divide it by what it is for");
            complaints.push(file.complaint(last, &text));
        }
    }
    complaints
}

pub(crate) fn without_opening(files: &[Source]) -> Vec<String> {
    let opens = |file: &&Source| {
        file.text
            .lines()
            .next()
            .is_some_and(|line| line.starts_with("//! ") && line.len() > 8)
    };
    let complain = |file: &Source| file.complaint(0, "does not open with `//!` and what it is for");
    files
        .iter()
        .filter(|file| !opens(file))
        .map(complain)
        .collect()
}

pub(crate) fn mod_files(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        if let Some(directory) = file.path.strip_suffix("/mod.rs") {
            complaints.push(file.complaint(0, &format!("call it {directory}.rs")));
        }
    }
    complaints
}

pub(crate) fn unreachable(files: &[Source]) -> Vec<String> {
    let by_path: BTreeMap<_, _> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> = files
        .iter()
        .map(|file| file.path.clone())
        .filter(|path| is_root(path))
        .collect();
    while let Some(path) = waiting.pop() {
        let Some(file) = by_path.get(path.as_str()) else {
            continue;
        };
        if reached.insert(path) {
            waiting.extend(modules_of(file));
        }
    }
    let lost = files.iter().filter(|file| !reached.contains(&file.path));
    lost.map(|file| file.complaint(0, "no `mod` line leads here, so it is not compiled"))
        .collect()
}

/// Whether cargo itself finds this file.
fn is_root(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (name, parent, above) = (parts.next(), parts.next(), parts.next());
    let targets = ["tests", "bench", "targets"];
    match (name, parent) {
        (Some("lib.rs" | "main.rs"), Some("src")) => true,
        (Some("build.rs"), _) | (_, Some("bin")) => true,
        (Some("main.rs"), Some(_)) => above.is_some_and(|above| targets.contains(&above)),
        // A directory of modules in `src` may be called `tests` too.
        (_, Some(parent)) => targets.contains(&parent) && !path.contains("src/"),
        _ => false,
    }
}

/// The paths that the `mod` lines of `file` lead to.
fn modules_of(file: &Source) -> Vec<String> {
    let directory = file
        .path
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory);
    let own = if is_root(&file.path) {
        directory.to_owned()
    } else {
        file.path.trim_end_matches(".rs").to_owned()
    };
    let mut modules = Vec::new();
    for at in file.words("mod") {
        let Some(end) = file.code[at..].find([';', '{']) else {
            continue;
        };
        if file.code.as_bytes()[at + end] == b'{' {
            continue;
        }
        let name = file.code[at + 3..at + end].trim().trim_start_matches("r#");
        modules.push(match path_attribute(file, at) {
            // Relative to the directory of the module that says it.
            Some(path) if is_root(&file.path) => format!("{directory}/{path}"),
            Some(path) => format!("{own}/{path}"),
            None => format!("{own}/{name}.rs"),
        });
    }
    modules
}

/// What `#[path = "..."]` says, if it stands right before the `mod` at this byte.
fn path_attribute(file: &Source, at: usize) -> Option<&str> {
    let line = file.text[..at].trim_end().lines().next_back()?.trim();
    line.strip_prefix("#[path = \"")?.strip_suffix("\"]")
}

/// Complains about crates that `deny.toml` wants once and the lock file has twice. Banned
/// crates are the business of `cargo deny`, since the lock file also names what is not built.
pub(crate) fn duplicates(deny: &str, lock: &str) -> Vec<String> {
    let deny: toml::Table = deny.parse().expect("deny.toml is TOML");
    let lock: toml::Table = lock.parse().expect("the lock file is TOML");
    let rules = deny["bans"]["deny"]
        .as_array()
        .expect("bans.deny is a list");
    let locked = lock["package"]
        .as_array()
        .expect("the lock file lists packages");
    let mut complaints = Vec::new();
    for rule in rules
        .iter()
        .filter(|rule| rule.get("deny-multiple-versions").is_some())
    {
        let name = rule["crate"].as_str();
        let versions: Vec<_> = locked
            .iter()
            .filter(|package| package["name"].as_str() == name)
            .filter_map(|package| package["version"].as_str())
            .collect();
        if versions.len() > 1 {
            let (name, versions) = (name.unwrap_or_default(), versions.join(" and "));
            complaints.push(format!("Cargo.lock: `{name}` is there as {versions}"));
        }
    }
    complaints
}

/// Complains where the graph of our crates in `map` is not that of the manifests. Dependencies of
/// tests are not in it.
pub(crate) fn off_the_map(manifests: &[String], map: &str) -> Vec<String> {
    let short = |name: &str| name.trim_start_matches("hindsight-").to_owned();
    let graph = map.split("```crates\n").nth(1).unwrap_or_default();
    let graph = graph.split("```").next().unwrap_or_default();
    let mut drawn: BTreeMap<String, String> = graph
        .lines()
        .filter_map(|line| line.split_once("->"))
        .map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()))
        .collect();
    let mut complaints = Vec::new();
    for manifest in manifests {
        let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
        let name = short(manifest["package"]["name"].as_str().unwrap_or_default());
        let entered = manifest["dependencies"].as_table().into_iter().flatten();
        let mut entered: Vec<String> = entered
            .filter(|(dependency, _)| dependency.starts_with("hindsight-"))
            .map(|(dependency, _)| short(dependency))
            .collect();
        entered.sort();
        let (entered, said) = (entered.join(" "), drawn.remove(&name).unwrap_or_default());
        if entered != said {
            complaints.push(format!(
                "docs/ARCHITECTURE.md: says `{name} -> {said}`, and the manifest `{name} -> {entered}`"
            ));
        }
    }
    let left = drawn.keys();
    complaints.extend(left.map(|name| format!("docs/ARCHITECTURE.md: there is no crate `{name}`")));
    complaints
}
