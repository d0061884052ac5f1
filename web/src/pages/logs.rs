//! Logs of a run: its containers, and of one of them the last lines, or a range of them, or what a search finds.

mod lines;
mod search;
mod sources;

use std::time::Duration;

use askama::Template;
use bytes::Bytes;
use futures::StreamExt as _;
use hindsight_proto::v1::{ReadLogRequest, ReadLogResponse, RunNode};

use super::frame::{Frame, Place};
use super::shell::quoted;
use super::{Page, Shown};
use crate::api::{Answers, Refusal, log_of};
use crate::ask::Ask;
use crate::fault::Fault;
use crate::html::Name;
use crate::route::parameters;
use crate::status::{Badge, Shape, Status};
use crate::time::{When, between, timestamp};

use lines::{LINES, Line, Lines};
use search::{Found, Search};
use sources::{Source, Sources, Wanted};

/// How long after its last line a log that was not sealed is asked for again, in seconds.
const LIVE: f64 = 300.0;
/// How long a page of a failed run waits for the last lines.
const SOON: Duration = Duration::from_secs(2);
/// Lines that a page of a failed run shows.
const LAST: i64 = 10;

/// A log as it is stored.
pub(crate) struct LogFile {
    /// A name that is safe in a header.
    pub(crate) file: String,
    pub(crate) parts: Answers<Bytes>,
}

#[derive(Debug, Template)]
#[template(path = "logs.html")]
struct Logs {
    frame: Frame,
    name: Name,
    run: String,
    badge: Badge,
    sources: Vec<Item>,
    more: String,
    shown: Option<Opened>,
    search: Search,
    found: Option<Found>,
    /// All of the log as a file, if there is one.
    raw: Option<String>,
    /// The address of this page, if lines may follow.
    again: Option<String>,
    /// A page elsewhere that shows the log, if it is not here.
    elsewhere: Option<String>,
    is_unfinished: bool,
    commands: Vec<String>,
}

/// A container in the list.
#[derive(Debug)]
struct Item {
    shape: Option<Shape>,
    task: Option<Name>,
    step: Name,
    link: String,
    is_shown: bool,
    facts: String,
}

/// What is shown of one log.
#[derive(Debug)]
struct Opened {
    task: Option<Name>,
    step: Name,
    badge: Option<Badge>,
    facts: Vec<String>,
    written: Option<When>,
    range: String,
    lines: Vec<Row>,
    /// What stands before the number of a line in its address.
    line: String,
    first: i64,
    raw: String,
    times: String,
    has_times: bool,
    earlier: Option<String>,
    later: Option<String>,
    last: Option<String>,
}

/// A line, and when it was written if that is shown.
#[derive(Debug)]
struct Row {
    line: Line,
    at: String,
}

pub(crate) async fn logs(ask: &Ask, record: &str) -> Shown {
    let tree = ask.api.tree(record, false).await?;
    let sources = Sources::of(ask, record, &tree).await?;
    let empty = RunNode::default();
    let root = tree.nodes.first().unwrap_or(&empty);
    let (started, ended) = (root.start_time.is_some(), root.end_time.is_some());
    let status = Status::of_node(root.outcome(), started, ended);
    let search = Search::of(ask, record);
    let found = match search.is_asked() {
        true => Some(search.find(ask, record, &sources).await?),
        false => None,
    };
    let chosen = match found.is_none() {
        true => sources.shown(&Wanted::of(ask)),
        false => None,
    };
    let shown = match chosen {
        Some(source) => Some(Opened::of(ask, record, &sources, source).await?),
        None => None,
    };
    let is_live = chosen.is_some_and(|source| is_live(ask, source)) || status.is_unfinished();
    let may_change = is_live && found.is_none() && ask.query.get("from").is_empty();
    // The container that is read stays, whichever is written next.
    let again = may_change.then(|| match chosen {
        Some(source) => link(ask, record, &sources, source, &[]),
        None => asked(ask, record, &[]),
    });
    let items = sources.all.iter().map(|source| Item {
        shape: source.status.map(Status::shape),
        task: task(source),
        step: Name::new(&source.name(), 40),
        link: end(link(ask, record, &sources, source, &[])),
        is_shown: chosen.is_some_and(|chosen| is_same(chosen, source)),
        facts: facts(source).join(", "),
    });
    let view = Logs {
        frame: Frame::new(ask, format!("Logs of {}", root.object), Place::Elsewhere),
        name: Name::new(&root.object, 80),
        run: ask.links.run(record),
        badge: status.badge(),
        sources: items.collect(),
        more: more(&sources),
        shown,
        raw: (!sources.all.is_empty()).then(|| ask.links.raw_log(record, &[])),
        again,
        elsewhere: sources.page,
        is_unfinished: status.is_unfinished(),
        commands: commands(record, &search),
        search,
        found,
    };
    Ok(Page::of(&view))
}

