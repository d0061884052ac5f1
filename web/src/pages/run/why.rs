//! Why a run failed: what ended it, since when its pipeline fails, and what changed then.

use hindsight_proto::v1::{
    Difference, FailureExplanation, RunNode, RunPoint, difference::Category,
};

use crate::ask::Ask;
use crate::html::end_cut;
use crate::status::Status;
use crate::time::{When, between, length, timestamp};

/// Changes that are shown.
const CHANGES: usize = 6;
/// Longest value of a change.
const VALUE: usize = 120;

/// Three answers, with links to what they speak of.
#[derive(Debug)]
pub(super) struct Why {
    /// The task, or the run itself.
    pub(super) place: String,
    pub(super) step: String,
    pub(super) ended: &'static str,
    pub(super) exit: Option<i32>,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) attempt: i32,
    /// What the run is compared with; empty if there is nothing.
    pub(super) series: String,
    pub(super) first: Option<Point>,
    pub(super) success: Option<Point>,
    /// From the last success to the first failure.
    pub(super) gap: String,
    pub(super) failed_since: i64,
    pub(super) runs_since: i64,
    pub(super) alike: String,
    pub(super) changes: Vec<Change>,
    /// How many more there are.
    pub(super) more: i64,
    /// The comparison of the first failure with the last success.
    pub(super) compare: String,
    pub(super) notes: Vec<String>,
}

/// A run that is spoken of.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) name: String,
    pub(super) link: String,
    pub(super) is_this: bool,
    pub(super) start: Option<When>,
}

/// A value that changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) what: String,
    pub(super) before: String,
    pub(super) after: String,
    /// Whether it is a time, which is neither removed nor added.
    pub(super) is_time: bool,
    /// In how many more places it changed alike.
    pub(super) others: usize,
}

impl Why {
    pub(super) fn of(ask: &Ask, record: &str, found: &FailureExplanation) -> Self {
        let unknown = RunNode::default();
        let leaf = found.leaf.as_ref().unwrap_or(&unknown);
        let point = |point: &Option<RunPoint>| {
            point.as_ref().map(|point| Point {
                name: point.name.clone(),
                link: ask.links.run(&point.record),
                is_this: point.record == record,
                start: ask.clock.when_of(point.start_time),
            })
        };
        let starts = [&found.last_success, &found.first_failure]
            .map(|point| point.as_ref().and_then(|point| timestamp(point.start_time)));
        let gap = match starts {
            [Some(success), Some(failure)] => length(between(success, failure)),
            _ => String::new(),
        };
        let records = [&found.first_failure, &found.last_success]
            .map(|point| point.as_ref().map_or("", |point| point.record.as_str()));
        let changes = remarkable(&found.changes);
        let told: usize = changes
            .iter()
            .take(CHANGES)
            .map(|change| 1 + change.others)
            .sum();
        let (ended, reason, message, exit) = match &found.step {
            Some(step) => (
                Status::of_node(step.outcome(), true, true),
                &step.reason,
                if step.message.is_empty() {
                    &leaf.message
                } else {
                    &step.message
                },
                step.exit_code,
            ),
            None => (
                Status::of_node(leaf.outcome(), true, true),
                &leaf.reason,
                &leaf.message,
                None,
            ),
        };
        let is_plain = matches!(reason.as_str(), "Error" | "Failed" | "Completed");
        Self {
            place: match found.path.as_str() {
                "" => format!("{} {}", leaf.kind, leaf.object),
                path => path.to_owned(),
            },
            step: found
                .step
                .as_ref()
                .map(|step| step.name.clone())
                .unwrap_or_default(),
            ended: ended.word(),
            exit,
            reason: if is_plain {
                String::new()
            } else {
                reason.clone()
            },
            message: message.clone(),
            attempt: leaf.attempt,
            series: found.series.clone(),
            first: point(&found.first_failure),
            success: point(&found.last_success),
            gap,
            failed_since: found.failed_since,
            runs_since: found.runs_since,
            alike: alike(found),
            changes: changes.into_iter().take(CHANGES).collect(),
            more: i64::try_from(found.changes.len() - told).unwrap_or_default()
                + found.changes_left_out,
            compare: match records {
                ["", _] | [_, ""] => String::new(),
                [failure, success] => ask.links.compare(failure, success),
            },
            notes: found.notes.iter().take(10).cloned().collect(),
        }
    }
}

