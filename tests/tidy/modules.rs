//! Which modules of a crate name which others, and that none does so in a circle.
//!
//! A parent and its children may name each other; siblings only in one direction, so that each can
//! be read before those that name it. What a module passes on is followed to where it comes from,
//! so a re-export hides no circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    paths::{Named, Part, parts},
    source::Source,
};

/// How many names for one thing are followed, each to the next.
const RENAMED: usize = 8;

/// The path of a module from the root of its crate.
type Place = Vec<String>;

/// What one module says.
struct Module<'f> {
    file: &'f Source,
    /// What it brings in, under the name it has here; all of a module under `*`.
    brought: BTreeMap<String, Vec<Vec<String>>>,
    /// Every path that it names.
    named: Vec<Named>,
}

/// The modules of one crate.
struct Crate<'f> {
    /// Where its sources are.
    folder: &'f str,
    modules: BTreeMap<Place, Module<'f>>,
}

/// Siblings that name each other in a circle.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    /// The folder of the siblings.
    folder: String,
    members: Vec<String>,
    /// Who names whom, where and how.
    edges: Vec<String>,
}

/// Complains about every circle.
pub(crate) fn circular(files: &[Source]) -> Vec<String> {
    let circles = crates(files).iter().flat_map(circles).collect::<Vec<_>>();
    let complaint = |circle: Circle| {
        let (folder, members) = (circle.folder, circle.members.join(", "));
        let edges = circle.edges.join("\n    ");
        format!("{folder}: {members} name each other in a circle:\n    {edges}")
    };
    circles.into_iter().map(complaint).collect()
}

/// The crates whose roots are among the files, without modules that exist for tests only.
fn crates(files: &[Source]) -> Vec<Crate<'_>> {
    let by_path: BTreeMap<_, _> = files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut crates = Vec::new();
    for root in files {
        let folder = root.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_root = root.path.ends_with("/lib.rs") || root.path.ends_with("/main.rs");
        if !is_root || folder.rsplit('/').next() != Some("src") {
            continue;
        }
        let mut modules = BTreeMap::new();
        let mut waiting = vec![(Place::new(), root)];
        while let Some((place, file)) = waiting.pop() {
            let mut inside = place.clone();
            modules.insert(place, Module::empty(file));
            for part in parts(file) {
                match part {
                    Part::File(name) => {
                        let child = [&inside[..], &[name]].concat();
                        let path = format!("{folder}/{}.rs", child.join("/"));
                        let file = by_path.get(path.as_str()).copied();
                        waiting.push((child, file.expect("every module has a file")));
                    }
                    Part::Opens(name) => {
                        inside.push(name);
                        modules.insert(inside.clone(), Module::empty(file));
                    }
                    Part::Closes => drop(inside.pop()),
                    Part::Names(named) => modules
                        .get_mut(&inside)
                        .expect("a module is known before its content")
                        .add(named),
                }
            }
        }
        crates.push(Crate { folder, modules });
    }
    crates
}

impl<'f> Module<'f> {
    fn empty(file: &'f Source) -> Self {
        Self {
            file,
            brought: BTreeMap::new(),
            named: Vec::new(),
        }
    }

    fn add(&mut self, named: Named) {
        if let Some(name) = &named.brought_as {
            let known = self.brought.entry(name.clone()).or_default();
            known.push(named.path.clone());
        }
        self.named.push(named);
    }

    /// What `name` stands for here, if it was brought in.
    fn sources(&self, name: &str) -> Vec<Vec<String>> {
        let all = || self.brought.get("*").into_iter().flatten();
        let one = |path: &Vec<String>| [&path[..], &[name.to_owned()]].concat();
        let known = self.brought.get(name).cloned();
        known.unwrap_or_else(|| all().map(one).collect())
    }
}