/// Whether lines may follow although the run has ended.
fn is_live(ask: &Ask, source: &Source) -> bool {
    let last = timestamp(source.log.last_time);
    !source.log.sealed && last.is_some_and(|last| between(last, ask.clock.now) < LIVE)
}

fn is_same(one: &Source, other: &Source) -> bool {
    one.record == other.record && one.log.source == other.log.source
}

/// The parameters of a container: no more than it takes to tell it from the others.
fn named(record: &str, sources: &Sources, source: &Source) -> Vec<(&'static str, String)> {
    let id = source.id();
    let step = id.container.as_str();
    let all = || sources.all.iter();
    let mut named = vec![("step", step.to_owned())];
    if source.record != record {
        let result = |name: &str| name.rsplit_once('/').map(|(result, _)| result.to_owned());
        let is_near = result(record) == result(&source.record);
        let id = source.record.rsplit('/').next().unwrap_or_default();
        let task = if is_near { id } else { &source.record };
        named.insert(0, ("task", task.to_owned()));
    }
    let same = all().filter(|it| it.record == source.record && it.id().container == step);
    let is_one_pod = same.clone().all(|it| it.id().pod == id.pod);
    if !is_one_pod {
        named.push(("pod", id.pod.clone()));
    }
    if same.filter(|it| it.id().pod == id.pod).count() > 1 || step.is_empty() {
        named.push(("start", id.restart.to_string()));
    }
    named
}

/// What is asked of the logs of a run, on the same page.
fn asked(ask: &Ask, record: &str, more: &[(&str, &str)]) -> String {
    let kept = ["task", "pod", "step", "start", "times", "tz"].map(|key| (key, ask.query.get(key)));
    ask.links.logs(record, &[&kept, more].concat())
}

/// An address at the end of the lines of its page.
fn end(link: String) -> String {
    link + "#end"
}

/// The page of one container.
fn link(
    ask: &Ask,
    record: &str,
    sources: &Sources,
    source: &Source,
    more: &[(&str, &str)],
) -> String {
    let named = named(record, sources, source);
    let asked = asked_of(ask, &named, more);
    ask.links.logs(record, &asked)
}

fn asked_of<'a>(
    ask: &'a Ask,
    named: &'a [(&'static str, String)],
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let named = named.iter().map(|(key, value)| (*key, value.as_str()));
    let kept = ["times", "tz"].map(|key| (key, ask.query.get(key)));
    let is_new = |key: &str| more.iter().all(|(other, _)| *other != key);
    let kept = kept.into_iter().filter(|(key, _)| is_new(key));
    named.chain(kept).chain(more.iter().copied()).collect()
}

/// What the part of the run is called, if it is not the run itself.
fn task(source: &Source) -> Option<Name> {
    (!source.task.is_empty()).then(|| Name::new(&source.task, 40))
}

/// How much is stored of a log.
fn facts(source: &Source) -> Vec<String> {
    let log = &source.log;
    let mut facts = vec![counted(log.lines, "line"), size(log.bytes)];
    if log.holes > 0 {
        facts.push(counted(log.holes, "hole"));
    }
    if log.is_elsewhere {
        facts.push("in another system".to_owned());
    } else if !log.sealed {
        facts.push("not ended".to_owned());
    }
    facts
}

/// A number with a word.
fn counted(number: i64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", grouped(number))
}

/// A number with a comma after each three digits.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + 6);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit of which there is one.
fn size(bytes: i64) -> String {
    let number = bytes as f64;
    match bytes {
        ..1_024 => counted(bytes, "byte"),
        1_024..1_048_576 => format!("{:.1} KiB", number / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", number / 1_048_576.0),
        _ => format!("{:.1} GiB", number / 1_073_741_824.0),
    }
}

/// What of the containers is not listed.
fn more(sources: &Sources) -> String {
    let runs = (sources.more_runs > 0).then(|| {
        counted(
            i64::try_from(sources.more_runs).unwrap_or(i64::MAX),
            "more run",
        )
    });
    let containers = (sources.more > 0).then(|| {
        counted(
            i64::try_from(sources.more).unwrap_or(i64::MAX),
            "more container",
        )
    });
    let all: Vec<_> = [runs, containers].into_iter().flatten().collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(
            "{} are not listed; each run has a page of its own.",
            all.join(" and ")
        ),
    }
}

fn commands(record: &str, search: &Search) -> Vec<String> {
    let name = quoted(record);
    match search.is_asked() {
        true => vec![format!(
            "hindsight logs {name} --all --grep {}",
            quoted(&search.grep())
        )],
        false => vec![
            format!("hindsight logs {name}"),
            format!("hindsight logs {name} --all --tail 100 --timestamps"),
        ],
    }
}

