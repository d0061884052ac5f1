//! Rules about who uses what: rooms, crates, the environment.

use crate::{crates::Place, source::Source};

/// Complains about paths that begin with `crate::` and enter a room that is not in the table.
pub(crate) fn between_rooms(files: &[Source], rooms: &[(&str, &[&str])]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let Some(room) = room_of(&file.path) else {
            continue;
        };
        let Some((_, allowed)) = rooms.iter().find(|(name, _)| *name == room) else {
            let text = format!("`{room}` is not in the table of rooms in tests/tidy.rs");
            complaints.push(file.complaint(0, &text));
            continue;
        };
        for (at, entered) in entered(&file.code) {
            let may = entered == room
                || allowed.contains(&"*")
                || allowed.contains(&entered)
                || !rooms.iter().any(|(name, _)| *name == entered);
            if !may {
                let list = if allowed.is_empty() {
                    "nothing".into()
                } else {
                    allowed.join(", ")
                };
                let text = format!("`{room}` may not enter `{entered}`; it may enter {list}");
                complaints.push(file.complaint(at, &text));
            }
        }
    }
    complaints
}

fn room_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let room = rest.split('/').next()?.trim_end_matches(".rs");
    (!["lib", "main", "bin"].contains(&room)).then_some(room)
}

/// The first name after each `crate::`, also of every item of `crate::{...}`, and its place.
fn entered(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        let start = at + prefix.len();
        if !code[start..].starts_with('{') {
            found.extend(first_name(code, start));
            continue;
        }
        let mut depth = 0_usize;
        for (offset, next) in code[start..].char_indices() {
            match next {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 1 && (next == '{' || next == ',') {
                found.extend(first_name(code, start + offset + 1));
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// The name that begins at or after this byte, past white space.
fn first_name(code: &str, from: usize) -> Option<(usize, &str)> {
    let rest = &code[from..];
    let start = from + (rest.len() - rest.trim_start().len());
    let length = code[start..].find(|next: char| !next.is_alphanumeric() && next != '_')?;
    (length > 0).then(|| (start, &code[start..start + length]))
}

pub(crate) fn to_crates(files: &[Source], crates: &[Place]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !is_free(&file.path)) {
        for place in crates {
            let never = place.never.iter().find(|pattern| fits(pattern, &file.path));
            let may = place.only.iter().any(|pattern| fits(pattern, &file.path));
            if may && never.is_none() {
                continue;
            }
            let text = match never {
                Some(pattern) => format!("`{}` may not be named in {pattern}", place.name),
                None => {
                    format!(
                        "`{}` may be named only in {}",
                        place.name,
                        place.only.join(", ")
                    )
                }
            };
            for at in file
                .words(place.name)
                .filter(|at| names_crate(&file.code, *at, place.name))
            {
                complaints.push(file.complaint(at, &text));
            }
        }
    }
    complaints
}

/// Whether the word at this byte is the name of a crate: the start of a path, or used whole.
fn names_crate(code: &str, at: usize, name: &str) -> bool {
    let before = code[..at].trim_end();
    let after = code[at + name.len()..].trim_start();
    if before.ends_with("::") && !before.ends_with(" ::") {
        return false;
    }
    let used = before.ends_with("use") || before.ends_with("extern crate");
    after.starts_with("::") || used && (after.starts_with(';') || after.starts_with("as "))
}

pub(crate) fn environment(files: &[Source], allowed: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let tests = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
        if tests || is_free(&file.path) || allowed.iter().any(|pattern| fits(pattern, &file.path)) {
            continue;
        }
        for (at, _) in file.code.match_indices("env::var") {
            let text = format!("reads the environment; only {} does", allowed[0]);
            complaints.push(file.complaint(at, &text));
        }
    }
    complaints
}

/// Integration tests, benchmarks and examples; the simulator among the tests is a crate like
/// any other.
fn is_free(path: &str) -> bool {
    let simulator = path.starts_with("tests/kubesim/src/");
    let modules = path.contains("src/");
    !simulator
        && !modules
        && ["tests/", "benches/", "examples/"]
            .iter()
            .any(|free| path.starts_with(free) || path.contains(&format!("/{free}")))
}

fn fits(pattern: &str, path: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        path.ends_with(end)
    } else if let Some(start) = pattern.strip_suffix('*') {
        path.starts_with(start)
    } else if pattern.ends_with('/') {
        path.starts_with(pattern)
    } else {
        path == pattern
    }
}

#[test]
fn a_pattern_is_a_beginning_an_end_or_the_whole_path() {
    let cases = [
        ("src/cli*", "src/cli/get.rs", true),
        ("src/cli*", "src/cli.rs", true),
        ("src/cli*", "watcher/src/cli.rs", false),
        ("src/config/", "src/config/sources.rs", true),
        ("src/config/", "src/config.rs", false),
        ("*/metrics.rs", "src/grpc/metrics.rs", true),
        ("src/main.rs", "src/main.rs", true),
        ("src/main.rs", "watcher/src/main.rs", false),
    ];
    for (pattern, path, expected) in cases {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}
