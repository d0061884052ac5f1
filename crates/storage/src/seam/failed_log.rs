//! Which of the logs of a run is that of what failed, and its end.

use std::collections::{BTreeSet, VecDeque};

use hindsight_logs::{Lines, Window, decode, ends};

use super::{Error, LogKind, LogStore, StoredLog};

/// How containers of steps and of sidecars are named in Tekton.
const STEP: &str = "step-";
const SIDECAR: &str = "sidecar-";
/// Containers that Argo adds to the one of a node.
const BESIDE: [&str; 2] = ["wait", "init"];

/// The part of a run that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedPart<'a> {
    /// A step, by its name.
    Step(&'a str),
    /// A node that has a pod of its own, by what the names of both end with.
    Pod(&'a str),
    /// A run that says nothing of its steps.
    Whole,
}

impl FailedPart<'_> {
    fn has(self, log: &StoredLog) -> bool {
        let source = &log.key.source;
        let container = source.container.as_str();
        match self {
            Self::Step(step) => {
                container == step || container.strip_prefix(STEP).is_some_and(|it| it == step)
            }
            Self::Pod(end) => {
                !BESIDE.contains(&container) && source.pod.rsplit('-').next() == Some(end)
            }
            Self::Whole => !container.starts_with(SIDECAR),
        }
    }
}

/// The log of a part that was written last, among those with a line. Without one it is what was uploaded, unless
/// only a pod is meant.
#[must_use]
pub fn failed_log<'l>(sources: &'l [StoredLog], part: FailedPart<'_>) -> Option<&'l StoredLog> {
    let last = |kind: LogKind, has: &dyn Fn(&StoredLog) -> bool| {
        let there = sources.iter().filter(|log| log.key.kind == kind);
        let there = there.filter(|log| log.lines > 0 && has(log));
        there.max_by_key(|log| (log.last_us, log.key.source.restart, log.row))
    };
    let upload = || match part {
        FailedPart::Pod(_) => None,
        FailedPart::Step(_) | FailedPart::Whole => last(LogKind::Uploaded, &|_| true),
    };
    last(LogKind::Container, &|log| part.has(log)).or_else(upload)
}

/// The log whose end counts for the signature of a failure: it is sealed, and where the run says nothing of its steps
/// the only container.
#[must_use]
pub fn signing_log<'l>(
    sources: &'l [StoredLog],
    step: Option<&str>,
    has_steps: bool,
) -> Option<&'l StoredLog> {
    let part = match (step, has_steps) {
        (Some(step), _) => FailedPart::Step(step),
        (None, true) => return None,
        (None, false) => FailedPart::Whole,
    };
    let names = sources.iter().filter(|log| part.has(log));
    let names: BTreeSet<&str> = names.map(|log| log.key.source.container.as_str()).collect();
    if part == FailedPart::Whole && names.len() > 1 {
        return None;
    }
    failed_log(sources, part).filter(|log| log.sha256.is_some())
}

/// The last lines of a log as text, of `most` bytes at most, without those that stand for lines that are missing.
pub async fn log_tail(store: &dyn LogStore, log: &StoredLog, most: usize) -> Result<String, Error> {
    let (mut parts, mut bytes, mut before) = (VecDeque::new(), 0, i64::MAX);
    while bytes < most
        && let Some(chunk) = store
            .chunk_before(log.row, before, Window::default())
            .await?
    {
        before = chunk.head.first_line;
        let text = without_holes(&decode(&chunk)?);
        bytes += text.len();
        parts.push_front(text);
    }
    let text = Vec::from(parts).concat();
    let end = &text[text.len().saturating_sub(most)..];
    Ok(String::from_utf8_lossy(end).into_owned())
}

fn without_holes(lines: &Lines) -> Vec<u8> {
    if lines.holes.is_empty() {
        return lines.text.to_vec();
    }
    let (mut text, mut from) = (Vec::with_capacity(lines.text.len()), 0);
    for (end, line) in ends(&lines.text).zip(lines.first..) {
        if lines.holes.binary_search(&line).is_err() {
            text.extend_from_slice(&lines.text[from..end]);
        }
        from = end;
    }
    text
}

#[cfg(test)]
mod tests {
    use hindsight_filter::model::RecordName;

    use super::*;
    use crate::seam::{LogKey, LogSource};

    fn log(kind: LogKind, pod: &str, container: &str, last_us: i64) -> StoredLog {
        StoredLog {
            row: last_us,
            key: LogKey {
                run: "a/results/r/records/u".parse::<RecordName>().unwrap(),
                kind,
                source: LogSource {
                    pod: pod.to_owned(),
                    container: container.to_owned(),
                    restart: 0,
                },
            },
            lines: 1,
            bytes: 2,
            stored_bytes: 2,
            first_us: Some(last_us),
            last_us: Some(last_us),
            holes: 0,
            sha256: None,
            packed: 0,
            version: 1,
            signed: false,
        }
    }

    #[track_caller]
    fn finds(sources: &[StoredLog], part: FailedPart<'_>, wanted: Option<i64>) {
        let found = failed_log(sources, part).map(|log| log.row);
        assert_eq!(found, wanted, "{part:?}");
    }

    #[test]
    fn the_log_of_what_failed_is_the_last_one_of_its_part() {
        let container = LogKind::Container;
        let mut sources = vec![
            log(container, "flow-build-11", "main", 1),
            log(container, "flow-build-11", "wait", 9),
            log(container, "flow-test-22", "main", 3),
            log(container, "pod", "step-unit", 4),
            log(container, "pod-retry1", "step-unit", 5),
            log(container, "pod", "sidecar-db", 10),
        ];
        finds(&sources, FailedPart::Step("unit"), Some(5));
        finds(&sources, FailedPart::Step("lint"), None);
        finds(&sources, FailedPart::Pod("11"), Some(1));
        finds(&sources, FailedPart::Pod("33"), None);
        finds(&sources, FailedPart::Whole, Some(9));
        sources.push(log(LogKind::Uploaded, "", "", 2));
        finds(&sources, FailedPart::Step("lint"), Some(2));
        finds(&sources, FailedPart::Pod("33"), None);
        sources[4].lines = 0;
        finds(&sources, FailedPart::Step("unit"), Some(4));
        finds(&[], FailedPart::Whole, None);
    }
}
