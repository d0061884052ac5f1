//! Runs by the day on which they began, as bars of their outcomes.

use hindsight_proto::v1::{AggregateGroup, AggregateRequest};
use jiff::ToSpan as _;
use jiff::civil::Date;

use super::narrow::{Test, narrowed};
use super::{number_of, text_of};
use crate::ask::{Ask, results_of};

/// Days that are drawn.
const DAYS: i32 = 60;
const BY: &str = "day(started)";
/// Height of the drawing.
const HEIGHT: f64 = 96.0;

/// The drawing, the oldest day first.
#[derive(Debug)]
pub(super) struct Days {
    pub(super) bars: Vec<Bar>,
    pub(super) said: String,
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) day: String,
    pub(super) link: String,
    pub(super) title: String,
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) pieces: Vec<Piece>,
    pub(super) count: f64,
    pub(super) failed: f64,
}

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) class: &'static str,
    pub(super) y: f64,
    pub(super) height: f64,
}

/// What is asked for the drawing.
pub(super) fn request(ask: &Ask, scope: &str, filter: String) -> AggregateRequest {
    AggregateRequest {
        parent: results_of(scope),
        filter,
        group_by: vec![BY.to_owned()],
        measures: ["count", "succeeded", "failed", "timed_out"]
            .map(str::to_owned)
            .to_vec(),
        time_zone: ask.look.zone.clone(),
        order_by: format!("{BY} desc"),
        limit: DAYS,
        ..AggregateRequest::default()
    }
}

/// The drawing of what was answered; none without two days.
pub(super) fn drawn(ask: &Ask, text: &str, scope: &str, groups: &[AggregateGroup]) -> Option<Days> {
    let mut days: Vec<(Date, &AggregateGroup)> = groups
        .iter()
        .filter_map(|group| {
            let day = text_of(group.keys.as_ref(), BY)?;
            Some((day.get(..10)?.parse().ok()?, group))
        })
        .collect();
    days.sort_by_key(|(day, _)| *day);
    let last = days.last()?.0;
    let first = days
        .first()?
        .0
        .max(last.checked_sub((i64::from(DAYS) - 1).days()).ok()?);
    if first == last {
        return None;
    }
    let all = first.series(1.day()).take_while(|day| *day <= last);
    let all: Vec<Date> = all.collect();
    let of = |day: Date| days.iter().find(|(at, _)| *at == day).map(|(_, it)| *it);
    let measure = |group: Option<&AggregateGroup>, name: &str| {
        group
            .and_then(|group| number_of(group.measures.as_ref(), name))
            .unwrap_or_default()
    };
    let most = all
        .iter()
        .map(|day| measure(of(*day), "count"))
        .fold(1.0, f64::max);
    let step = 100.0 / all.len() as f64;
    let bars = all.iter().enumerate().map(|(at, day)| {
        let group = of(*day);
        let (count, good) = (measure(group, "count"), measure(group, "succeeded"));
        let (failed, late) = (measure(group, "failed"), measure(group, "timed_out"));
        let key = format!("{day}T00:00:00");
        let test = Test::of(BY, Some(&key));
        let query = narrowed(text, test.as_slice(), &ask.present());
        Bar {
            day: day.strftime("%b %-d").to_string(),
            link: ask.links.runs(&query, scope),
            title: format!(
                "{}: {count} runs, {} failed",
                day.strftime("%a %b %-d"),
                failed + late
            ),
            x: at as f64 * step + step * 0.1,
            width: step * 0.8,
            pieces: pieces(
                &[
                    ("failed", failed),
                    ("timeout", late),
                    ("succeeded", good),
                    ("cancelled", (count - good - failed - late).max(0.0)),
                ],
                most,
            ),
            count,
            failed: failed + late,
        }
    });
    Some(Days {
        bars: bars.collect(),
        said: format!("Runs by day, at most {most} on one; failures are at the bottom"),
    })
}

/// Parts of a bar, from below.
fn pieces(parts: &[(&'static str, f64)], most: f64) -> Vec<Piece> {
    let mut y = HEIGHT;
    let shown = parts.iter().filter(|(_, count)| *count > 0.0);
    let pieces = shown.map(|(class, count)| {
        let height = (count / most * (HEIGHT - 4.0)).max(1.5);
        y = (y - height).max(0.0);
        Piece { class, y, height }
    });
    pieces.collect()
}
