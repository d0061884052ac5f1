//! Which objects are the log of which container, by what they are called, and in which order.

use std::collections::BTreeMap;

use hindsight_storage::{LogSource, objects::ForeignObject};

/// What names of objects end with, apart from the container.
const ENDINGS: [&str; 8] = [
    ".gz", ".log", ".txt", ".json", ".jsonl", ".ndjson", ".zst", ".out",
];
/// Digits of seconds since 1970, as few as they are.
const SECONDS: usize = 10;

/// The objects below a folder by their container, each in the order in which they were written.
pub(super) fn sources(
    folder: &str,
    objects: Vec<ForeignObject>,
) -> Vec<(LogSource, Vec<ForeignObject>)> {
    let mut all: BTreeMap<(String, String), Vec<ForeignObject>> = BTreeMap::new();
    for object in objects {
        let Some(named) = named(folder, &object.path) else {
            continue;
        };
        all.entry(named).or_default().push(object);
    }
    let sources = all.into_iter().map(|((pod, container), mut objects)| {
        // Times of objects are whole seconds in some stores.
        objects.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
        let source = LogSource {
            pod,
            container,
            restart: 0,
        };
        (source, objects)
    });
    sources.collect()
}

/// The pod, if there is a folder for it, and the container. What lies deeper is of another run: names of
/// parents may have as many parts as its folder.
fn named(folder: &str, path: &str) -> Option<(String, String)> {
    let below = path.strip_prefix(folder.trim_matches('/')).unwrap_or(path);
    let below = below.trim_matches('/');
    let (pod, file) = below.rsplit_once('/').unwrap_or(("", below));
    let is_pod = !pod.contains('/');
    is_pod.then(|| (pod.to_owned(), container(file).to_owned()))
}

/// A name without what collectors add to it: endings, a time, and a UUID.
fn container(file: &str) -> &str {
    let mut name = file;
    while let Some(shorter) = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)) {
        name = shorter;
    }
    let uuid = name
        .len()
        .checked_sub(36)
        .filter(|at| name.is_char_boundary(*at));
    if let Some(at) = uuid
        && uuid::Uuid::try_parse(&name[at..]).is_ok()
    {
        name = name[..at].trim_end_matches(['-', '_', '.']);
    }
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if digits >= SECONDS {
        name = name[..name.len() - digits].trim_end_matches(['-', '_', '.']);
    }
    name
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_container_is_what_a_collector_adds_nothing_to() {
        for (file, expected) in [
            ("step-build.log", "step-build"),
            ("step-build", "step-build"),
            ("step-build-1743932245.log", "step-build"),
            ("step-build-1743932245.log.gz", "step-build"),
            (
                "step-build-1743932245-6c2a2e1f-1111-4000-8000-000000000040.log.gz",
                "step-build",
            ),
            ("1743932245-6c2a2e1f-1111-4000-8000-000000000040.json", ""),
            ("toolog.log", "toolog"),
            ("step-2024", "step-2024"),
            ("é-step", "é-step"),
        ] {
            assert_eq!(container(file), expected, "{file}");
        }
    }

    #[test]
    fn parts_of_a_container_have_the_order_of_their_times_and_what_lies_deeper_is_none() {
        let object = |path: &str, second| ForeignObject {
            path: path.to_owned(),
            size: 1,
            modified: Timestamp::from_second(second).unwrap(),
        };
        let found = sources(
            "logs/ci/r/run/",
            vec![
                object("logs/ci/r/run/step-b-1743932299.log", 2),
                object("logs/ci/r/run/step-b-1743932245.log", 2),
                object("logs/ci/r/run/step-b-1743999999.log", 1),
                object("logs/ci/r/run/pod-1/step-a.log", 9),
                object("logs/ci/r/run/results/other/step-a.log", 9),
            ],
        );
        let names: Vec<_> = found
            .iter()
            .map(|(source, objects)| {
                let ends = objects.iter().map(|it| it.path.rsplit('-').next().unwrap());
                (
                    source.pod.as_str(),
                    source.container.as_str(),
                    ends.collect(),
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                (
                    "",
                    "step-b",
                    vec!["1743999999.log", "1743932245.log", "1743932299.log"]
                ),
                ("pod-1", "step-a", vec!["a.log"]),
            ]
        );
    }
}
