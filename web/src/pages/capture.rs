//! What is stored of the runs of the last days: how soon, how many have no end, what comes from which cluster.

use askama::Template;
use hindsight_filter::{run_filter, words};
use hindsight_proto::v1::{AggregateGroup, AggregateRequest, ListRunsRequest, RunRow};
use prost_types::{Struct, value::Kind as Value};

use super::frame::{Frame, Place};
use super::list::{Row, rows};
use super::series::asking;
use super::{Page, Shown};
use crate::ask::{Ask, results_of};
use crate::time::{When, between, length, timestamp};

/// Days that are looked at.
const DAYS: u32 = 7;
/// Finished runs whose delay is measured, and runs of a list.
const MEASURED: i32 = 500;
const LISTED: i32 = 10;
/// Groups of one table.
const GROUPS: i32 = 100;
/// A run is stored late after so many seconds.
const LATE: f64 = 60.0;

#[derive(Debug, Template)]
#[template(path = "capture.html")]
struct Capture {
    frame: Frame,
    scope: String,
    action: String,
    days: u32,
    delay: Option<Delay>,
    sources: Vec<Source>,
    is_clustered: bool,
    sources_left_out: i64,
    long: Vec<Row>,
    long_link: String,
    vanished: Vec<Row>,
    vanished_link: String,
}

/// How long after their ends runs were stored.
#[derive(Debug)]
struct Delay {
    count: usize,
    p50: String,
    p95: String,
    most: String,
    late: usize,
}

/// Where runs come from.
#[derive(Debug)]
struct Source {
    cluster: String,
    parent: String,
    link: String,
    count: String,
    unfinished: String,
    stored: Option<When>,
    began: Option<When>,
}

pub(crate) async fn capture(ask: &Ask) -> Shown {
    let scope = ask.scope();
    let recent = format!("since:{DAYS}d");
    let long = "status:running,waiting until:24h";
    let vanished = format!("vanished since:{DAYS}d");
    let list = |query: &str, size| {
        ask.api.list_runs(ListRunsRequest {
            page_size: size,
            time_zone: ask.look.zone.clone(),
            ..asking(scope, query)
        })
    };
    let read = words::read(&recent, &ask.present()).map_or_else(|_| String::new(), |it| it.cel);
    let sources = ask.api.aggregate(AggregateRequest {
        parent: results_of(scope),
        filter: format!("({read}) && {}", run_filter()),
        group_by: vec!["cluster,parent".to_owned()],
        measures: vec!["count,unfinished,last(updated),last(started)".to_owned()],
        order_by: "last(updated) desc".to_owned(),
        limit: GROUPS,
        ..AggregateRequest::default()
    });
    let (newest, sources, long_runs, vanished_runs) = futures::try_join!(
        list(&recent, MEASURED),
        sources,
        list(long, LISTED),
        list(&vanished, LISTED)
    )?;
    let view = Capture {
        frame: Frame::new(ask, "Capture", Place::Capture),
        scope: scope.to_owned(),
        action: ask.links.capture(""),
        days: DAYS,
        delay: delay(&newest.runs),
        is_clustered: sources
            .groups
            .iter()
            .any(|group| text_of(group.keys.as_ref(), "cluster").is_some()),
        sources: sources.groups.iter().map(|it| source(ask, it)).collect(),
        sources_left_out: sources.groups_left_out,
        long: rows(ask, &long_runs.runs),
        long_link: ask.links.runs(long, scope),
        vanished: rows(ask, &vanished_runs.runs),
        vanished_link: ask.links.runs(&vanished, scope),
    };
    Ok(Page::of(&view))
}

fn source(ask: &Ask, group: &AggregateGroup) -> Source {
    let parent = text_of(group.keys.as_ref(), "parent").unwrap_or_default();
    let measures = group.measures.as_ref();
    let when = |name: &str| {
        let time = text_of(measures, name)?.parse().ok()?;
        Some(ask.clock.when(time))
    };
    let number = |name: &str| match value_of(measures, name) {
        Some(Value::NumberValue(number)) => number.to_string(),
        _ => String::new(),
    };
    Source {
        cluster: text_of(group.keys.as_ref(), "cluster")
            .unwrap_or_default()
            .to_owned(),
        link: ask.links.runs("", parent),
        parent: parent.to_owned(),
        count: number("count"),
        unfinished: number("unfinished"),
        stored: when("last(updated)"),
        began: when("last(started)"),
    }
}

fn value_of<'a>(fields: Option<&'a Struct>, name: &str) -> Option<&'a Value> {
    fields?.fields.get(name)?.kind.as_ref()
}

fn text_of<'a>(fields: Option<&'a Struct>, name: &str) -> Option<&'a str> {
    match value_of(fields, name)? {
        Value::StringValue(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// From the end of each finished run to its last change in the store.
fn delay(runs: &[RunRow]) -> Option<Delay> {
    let delays = runs.iter().filter_map(|run| {
        let (ended, stored) = (timestamp(run.end_time)?, timestamp(run.update_time)?);
        Some(between(ended, stored).max(0.0))
    });
    let mut delays: Vec<f64> = delays.collect();
    delays.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (delays.len() * percent).div_ceil(100).max(1);
        delays.get(rank - 1).copied().map(length)
    };
    Some(Delay {
        count: delays.len(),
        p50: at(50)?,
        p95: at(95)?,
        most: at(100)?,
        late: delays.iter().filter(|delay| **delay > LATE).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_finished_runs() {
        let time = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let run = |ended, stored| RunRow {
            end_time: ended,
            update_time: stored,
            ..RunRow::default()
        };
        assert!(delay(&[run(None, time(5))]).is_none());
        let mut runs: Vec<_> = (1..=19)
            .map(|late| run(time(100), time(100 + late)))
            .collect();
        runs.push(run(time(100), time(1_100)));
        runs.push(run(None, time(9_000)));
        let delay = delay(&runs).unwrap();
        assert_eq!((delay.count, delay.late), (20, 1));
        assert_eq!(
            [delay.p50.as_str(), &delay.p95, &delay.most],
            ["10 s", "19 s", "16 m 40 s"]
        );
    }
}
