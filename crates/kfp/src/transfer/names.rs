//! Names of objects for names that no object can have.

use std::collections::BTreeSet;

use crate::names::MAX_OBJECT_NAME;

/// Which names are taken already.
#[derive(Debug, Default)]
pub(super) struct Names {
    pipelines: BTreeSet<(String, String)>,
    versions: BTreeSet<(String, String)>,
}

impl Names {
    /// The name of the object of a pipeline: its own if an object can have it, else one like it. Of two that would be
    /// the same, the second gets the beginning of its id.
    pub(super) fn pipeline(&mut self, namespace: &str, name: &str, id: &str) -> String {
        let object = free(&like(name), id, |candidate| {
            !self
                .pipelines
                .contains(&(namespace.to_owned(), candidate.to_owned()))
        });
        self.pipelines
            .insert((namespace.to_owned(), object.clone()));
        object
    }

    /// The name of a version, and that of its object, likewise. Objects of one namespace have different names, of
    /// whichever pipelines they are versions.
    pub(super) fn version(
        &mut self,
        namespace: &str,
        pipeline: &str,
        name: &str,
        id: &str,
    ) -> (String, String) {
        let object = |version: &str| match version == pipeline {
            true => version.to_owned(),
            false => format!("{pipeline}-{version}"),
        };
        let version = free(&like(name), id, |candidate| {
            let name = object(candidate);
            let taken = (namespace.to_owned(), name.clone());
            name.len() <= MAX_OBJECT_NAME && !self.versions.contains(&taken)
        });
        let name = object(&version);
        self.versions.insert((namespace.to_owned(), name.clone()));
        (version, name)
    }
}

/// The name, or one with the beginning of the id, or if that is too long, the id alone.
fn free(name: &str, id: &str, is_free: impl Fn(&str) -> bool) -> String {
    let id = like(id);
    let short = id.get(..8).unwrap_or(&id);
    let with_id = like(&format!("{name}-{short}"));
    let candidates = [name, &with_id, short];
    let found = candidates
        .into_iter()
        .find(|candidate| !candidate.is_empty() && is_free(candidate));
    found.unwrap_or(&id).to_owned()
}

/// A name of an object that is like a name: lower-case, `-` for what an object cannot have.
pub(super) fn like(name: &str) -> String {
    let mut like = String::with_capacity(name.len());
    for c in name.chars().flat_map(char::to_lowercase) {
        let c = match c {
            'a'..='z' | '0'..='9' | '.' => c,
            _ => '-',
        };
        // A part between dots neither begins nor ends with a `-`, and is not empty.
        match (like.chars().last(), c) {
            (None | Some('.'), '-' | '.') | (Some('-'), '-') => {}
            (Some('-'), '.') => {
                like.pop();
                like.push('.');
            }
            _ => like.push(c),
        }
    }
    let end = like.trim_end_matches(['-', '.']).len();
    like.truncate(end);
    like
}

#[cfg(test)]
mod tests {
    use super::{Names, like};

    #[test]
    fn kfp_28_a_name_that_an_object_can_have_stays_and_another_becomes_one() {
        for (name, expected) in [
            ("a.b-c", "a.b-c"),
            ("Hello World!", "hello-world"),
            ("2026-01-31 10-00-00", "2026-01-31-10-00-00"),
            ("__x__", "x"),
            ("a -. b..c", "a.b.c"),
            ("ÄB", "b"),
            ("!!", ""),
        ] {
            assert_eq!(like(name), expected, "{name}");
        }
    }

    #[test]
    fn kfp_28_names_that_become_the_same_are_told_apart() {
        let mut names = Names::default();
        let mut of = |namespace: &str, name: &str, id: &str| names.pipeline(namespace, name, id);
        assert_eq!(of("", "My Run", "aaaaaaaa-1"), "my-run");
        assert_eq!(of("", "my run", "bbbbbbbb-2"), "my-run-bbbbbbbb");
        assert_eq!(of("x", "my run", "cccccccc-3"), "my-run");
        assert_eq!(of("", "!!", "dddddddd-4"), "dddddddd");
        let mut of = |pipeline: &str, name: &str, id: &str| names.version("", pipeline, name, id);
        let pair = |version: &str, object: &str| (version.to_owned(), object.to_owned());
        assert_eq!(of("foo", "foo", "1"), pair("foo", "foo"));
        assert_eq!(of("foo", "bar-baz", "2"), pair("bar-baz", "foo-bar-baz"));
        assert_eq!(
            of("foo-bar", "baz", "33333333-"),
            pair("baz-33333333", "foo-bar-baz-33333333")
        );
        let long = "v".repeat(250);
        assert_eq!(
            of("foo", &long, "44444444-"),
            pair("44444444", "foo-44444444")
        );
    }
}
