//! Pipelines that are flaky, and pipelines that became slower, with the runs that show it.

use askama::Template;
use hindsight_proto::v1::{
    FlakyPipeline, ListFlakyRequest, ListRegressionsRequest, Regression, RunPoint, RunSeries,
    regression,
};

use super::frame::{Frame, Place};
use super::{Page, Shown};
use crate::api::{Kind, Refusal};
use crate::ask::{Ask, results_of};
use crate::html::end_cut;
use crate::query::{self, Wrong};
use crate::route::Of;
use crate::time::{When, length};

/// Pairs of runs that are shown of one pipeline.
const PAIRS: usize = 3;
/// Longest name of a version.
const VERSION: usize = 12;

#[derive(Debug, Template)]
#[template(path = "health.html")]
struct Health {
    frame: Frame,
    query: String,
    scope: String,
    action: String,
    wrong: Option<Wrong>,
    flaky: Vec<Flaky>,
    slower: Vec<Slower>,
    since: Option<When>,
    read: i64,
    incomplete: bool,
}

#[derive(Debug)]
struct Series {
    namespace: String,
    name: String,
    link: String,
}

#[derive(Debug)]
struct Flaky {
    series: Series,
    is_sure: bool,
    episodes: i64,
    runs: i64,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    version: String,
    failed: Point,
    succeeded: Point,
}

#[derive(Debug)]
struct Point {
    name: String,
    link: String,
    start: Option<When>,
}

#[derive(Debug)]
struct Slower {
    series: Series,
    what: &'static str,
    before: String,
    after: String,
    change: String,
    began: Point,
    runs_since: i64,
    is_over: bool,
}

pub(crate) async fn health(ask: &Ask) -> Shown {
    let (text, scope) = (ask.query.get("q"), ask.scope());
    let now = ask.present();
    let mut view = Health {
        frame: Frame::new(ask, "Health", Place::Health),
        query: text.to_owned(),
        scope: scope.to_owned(),
        action: ask.links.health("", ""),
        wrong: query::wrong_word(text, &now),
        flaky: Vec::new(),
        slower: Vec::new(),
        since: None,
        read: 0,
        incomplete: false,
    };
    if view.wrong.is_some() {
        return Ok(Page::with(axum::http::StatusCode::BAD_REQUEST, &view));
    }
    let flaky = ask.api.flaky(ListFlakyRequest {
        parent: results_of(scope),
        query: text.to_owned(),
        time_zone: ask.look.zone.clone(),
        ..ListFlakyRequest::default()
    });
    let slower = ask.api.regressions(ListRegressionsRequest {
        parent: results_of(scope),
        query: text.to_owned(),
        time_zone: ask.look.zone.clone(),
        ..ListRegressionsRequest::default()
    });
    let (flaky, slower) = match futures::try_join!(flaky, slower) {
        Ok(found) => found,
        Err(Refusal {
            kind: Kind::Invalid,
            message,
        }) => {
            view.wrong = Some(query::wrong_cel(text, &now, message));
            return Ok(Page::with(axum::http::StatusCode::BAD_REQUEST, &view));
        }
        Err(refusal) => return Err(refusal.into()),
    };
    view.flaky = flaky.pipelines.iter().map(|it| flaky_of(ask, it)).collect();
    view.slower = slower
        .regressions
        .iter()
        .map(|it| slower_of(ask, it))
        .collect();
    view.since = ask.clock.when_of(flaky.since);
    view.read = flaky.runs_read;
    view.incomplete = flaky.incomplete || slower.incomplete;
    Ok(Page::of(&view))
}

fn series(ask: &Ask, series: Option<&RunSeries>) -> Series {
    let unknown = RunSeries::default();
    let series = series.unwrap_or(&unknown);
    let name = match series.task.as_str() {
        "" => series.pipeline.clone(),
        task => format!("{} › {task}", series.pipeline),
    };
    Series {
        namespace: series.namespace.clone(),
        name,
        link: match series.namespace.is_empty() || series.pipeline.is_empty() {
            true => ask.links.runs("", &series.parent),
            false => ask.links.pipeline(
                Of::Pipeline,
                &series.parent,
                &series.namespace,
                &series.pipeline,
            ),
        },
    }
}

fn point(ask: &Ask, point: Option<&RunPoint>) -> Point {
    let unknown = RunPoint::default();
    let point = point.unwrap_or(&unknown);
    Point {
        name: point.name.clone(),
        link: ask.links.run(&point.record),
        start: ask.clock.when_of(point.start_time),
    }
}

fn flaky_of(ask: &Ask, found: &FlakyPipeline) -> Flaky {
    let latest = found.pairs.iter().rev().take(PAIRS);
    Flaky {
        series: series(ask, found.series.as_ref()),
        is_sure: found.flaky,
        episodes: found.episodes,
        runs: found.runs,
        pairs: latest
            .map(|pair| Pair {
                version: end_cut(&pair.version, VERSION),
                failed: point(ask, pair.failed.as_ref()),
                succeeded: point(ask, pair.succeeded.as_ref()),
            })
            .collect(),
    }
}

fn slower_of(ask: &Ask, found: &Regression) -> Slower {
    let is_tail = found.kind() == regression::Kind::Tail;
    let of = |durations: &Option<hindsight_proto::v1::RunDurations>| {
        let durations = durations.unwrap_or_default();
        match is_tail {
            true => durations.p95_seconds,
            false => durations.p50_seconds,
        }
    };
    Slower {
        series: series(ask, found.series.as_ref()),
        what: if is_tail { "p95" } else { "median" },
        before: length(of(&found.before)),
        after: length(of(&found.after)),
        change: format!("{:+.0} %", (found.ratio - 1.0) * 100.0),
        began: point(ask, found.began.as_ref()),
        runs_since: found.runs_since,
        is_over: found.ended.is_some(),
    }
}
