//! What may be linked, by `deny.toml`, which `cargo deny` reads too: licenses, banned crates and
//! sources of every package for the targets that it names.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    deny_multiple_versions: bool,
}

/// A package that is built, as `cargo tree` names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: String,
    /// Nothing of a package of the registry, else a folder or another source.
    source: Option<String>,
}

impl Package {
    fn read(line: &str) -> Option<Self> {
        let (package, license) = line.split_once('|')?;
        let mut words = package.split(' ');
        Some(Self {
            name: words.next()?.to_owned(),
            version: words.next()?.to_owned(),
            source: words
                .find(|word| *word != "(proc-macro)")
                .map(str::to_owned),
            license: license.trim_end_matches(" (*)").to_owned(),
        })
    }

    fn is_ours(&self) -> bool {
        self.source
            .as_deref()
            .is_some_and(|source| source.starts_with("(/"))
    }
}

fn rules() -> Rules {
    let text = include_str!("../../deny.toml");
    toml::from_str(text).expect("deny.toml has the tables that are checked")
}

/// Every package that is built for one of the targets, with the features that are on.
fn packages(rules: &Rules) -> BTreeSet<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--workspace", "--locked", "--offline"]);
    cargo.args(["--prefix", "none", "--format", "{p}|{l}"]);
    for target in &rules.graph.targets {
        cargo.args(["--target", target]);
    }
    let told = cargo.output().expect("cargo runs");
    let error = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{error}");
    let text = String::from_utf8(told.stdout).expect("names are UTF-8");
    text.lines().filter_map(Package::read).collect()
}

fn denied<'p>(rules: &Rules, packages: impl IntoIterator<Item = &'p Package>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages.into_iter().filter(|package| !package.is_ours()) {
        let Package {
            name,
            version,
            license,
            source,
        } = package;
        versions.entry(name).or_default().push(version);
        if let Some(source) = source {
            complaints.push(format!("{name} {version}: comes from {source}"));
        }
        if !allows(&rules.licenses.allow, license) {
            complaints.push(format!("{name} {version}: `{license}` is not allowed"));
        }
    }
    for ban in &rules.bans.deny {
        let versions = versions.get(ban.name.as_str()).map_or(&[][..], |all| all);
        let most = usize::from(ban.deny_multiple_versions);
        if versions.len() > most {
            let versions = versions.join(", ");
            complaints.push(format!("{}: {versions}; at most {most}", ban.name));
        }
    }
    complaints
}

/// The dependencies of any version in a manifest.
fn wildcards(manifest: &str) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    let mut found = Vec::new();
    let mut tables = vec![&manifest];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            let toml::Value::Table(inner) = value else {
                continue;
            };
            if !key.ends_with("dependencies") {
                tables.push(inner);
                continue;
            }
            let version = |value: &toml::Value| match value {
                toml::Value::Table(of) => {
                    of.get("version").and_then(|one| one.as_str()) == Some("*")
                }
                value => value.as_str() == Some("*"),
            };
            let any = inner.iter().filter(|(_, value)| version(value));
            found.extend(any.map(|(name, _)| format!("{name}: any version")));
        }
    }
    found
}

/// Whether an SPDX expression can be met by these licenses: one of what OR joins, all of what AND
/// joins, which binds closer.
fn allows(allowed: &[String], expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ");
    let spaced = spaced.replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(allowed, &words, &mut at);
    met && at == words.len()
}

fn any(allowed: &[String], words: &[&str], at: &mut usize) -> bool {
    let mut met = all(allowed, words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(allowed, words, at);
    }
    met
}

fn all(allowed: &[String], words: &[&str], at: &mut usize) -> bool {
    let mut met = one(allowed, words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(allowed, words, at);
    }
    met
}

fn one(allowed: &[String], words: &[&str], at: &mut usize) -> bool {
    if words.get(*at) == Some(&"(") {
        *at += 1;
        let met = any(allowed, words, at);
        *at += 1;
        return met;
    }
    let from = *at;
    let joins = ["OR", "AND", "(", ")"];
    while words.get(*at).is_some_and(|word| !joins.contains(word)) {
        *at += 1;
    }
    let license = words[from..*at].join(" ");
    allowed.contains(&license)
}

#[test]
fn every_package_may_be_linked() {
    let rules = rules();
    let packages = packages(&rules);
    assert_eq!(denied(&rules, &packages), Vec::<String>::new());

    let tonic = packages.iter().find(|one| one.name == "tonic");
    let tonic = tonic.expect("gRPC is linked");
    let is_denied = |change: &dyn Fn(&mut Package)| {
        let mut other = tonic.clone();
        change(&mut other);
        !denied(&rules, [&other]).is_empty()
    };
    assert!(!is_denied(&|_| {}));
    assert!(!denied(&rules, [tonic, tonic]).is_empty());
    assert!(is_denied(&|one| one.name = "openssl-sys".to_owned()));
    assert!(is_denied(&|one| one.license.clear()));
    assert!(is_denied(&|one| one.license = "MIT AND GPL-3.0".to_owned()));
    assert!(is_denied(
        &|one| one.source = Some("(https://a/b#1)".to_owned())
    ));
    let nested = "(Apache-2.0 WITH LLVM-exception OR GPL-3.0) AND (MIT/Zlib) AND ISC";
    assert!(allows(&rules.licenses.allow, nested));
}

#[test]
fn every_dependency_names_its_version() {
    let root = include_str!("../../Cargo.toml");
    assert_eq!(wildcards(root), Vec::<String>::new());
    let any =
        "[dependencies]\na = '*'\n[target.x.dev-dependencies]\nb = { version = '*' }\nc = '1'";
    assert_eq!(wildcards(any), ["a: any version", "b: any version"]);
}
