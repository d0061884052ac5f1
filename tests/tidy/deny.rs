//! What may be linked, by `deny.toml`, which `cargo deny` reads too: licenses, banned crates and
//! sources of every package for the targets that it names.

use std::{collections::BTreeMap, process::Command};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Rules {
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

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None of a package of this repository.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    source: Option<String>,
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn rules() -> Rules {
    let text = include_str!("../../deny.toml");
    toml::from_str(text).expect("deny.toml has the tables that are checked")
}

/// Every package that is built for one of the targets.
pub(crate) fn packages(rules: &Rules) -> Vec<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    for target in &rules.graph.targets {
        cargo.args(["--filter-platform", target]);
    }
    let told = cargo.output().expect("cargo runs");
    let error = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{error}");
    let metadata: Metadata = serde_json::from_slice(&told.stdout).expect("it is JSON");
    metadata.packages
}

pub(crate) fn denied(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, .. } = package;
        versions.entry(name).or_default().push(version);
        let Some(source) = &package.source else {
            let any = package.dependencies.iter();
            let any = any.filter(|one| one.req == "*" && one.source.is_some());
            complaints.extend(any.map(|one| format!("{name}: any version of `{}`", one.name)));
            continue;
        };
        if source != REGISTRY {
            complaints.push(format!("{name} {version}: comes from {source}"));
        }
        let license = package.license.as_deref().unwrap_or("no license");
        if !allows(&rules.licenses.allow, license) {
            complaints.push(format!("{name} {version}: {license} is not allowed"));
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
    let denied_of = |packages: &[Package]| denied(&rules, packages);
    assert_eq!(denied_of(&packages), Vec::<String>::new());

    let tonic = packages.iter().find(|one| one.name == "tonic");
    let tonic = tonic.expect("gRPC is linked");
    let other = |change: &dyn Fn(&mut Package)| {
        let mut other = tonic.clone();
        change(&mut other);
        denied_of(&[other])
    };
    assert_eq!(denied_of(std::slice::from_ref(tonic)), Vec::<String>::new());
    assert!(!denied_of(&[tonic.clone(), tonic.clone()]).is_empty());
    assert!(!other(&|one| one.name = "openssl-sys".to_owned()).is_empty());
    assert!(!other(&|one| one.license = None).is_empty());
    assert!(!other(&|one| one.license = Some("MIT AND GPL-3.0".to_owned())).is_empty());
    assert!(!other(&|one| one.source = Some("git+https://a/b".to_owned())).is_empty());
    assert!(
        !other(&|one| {
            one.source = None;
            one.dependencies[0].req = "*".to_owned();
        })
        .is_empty()
    );
    let nested = "(Apache-2.0 WITH LLVM-exception OR GPL-3.0) AND (MIT/Zlib) AND ISC";
    assert!(allows(&rules.licenses.allow, nested));
}