fn alike(found: &FailureExplanation) -> String {
    match &found.alike {
        Some(alike) if alike.of > 1 && alike.count == alike.of => ", all for the same cause".into(),
        Some(alike) if alike.of > 1 => {
            format!(
                ", {} of the newest {} for the same cause",
                alike.count, alike.of
            )
        }
        _ => String::new(),
    }
}

/// Changes that may be a cause, each once however many places it has, then what takes longer.
fn remarkable(changes: &[Difference]) -> Vec<Change> {
    let is_timing = |it: &&Difference| it.category() == Category::Timing;
    let mut told: Vec<(&Difference, usize)> = Vec::new();
    for change in changes.iter().filter(|it| !is_timing(it)) {
        let same = told
            .iter_mut()
            .find(|(other, _)| (&other.before, &other.after) == (&change.before, &change.after));
        match same {
            Some((_, others)) => *others += 1,
            None => told.push((change, 0)),
        }
    }
    let slower = changes.iter().filter(is_timing).filter(|it| gain(it) > 0.0);
    let mut slower: Vec<_> = slower.map(|it| (it, 0)).collect();
    slower.sort_by(|one, other| gain(other.0).total_cmp(&gain(one.0)));
    told.append(&mut slower);
    told.into_iter()
        .map(|(it, others)| change(it, others))
        .collect()
}

/// How many seconds more something takes.
pub(in crate::pages) fn gain(difference: &Difference) -> f64 {
    let seconds = |side: &Option<String>| -> f64 {
        let text = side.as_deref().unwrap_or_default();
        text.parse().unwrap_or(0.0)
    };
    seconds(&difference.after) - seconds(&difference.before)
}

/// A difference in one line.
fn change(difference: &Difference, others: usize) -> Change {
    let side = |side: &Option<String>| match side.as_deref() {
        None => "nothing".to_owned(),
        Some(text) => value(difference, text, VALUE),
    };
    Change {
        what: label(difference),
        before: side(&difference.before),
        after: side(&difference.after),
        is_time: difference.category() == Category::Timing,
        others,
    }
}

/// A value of a difference as it is shown.
pub(in crate::pages) fn value(difference: &Difference, text: &str, most: usize) -> String {
    match (difference.category(), text.parse::<f64>()) {
        (Category::Timing, Ok(seconds)) => length(seconds),
        _ => end_cut(text, most),
    }
}

/// What differs: the place in short words where it has some.
pub(in crate::pages) fn label(difference: &Difference) -> String {
    let path = difference.path.as_str();
    let named = path
        .strip_prefix("spec.params[")
        .or_else(|| path.strip_prefix("spec.arguments.parameters["));
    let short = match named.and_then(|rest| rest.strip_suffix("].value")) {
        Some(name) => format!("param {name}"),
        None => path.to_owned(),
    };
    match difference.task.as_str() {
        "" => short,
        task => format!("{task}: {short}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(category: Category, path: &str, before: &str, after: &str) -> Difference {
        Difference {
            category: category.into(),
            path: path.to_owned(),
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
            ..Difference::default()
        }
    }

    #[test]
    fn a_change_in_many_places_is_told_once_and_slower_parts_last() {
        let changes = [
            difference(Category::Timing, "quicker", "60", "30"),
            difference(Category::Timing, "slower", "60", "90"),
            difference(Category::Timing, "slowest", "60", "4000"),
            difference(Category::Param, "spec.params[revision].value", "a", "b"),
            difference(Category::Image, "steps[0].imageID", "x:1", "x:2"),
            difference(Category::Image, "steps[1].imageID", "x:1", "x:2"),
        ];
        let told = remarkable(&changes);
        let told: Vec<_> = told
            .iter()
            .map(|it| (it.what.as_str(), it.others))
            .collect();
        assert_eq!(
            told,
            [
                ("param revision", 0),
                ("steps[0].imageID", 1),
                ("slowest", 0),
                ("slower", 0)
            ]
        );
    }
}
