//! Sending what an earlier watcher had read and not sent. The pods may be gone, so that it is sent before anything of
//! the same logs is read again.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use hindsight_proto::v1::{AppendLogRequest, LogLines, LogSource};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{debug, error, info};

use super::{send::CALL, server};
use crate::{
    logs::{Numbered, Overlap, numbered},
    shared::Shared,
    sink::{Severity, SinkError},
    spool::{FileId, Spool},
};

/// So many sources are sent at once.
const AT_ONCE: usize = 8;

/// So often it is tried to send a source while the server is there: another watcher may write to the same log.
const TRIES: u32 = 5;

/// Sends what the spool has, and waits for the server if need be. What the server refuses stays on disk until the next
/// start.
pub(super) async fn send(shared: &Shared) {
    let Some(spool) = &shared.server.spool else {
        return;
    };
    // What follows refused lines of a source would be stored before them.
    let mut refused = HashSet::new();
    for file in spool.lines().left() {
        let sources = read(spool, file).await;
        if !sources.is_empty() {
            let count = sources.len();
            info!("logs of {count} containers were found in the spool");
        }
        let (waiting, sources): (Vec<_>, Vec<_>) = sources
            .into_iter()
            .partition(|left| refused.contains(&left.key()));
        let mut sent = stream::iter(sources)
            .map(|left| async move { (left.key(), one(shared, left).await) })
            .buffer_unordered(AT_ONCE);
        let mut is_over = waiting.is_empty();
        while let Some((key, is_sent)) = sent.next().await {
            if !is_sent {
                is_over = false;
                refused.insert(key);
            }
        }
        if is_over {
            let spool = Arc::clone(spool);
            let removed = spawn_blocking(move || spool.lines().drop_file(file)).await;
            removed.unwrap_or_else(|error| error!("{error}"));
        }
    }
}

/// Log, pod, container and start.
type Key = (String, String, String, i32);

/// What is left of one source.
#[derive(Debug)]
struct Left {
    log: String,
    source: LogSource,
    parts: Vec<LogLines>,
    /// Whether nothing follows.
    ends: bool,
}

async fn read(spool: &Arc<Spool>, file: FileId) -> Vec<Left> {
    let spool = Arc::clone(spool);
    let read = spawn_blocking(move || spool.lines().read(file)).await;
    by_source(read.unwrap_or_default())
}

fn by_source(calls: Vec<AppendLogRequest>) -> Vec<Left> {
    let mut found: Vec<Left> = Vec::new();
    let mut places = HashMap::new();
    for call in calls {
        let left = Left {
            log: call.name,
            source: call.source.unwrap_or_default(),
            parts: Vec::new(),
            ends: false,
        };
        let at = *places.entry(left.key()).or_insert(found.len());
        if at == found.len() {
            found.push(left);
        }
        let left = &mut found[at];
        left.ends |= call.seal;
        left.parts.extend(call.lines);
    }
    found
}

/// Sends what is left of a source. Whether it is over then.
async fn one(shared: &Shared, left: Left) -> bool {
    let (mut failures, mut tries) = (0, 0);
    loop {
        let error = match once(shared, &left).await {
            Ok(()) => return true,
            Err(error) => error,
        };
        let (pod, container) = (&left.source.pod, &left.source.container);
        match error.severity {
            _ if server::is_over_quota(&error) => {
                debug!("log of {container} in {pod} ends here: {error}");
                return true;
            }
            _ if server::is_missing(&error) => return false,
            Severity::Unavailable => failures += 1,
            Severity::Passing if tries < TRIES => {
                (failures, tries) = (failures + 1, tries + 1);
            }
            Severity::Passing | Severity::Denied | Severity::Lasting => {
                error!(
                    "lines of the log of {container} in {pod} stay in the spool until the next start: {error}"
                );
                return false;
            }
        }
        sleep(server::wait(shared, &error, failures)).await;
    }
}

/// Sends what of a source the server does not have.
async fn once(shared: &Shared, left: &Left) -> Result<(), SinkError> {
    let held = server::held(shared, &left.log).await?;
    let held = held
        .into_iter()
        .find(|held| held.source.as_ref() == Some(&left.source));
    let held = held.unwrap_or_default();
    let (pod, container) = (&left.source.pod, &left.source.container);
    let (found, stored) = (left.lines().count(), held.lines);
    debug!("{found} lines of {container} in {pod} were found, {stored} are stored");
    if held.sealed {
        return Ok(());
    }
    let written = left.lines().filter(|line| !line.is_hole);
    let first = written.map(|line| line.time).min();
    let first = first.filter(|_| held.lines > 0);
    let overlap = server::overlap(shared, (&left.log, &left.source), first).await?;
    let calls = calls(left, held.lines, overlap);
    if calls.is_empty() {
        return Ok(());
    }
    server::call(shared, shared.server.sink.append_log(calls)).await
}