impl Crate<'_> {
    /// The modules that `path`, named in the module at `from`, leads through by what each brought
    /// in, and last to; none if it leads out of the crate at once.
    fn resolve(&self, from: &[String], path: &[String], renamed: usize) -> Vec<Place> {
        let (mut at, mut passed) = (from.to_vec(), Vec::new());
        for (position, name) in path.iter().enumerate() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ if self.modules.contains_key(&child) => at = child,
                _ => {
                    let sources = self.modules.get(&at).filter(|_| renamed > 0);
                    let sources = sources.map_or(Vec::new(), |module| module.sources(name));
                    let further = sources
                        .iter()
                        .flat_map(|path| self.resolve(&at, path, renamed - 1));
                    let further: Vec<_> = further.collect();
                    passed.extend((position > 0).then_some(at));
                    let Some(last) = further.last() else {
                        return passed;
                    };
                    at = last.clone();
                    passed.extend(further);
                }
            }
        }
        passed.push(at);
        passed
    }
}

/// At each level of a crate, the siblings that reach each other.
fn circles(of: &Crate<'_>) -> Vec<Circle> {
    let mut levels: BTreeMap<Place, BTreeMap<(String, String), BTreeSet<String>>> = BTreeMap::new();
    for (from, module) in &of.modules {
        for named in &module.named {
            let passed = of.resolve(from, &named.path, RENAMED);
            // Where a name was brought in, it need not be told again for each use of the name.
            if named.brought_as.is_none() && passed == of.resolve(from, &named.path[..1], RENAMED) {
                continue;
            }
            let how = format!("`{}`", named.path.join("::"));
            for to in passed {
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                    let level = levels.entry(from[..shared].to_vec()).or_default();
                    let places = level.entry((a.clone(), b.clone())).or_default();
                    places.insert(module.file.complaint(named.at, &how));
                }
            }
        }
    }
    let mut circles = Vec::new();
    for (parent, edges) in levels {
        let folder = [&[of.folder.to_owned()], &parent[..]].concat().join("/");
        for members in knots(edges.keys()) {
            let inside =
                |edge: &(String, String)| members.contains(&edge.0) && members.contains(&edge.1);
            let edges = edges.iter().filter(|(edge, _)| inside(edge));
            let told = edges.flat_map(|((a, b), places)| {
                places
                    .iter()
                    .map(move |place| format!("{a} -> {b} at {place}"))
            });
            circles.push(Circle {
                folder: folder.clone(),
                edges: told.collect(),
                members,
            });
        }
    }
    circles
}

/// The groups of names each of which is reached from every other.
fn knots<'e>(edges: impl Iterator<Item = &'e (String, String)>) -> Vec<Vec<String>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        reached.entry(from).or_default().insert(to);
    }
    let mut before = BTreeMap::new();
    while before != reached {
        before = reached.clone();
        for known in reached.values_mut() {
            let next: Vec<_> = known.iter().filter_map(|name| before.get(name)).collect();
            known.extend(next.into_iter().flatten());
        }
    }
    let there_and_back = |from: &str, to: &str| {
        let reaches = |a, b| reached.get(a).is_some_and(|known| known.contains(b));
        reaches(from, to) && reaches(to, from)
    };
    let mut groups: Vec<Vec<String>> = Vec::new();
    for name in reached.keys().filter(|name| there_and_back(name, name)) {
        match groups
            .iter_mut()
            .find(|group| there_and_back(&group[0], name))
        {
            Some(group) => group.push((*name).to_owned()),
            None => groups.push(vec![(*name).to_owned()]),
        }
    }
    groups
}

