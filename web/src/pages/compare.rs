//! Two runs side by side: what differs, by what it is about.

use askama::Template;
use hindsight_proto::v1::{Difference, difference::Category};

use super::frame::{Frame, Place};
use super::run::{gain, label, value};
use super::{Page, Shown};
use crate::api::{Kind, Refusal};
use crate::ask::Ask;

/// Longest value that is shown.
const VALUE: usize = 400;

#[derive(Debug, Template)]
#[template(path = "compare.html")]
struct Compare {
    frame: Frame,
    action: String,
    a: Side,
    b: Side,
    groups: Vec<Group>,
    equal: i64,
    left_out: i64,
    runs_left_out: i64,
    swap: String,
    /// Why there is no comparison.
    absent: Option<String>,
}

#[derive(Debug, Default)]
struct Side {
    record: String,
    name: String,
    link: String,
}

#[derive(Debug)]
struct Group {
    title: &'static str,
    /// Whether it is of times, which are neither removed nor added.
    is_time: bool,
    count: usize,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    /// Other places in which the same changed alike.
    others: Vec<String>,
    before: Option<String>,
    after: Option<String>,
    /// How much longer it takes.
    ratio: String,
    is_slower: bool,
}

pub(crate) async fn compare(ask: &Ask) -> Shown {
    let (a, b) = (ask.query.get("a"), ask.query.get("b"));
    let mut view = Compare {
        frame: Frame::new(ask, "Compare", Place::Elsewhere),
        action: ask.links.compare("", ""),
        a: side(ask, a, ""),
        b: side(ask, b, ""),
        groups: Vec::new(),
        equal: 0,
        left_out: 0,
        runs_left_out: 0,
        swap: String::new(),
        absent: None,
    };
    if a.is_empty() {
        view.absent =
            Some("Name the record of a run, and of another one to compare it with.".into());
        return Ok(Page::of(&view));
    }
    let diff = match ask.api.diff(a, b).await {
        Ok(diff) => diff,
        // A first run has nothing to be compared with, which is no fault of the reader.
        Err(Refusal {
            kind: Kind::NotFound | Kind::Invalid,
            message,
        }) => {
            view.absent = Some(message);
            return Ok(Page::of(&view));
        }
        Err(refusal) => return Err(refusal.into()),
    };
    view.a = side(ask, &diff.a, &diff.a_name);
    view.b = side(ask, &diff.b, &diff.b_name);
    view.swap = ask.links.compare(&diff.b, &diff.a);
    view.groups = groups(&diff.differences);
    view.equal = diff.equal;
    view.left_out = diff.differences_left_out;
    view.runs_left_out = diff.runs_left_out;
    Ok(Page::of(&view))
}

fn side(ask: &Ask, record: &str, name: &str) -> Side {
    let id = record.rsplit('/').next().unwrap_or_default();
    Side {
        record: record.to_owned(),
        name: if name.is_empty() { id } else { name }.to_owned(),
        link: if record.is_empty() {
            String::new()
        } else {
            ask.links.run(record)
        },
    }
}

/// Differences by category, in the order in which people look for a cause; times by their change.
fn groups(differences: &[Difference]) -> Vec<Group> {
    let titles = [
        (Category::Param, "Parameters"),
        (Category::Image, "Images"),
        (Category::Reference, "References"),
        (Category::Environment, "Environment"),
        (Category::Timing, "Times"),
        (Category::Spec, "Specification"),
        (Category::Metadata, "Labels and annotations"),
    ];
    let groups = titles.into_iter().filter_map(|(category, title)| {
        let mut of = differences
            .iter()
            .filter(|it| it.category() == category)
            .collect::<Vec<_>>();
        if category == Category::Timing {
            of.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        }
        (!of.is_empty()).then(|| Group {
            title,
            is_time: category == Category::Timing,
            count: of.len(),
            rows: rows(&of),
        })
    });
    groups.collect()
}

/// A row for each change; what changed alike in several places is one, except for times.
fn rows(differences: &[&Difference]) -> Vec<Row> {
    let mut rows: Vec<(&Difference, Row)> = Vec::new();
    for difference in differences {
        let is_same = |other: &Difference| {
            difference.category() != Category::Timing
                && (&other.before, &other.after) == (&difference.before, &difference.after)
        };
        match rows.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, row)) => row.others.push(label(difference)),
            None => rows.push((difference, row(difference))),
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(difference: &Difference) -> Row {
    let side = |side: &Option<String>| side.as_deref().map(|text| value(difference, text, VALUE));
    let percent = difference.ratio.map(|ratio| (ratio - 1.0) * 100.0);
    let percent = percent.filter(|percent| percent.is_finite());
    Row {
        what: label(difference),
        others: Vec::new(),
        before: side(&difference.before),
        after: side(&difference.after),
        is_slower: percent.is_some_and(|percent| percent > 0.0),
        ratio: percent
            .map(|percent| format!("{percent:+.0} %"))
            .unwrap_or_default(),
    }
}