/// The calls that append what is not stored after the `stored` lines that are.
fn calls(left: &Left, stored: i64, mut overlap: Overlap) -> Vec<AppendLogRequest> {
    let mut calls: Vec<AppendLogRequest> = Vec::new();
    let mut next = stored;
    let mut before = 0;
    for line in left.lines() {
        let is_stored = match line.is_hole {
            true => line.number < stored,
            false => overlap.is_stored(line.time),
        };
        if is_stored {
            continue;
        }
        let has_room = |call: &AppendLogRequest| {
            let lines = call.lines.as_ref();
            lines.is_some_and(|lines| lines.text.len() < CALL)
        };
        if !calls.last().is_some_and(has_room) {
            before = 0;
            calls.push(left.call(next));
        }
        let lines = calls.last_mut().and_then(|call| call.lines.as_mut());
        let Some(lines) = lines else { continue };
        lines.text.extend_from_slice(line.text);
        lines.times.push(line.time.wrapping_sub(before));
        lines.holes.extend(line.is_hole.then_some(next));
        before = line.time;
        next = next.saturating_add(1);
    }
    if left.ends && calls.is_empty() {
        calls.push(left.call(next));
    }
    if let Some(last) = calls.last_mut() {
        last.seal = left.ends;
    }
    calls
}

impl Left {
    fn lines(&self) -> impl Iterator<Item = Numbered<'_>> {
        self.parts.iter().flat_map(numbered)
    }

    fn key(&self) -> Key {
        let LogSource {
            pod,
            container,
            restart,
        } = self.source.clone();
        (self.log.clone(), pod, container, restart)
    }

    /// A call without lines.
    fn call(&self, first_line: i64) -> AppendLogRequest {
        AppendLogRequest {
            name: self.log.clone(),
            source: Some(self.source.clone()),
            lines: Some(LogLines {
                first_line,
                ..LogLines::default()
            }),
            seal: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: (&str, &str) = ("pod", "step-a");

    fn call(first_line: i64, text: &str, times: &[i64], holes: &[i64]) -> AppendLogRequest {
        AppendLogRequest {
            name: "log".to_owned(),
            source: Some(LogSource {
                pod: SOURCE.0.to_owned(),
                container: SOURCE.1.to_owned(),
                restart: 0,
            }),
            lines: Some(LogLines {
                first_line,
                text: text.into(),
                times: times.to_vec(),
                holes: holes.to_vec(),
            }),
            seal: false,
        }
    }

    fn left(ends: bool) -> Left {
        let mut calls = vec![
            call(7, "a\nb\n", &[10, 0], &[]),
            call(9, "missing\nc\n", &[10, 5], &[9]),
        ];
        calls[1].seal = ends;
        let mut found = by_source(calls);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// The lines that are sent, by number, time and text; those that are holes; and whether they are the last.
    type Sent = (Vec<(i64, i64, String)>, Vec<i64>, bool);

    fn sent(left: &Left, stored: i64, times: &[i64]) -> Sent {
        let calls = calls(left, stored, Overlap::new(times, false));
        let (mut sent, mut holes) = (Vec::new(), Vec::new());
        for call in &calls {
            let of = call.lines.as_ref().unwrap();
            sent.extend(numbered(of).map(|line| {
                let text = String::from_utf8(line.text.to_vec()).unwrap();
                (line.number, line.time, text.trim_end().to_owned())
            }));
            holes.extend(&of.holes);
        }
        (sent, holes, calls.last().is_some_and(|call| call.seal))
    }

    fn line(number: i64, time: i64, text: &str) -> (i64, i64, String) {
        (number, time, text.to_owned())
    }

    #[test]
    fn what_the_server_has_is_not_sent_again() {
        let (a, b) = (line(7, 10, "a"), line(8, 10, "b"));
        let (hole, c) = (line(9, 10, "missing"), line(10, 15, "c"));
        assert_eq!(
            sent(&left(false), 7, &[]),
            (vec![a, b.clone(), hole.clone(), c.clone()], vec![9], false)
        );
        assert_eq!(
            sent(&left(true), 8, &[10]),
            (vec![b, hole, c.clone()], vec![9], true)
        );
        assert_eq!(sent(&left(true), 10, &[10, 10]), (vec![c], vec![], true));
        assert_eq!(sent(&left(true), 11, &[10, 10, 15]), (vec![], vec![], true));
        assert_eq!(
            sent(&left(false), 11, &[10, 10, 15]),
            (vec![], vec![], false)
        );
    }

    #[test]
    fn lines_follow_those_that_another_watcher_has_stored() {
        let (sent, holes, _) = sent(&left(false), 30, &[10, 10]);
        assert_eq!((sent, holes), (vec![line(30, 15, "c")], vec![]));
    }

    #[test]
    fn a_call_is_no_larger_than_the_server_takes() {
        let text = ["x".repeat(200_000), "\n".to_owned()].concat();
        let lines = (0..10).map(|n| call(n, &text, &[n], &[])).collect();
        let calls = calls(&by_source(lines)[0], 0, Overlap::new(&[], false));
        let counts = calls.iter().map(|call| call.lines.as_ref().unwrap());
        let counts: Vec<_> = counts.map(|of| (of.first_line, of.times.len())).collect();
        assert_eq!(counts, [(0, 6), (6, 4)]);
    }
}