/// Those of a crate whose modules have these texts.
fn circles_of(modules: &[(&str, &str)]) -> Vec<Circle> {
    let top = modules.iter().filter(|(path, _)| !path.contains('/'));
    let root: String = top.map(|(name, _)| format!("mod {name};\n")).collect();
    let mut files = vec![Source::new("src/lib.rs", &root)];
    let paths = modules
        .iter()
        .map(|(name, text)| (format!("src/{name}.rs"), text));
    files.extend(paths.map(|(path, text)| Source::new(&path, text)));
    crates(&files).iter().flat_map(circles).collect()
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let ways = [
        "use super::a::A;",
        "use crate::{c, a::{self}};",
        "use crate::{c::{C, D}, a::{A as B, C}};",
        "fn f() -> crate::a::A { x }",
        "fn f() { super::a::f::<u8>() }",
        "use super::super::krate as k; use crate as all; fn f() { all::a::f() }",
        "mod inner { fn f() { super::super::a::f() } }",
    ];
    for way in ways {
        let found = circles_of(&[
            ("a", "use super::b::B;"),
            ("b", way),
            ("c", "use std::fmt;"),
        ]);
        assert_eq!(found.len(), 1, "{way}");
        assert_eq!(found[0].members, ["a", "b"], "{way}");
    }
}

#[test]
fn a_circle_is_found_through_what_a_parent_passes_on() {
    let modules = [
        ("p", "mod a;\nmod b;\npub use a::*;\nuse b::B as C;"),
        ("p/a", "use super::C;"),
        ("p/b", "use crate::p::A;"),
    ];
    let found = circles_of(&modules);
    let edges = [
        "a -> b at src/p/a.rs:1: `super::C`",
        "b -> a at src/p/b.rs:1: `crate::p::A`",
    ];
    assert_eq!(found[0].folder, "src/p");
    assert_eq!(found[0].edges, edges);
}

#[test]
fn a_circle_may_be_long_and_below_others() {
    let modules = [
        ("a", "mod x;\nuse crate::b::B;"),
        ("a/x", "fn f() {}\nfn g() { crate::b::f() }"),
        ("b", "use crate::c::C;"),
        ("c", "use crate::{a::x::X, d::D};"),
        ("d", "use std::fmt;"),
    ];
    let found = circles_of(&modules);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].members, ["a", "b", "c"]);
    assert!(
        found[0]
            .edges
            .contains(&"a -> b at src/a/x.rs:2: `crate::b::f`".to_owned())
    );
}

#[test]
fn what_goes_one_way_is_no_circle() {
    let modules = [
        (
            "a",
            "mod x;\nuse super::b::B;\nuse x::X;\n#[cfg(test)]\nmod tests { use crate::c::C; }",
        ),
        ("a/x", "use super::A;\nuse crate::Root;"),
        (
            "b",
            "//! crate::a::A\nfn f() { \"crate::a\"; self::a::f() }\nuse super::c::C;",
        ),
        (
            "c",
            "use ::b::B;\nuse other::a;\nfn f() { other::b::c() }\n#[cfg(test)]\nuse super::a::A;",
        ),
    ];
    assert_eq!(circles_of(&modules), []);
}

#[test]
fn a_circle_is_allowed_only_as_long_as_it_is_there() {
    let file = |name: &str, text: &str| Source::new(name, text);
    let files = [
        file("x/src/main.rs", "mod a;\nmod b;"),
        file("x/src/a.rs", "use crate::b;"),
        file("x/src/b.rs", "use crate::a;"),
    ];
    assert_eq!(
        circular(&files),
        ["x/src: a, b name each other in a circle:\n    \
          a -> b at x/src/a.rs:1: `crate::b`\n    b -> a at x/src/b.rs:1: `crate::a`"]
    );
}

#[test]
fn the_modules_of_every_crate_are_read() {
    let tree = crate::source::tree();
    let crates = crates(&tree);
    for folder in [
        "src",
        "proto/src",
        "crates/filter/src",
        "watcher/src",
        "tests/kubesim/src",
    ] {
        let found = crates
            .iter()
            .find(|one| one.folder == folder && one.modules.len() > 1);
        assert!(found.is_some(), "{folder} is not among the crates");
    }
    let server = crates
        .iter()
        .find(|one| one.folder == "src" && one.modules.len() > 1);
    let list = ["query".to_owned(), "list".to_owned()];
    let path = ["super", "scan", "Scan"].map(str::to_owned);
    let module = &server.expect("the server has modules").modules[&list[..]];
    assert!(module.named.iter().any(|named| named.path == path));
}