impl Opened {
    async fn of(
        ask: &Ask,
        record: &str,
        sources: &Sources,
        source: &Source,
    ) -> Result<Self, Refusal> {
        let from = ask.query.get("from").parse::<i64>().ok();
        let from = from.map(|from| from.clamp(1, source.log.lines.max(1)));
        let found = match from {
            Some(from) => Lines::from(ask, source, from - 1).await?,
            None => Lines::last(ask, source, LINES).await?,
        };
        let first = found.all.front().map_or(1, |line| line.number);
        let last = found.all.back().map_or(0, |line| line.number);
        // Lines may have come since they were counted.
        let total = source.log.lines.max(last);
        let page = |from: i64| link(ask, record, sources, source, &[("from", &from.to_string())]);
        let has_times = ask.query.get("times") == "on";
        let switch = [
            ("times", if has_times { "" } else { "on" }),
            ("from", ask.query.get("from")),
        ];
        let named = named(record, sources, source);
        let number = first.to_string();
        let line = parameters(&asked_of(ask, &named, &[("from", &number)]));
        let raw: Vec<_> = named
            .iter()
            .filter(|(key, _)| *key != "task")
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let row = |line: Line| Row {
            at: match has_times {
                true => line.at(ask),
                false => String::new(),
            },
            line,
        };
        Ok(Self {
            task: task(source),
            step: Name::new(&source.name(), 60),
            badge: source.status.map(Status::badge),
            facts: facts(source),
            written: ask.clock.when_of(source.log.first_time),
            range: match found.all.is_empty() {
                true => "No lines".to_owned(),
                false => format!(
                    "Lines {} to {} of {}",
                    grouped(first),
                    grouped(last),
                    grouped(total)
                ),
            },
            line: format!("{line}#L"),
            first,
            raw: ask.links.raw_log(&source.record, &raw),
            times: link(ask, record, sources, source, &switch),
            has_times,
            earlier: (first > 1).then(|| page((first - LINES).max(1))),
            later: (last < total && from.is_some()).then(|| page(last + 1)),
            last: from
                .is_some()
                .then(|| end(link(ask, record, sources, source, &[]))),
            lines: found.all.into_iter().map(row).collect(),
        })
    }
}

/// The last lines of the step that ended a run, and their page; none if there are none.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) lines: Vec<Line>,
    pub(super) link: String,
}

/// The last lines of what ended a run. A page of the run goes without if they cannot be read, or not soon: they may
/// be in another system.
pub(super) async fn tail(ask: &Ask, record: &str, node: &RunNode, step: &str) -> Option<Tail> {
    let reading = read_tail(ask, record, node, step);
    tokio::time::timeout(SOON, reading).await.ok()?
}

async fn read_tail(ask: &Ask, record: &str, node: &RunNode, step: &str) -> Option<Tail> {
    let source = sources::of_failure(ask, record, node, step).await.ok()??;
    let lines = Lines::last(ask, &source, LAST).await.ok()?;
    let link = ask.links.logs(
        record,
        &[
            (
                "task",
                if source.record == record {
                    ""
                } else {
                    &source.record
                },
            ),
            ("pod", &source.id().pod),
            ("step", &source.id().container),
        ],
    );
    (!lines.all.is_empty()).then(|| Tail {
        lines: lines.all.into(),
        link: end(link),
    })
}

/// The log of a run, byte for byte: of one container if the address names it, else all of it as one text.
pub(crate) async fn raw_log(ask: &Ask, record: &str) -> Result<LogFile, Fault> {
    let id = record.rsplit('/').next().unwrap_or_default();
    let step = ask.query.get("step");
    let plain = |text: &str| -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
        text.chars().filter(is_plain).take(80).collect()
    };
    if step.is_empty() {
        return Ok(LogFile {
            file: format!("{}.log", plain(id)),
            parts: ask.api.log_text(record).await?,
        });
    }
    let asked = ReadLogRequest {
        name: log_of(record),
        pod: ask.query.get("pod").to_owned(),
        containers: vec![step.to_owned()],
        restart: ask.query.get("start").parse().ok(),
        ..ReadLogRequest::default()
    };
    let pieces = ask.api.lines(asked).await?;
    let text = |piece: Result<ReadLogResponse, Refusal>| {
        piece.map(|piece| Bytes::from(piece.lines.unwrap_or_default().text))
    };
    Ok(LogFile {
        file: format!("{}-{}.log", plain(id), plain(step)),
        parts: pieces.map(text).boxed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_are_short() {
        assert_eq!(
            (grouped(1), grouped(1_204), grouped(1_000_000)),
            ("1".to_owned(), "1,204".to_owned(), "1,000,000".to_owned())
        );
        assert_eq!(
            (size(1), size(2_048), size(3 << 30)),
            (
                "1 byte".to_owned(),
                "2.0 KiB".to_owned(),
                "3.0 GiB".to_owned()
            )
        );
        assert_eq!(counted(2, "hole"), "2 holes");
    }
}
