//! What differs between two runs, value by value. What every run has anew, such as UIDs and the
//! status, is not compared.

mod category;
mod flatten;
mod side;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use category::Category;
pub use side::{Side, Values};

/// Longest text of a difference, in characters; the rest is cut.
pub const MAX_TEXT: usize = 1_000;
/// Least change of a time that is a difference, in seconds.
const LEAST_SECONDS: f64 = 1.0;
/// Least change of a time that is a difference, as a part of the time before.
const LEAST_PART: f64 = 0.1;

/// Where a value is, in the order in which differences are given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    category: Category,
    task: Arc<str>,
    path: String,
}

/// A value that differs between two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What it is about.
    pub category: Category,
    /// The path of the task; empty for the run itself.
    pub task: String,
    /// Where the value is in the object, as in `spec.params[revision].value`.
    pub path: String,
    /// What was there; absent if nothing was. Text as it is, anything else as JSON.
    pub before: Option<String>,
    /// What is there now; absent if nothing is.
    pub after: Option<String>,
    /// `after` divided by `before`, of timings alone.
    pub ratio: Option<f64>,
    /// A text was longer than [`MAX_TEXT`].
    pub cut: bool,
}

/// What differs between two runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diff {
    /// By category, then by task and path.
    pub differences: Vec<Difference>,
    /// Differences beyond the limit.
    pub left_out: usize,
    /// Values that are equal. Timings do not count.
    pub equal: usize,
    /// Runs below either whose values were not given, or were too many.
    pub runs_left_out: usize,
}

/// What differs between `before` and `after`: of the categories `only`, or of all if there are
/// none; at most `limit` differences.
///
/// A task has values of its run, such as parameters that are passed on. A change that is the same
/// in the run itself is given there alone.
pub fn diff(before: &Side, after: &Side, only: &[Category], limit: usize) -> Diff {
    let is_asked = |category: Category| only.is_empty() || only.contains(&category);
    let mut found = Diff {
        runs_left_out: before.left_out + after.left_out,
        ..Diff::default()
    };
    let mut of_run: BTreeSet<(Category, Option<&str>, Option<&str>)> = BTreeSet::new();
    let give = |found: &mut Diff, make: &dyn Fn() -> Difference| {
        if found.differences.len() < limit {
            found.differences.push(make());
        } else {
            found.left_out += 1;
        }
    };
    for (place, old, new) in joined(&before.values, &after.values) {
        if !is_asked(place.category) {
            continue;
        }
        let (old, new) = (old.map(String::as_str), new.map(String::as_str));
        if old == new {
            found.equal += 1;
            continue;
        }
        let change = (place.category, old, new);
        if place.task.is_empty() {
            of_run.insert(change);
        } else if of_run.contains(&change) {
            continue;
        }
        give(&mut found, &|| changed(place, old, new));
    }
    for (place, old, new) in joined(&before.seconds, &after.seconds) {
        if is_asked(place.category) && is_slower_or_faster(old, new) {
            give(&mut found, &|| timed(place, old, new));
        }
    }
    found
}

/// Both maps side by side, in the order of their keys.
fn joined<'a, V>(
    before: &'a BTreeMap<Place, V>,
    after: &'a BTreeMap<Place, V>,
) -> impl Iterator<Item = (&'a Place, Option<&'a V>, Option<&'a V>)> {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let old = if order.is_le() { old.next() } else { None };
        let new = if order.is_ge() { new.next() } else { None };
        let place = old.or(new)?.0;
        Some((
            place,
            old.map(|(_, value)| value),
            new.map(|(_, value)| value),
        ))
    })
}

fn changed(place: &Place, old: Option<&str>, new: Option<&str>) -> Difference {
    let mut cut = false;
    let mut shown = |text: &str| {
        let end = text.char_indices().nth(MAX_TEXT).map(|(end, _)| end);
        cut |= end.is_some();
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let (before, after) = (old.map(&mut shown), new.map(&mut shown));
    Difference {
        category: place.category,
        task: place.task.to_string(),
        path: place.path.clone(),
        before,
        after,
        ratio: None,
        cut,
    }
}

fn is_slower_or_faster(old: Option<&f64>, new: Option<&f64>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return old.or(new).is_some_and(|seconds| *seconds >= LEAST_SECONDS);
    };
    let change = (new - old).abs();
    change >= LEAST_SECONDS && change >= LEAST_PART * old
}

fn timed(place: &Place, old: Option<&f64>, new: Option<&f64>) -> Difference {
    let ratio = old.zip(new).map(|(old, new)| new / old);
    Difference {
        ratio: ratio.filter(|ratio| ratio.is_finite()),
        ..changed(
            place,
            old.map(f64::to_string).as_deref(),
            new.map(f64::to_string).as_deref(),
        )
    }
}

#[cfg(test)]
mod tests;
