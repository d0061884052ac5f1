//! Conditions that know whether they say enough, and how they combine.

use super::MAX_TESTS;
use crate::condition::{Ability, Column, Condition, Is, Test, Value};

/// A condition that accepts at least the rows it stands for, and no others if it is exact.
#[derive(Debug, Clone)]
pub(super) struct Pushed {
    pub(super) condition: Condition,
    pub(super) exact: bool,
}

impl Pushed {
    /// Nothing is known: every row may be one.
    pub(super) fn unknown() -> Self {
        Self {
            condition: Condition::All,
            exact: false,
        }
    }

    pub(super) fn all() -> Self {
        Self {
            condition: Condition::All,
            exact: true,
        }
    }

    /// No row. There is nothing that this could accept too much.
    pub(super) fn nothing() -> Self {
        Self {
            condition: Condition::Nothing,
            exact: true,
        }
    }

    pub(super) fn inexact(self) -> Self {
        let exact = self.condition == Condition::Nothing;
        Self { exact, ..self }
    }

    pub(super) fn and(parts: impl IntoIterator<Item = Pushed>) -> Self {
        let mut kept = Vec::new();
        let mut exact = true;
        for part in parts {
            exact &= part.exact;
            match part.condition {
                Condition::Nothing => return Self::nothing(),
                Condition::All => {}
                Condition::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        dedup(&mut kept);
        Self {
            condition: one_or(kept, Condition::All, Condition::And),
            exact,
        }
    }

    pub(super) fn or(
        parts: impl IntoIterator<Item = Pushed>,
        ability: &dyn Fn(&Test) -> Ability,
    ) -> Self {
        let mut kept = Vec::new();
        let mut exact = true;
        let mut all = None;
        for part in parts {
            exact &= part.exact;
            match part.condition {
                Condition::Nothing => {}
                Condition::All => all = Some(all.unwrap_or(false) || part.exact),
                Condition::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        if let Some(exact) = all {
            return Self {
                condition: Condition::All,
                exact,
            };
        }
        dedup(&mut kept);
        let kept = merged(kept, ability);
        Self {
            condition: one_or(kept, Condition::Nothing, Condition::Or),
            exact,
        }
    }
}

fn one_or(
    mut kept: Vec<Condition>,
    none: Condition,
    many: fn(Vec<Condition>) -> Condition,
) -> Condition {
    match kept.len() {
        0 => none,
        1 => kept.remove(0),
        _ => many(kept),
    }
}

fn dedup(kept: &mut Vec<Condition>) {
    // Quadratic, so only where people repeat themselves, not where programs make long lists.
    if kept.len() <= 32 {
        let mut seen: Vec<Condition> = Vec::with_capacity(kept.len());
        kept.retain(|condition| {
            let new = !seen.contains(condition);
            if new {
                seen.push(condition.clone());
            }
            new
        });
    }
}

/// Joins equalities of one column into one question, which engines answer with one look-up.
fn merged(kept: Vec<Condition>, ability: &dyn Fn(&Test) -> Ability) -> Vec<Condition> {
    let mut columns: Vec<(&Column, Vec<usize>)> = Vec::new();
    for (at, condition) in kept.iter().enumerate() {
        let Some((column, _)) = equality(condition) else {
            continue;
        };
        match columns.iter().position(|(known, _)| *known == column) {
            Some(same) => columns[same].1.push(at),
            // Engines are not given so many tests, so it does not matter which are left apart.
            None if columns.len() < MAX_TESTS => columns.push((column, vec![at])),
            None => {}
        }
    }
    let mut joined = Vec::new();
    for (column, places) in columns.into_iter().filter(|(_, places)| places.len() > 1) {
        let values = places.iter().filter_map(|at| equality(&kept[*at]));
        let test = Test {
            column: column.clone(),
            is: Is::OneOf(values.flat_map(|(_, values)| values).cloned().collect()),
            negated: false,
        };
        // Of an index that answers either too much, it answers both too much.
        let is_indexed = matches!(test.column, Column::Indexed(_));
        let able = ability(&test);
        if able == Ability::Exact || (is_indexed && able == Ability::Superset) {
            joined.push((places, test));
        }
    }
    let mut out: Vec<_> = kept.into_iter().map(Some).collect();
    for (places, test) in joined {
        for at in &places {
            out[*at] = None;
        }
        out[places[0]] = Some(Condition::Test(test));
    }
    out.into_iter().flatten().collect()
}

/// The column that a condition wants to have one of some values.
fn equality(condition: &Condition) -> Option<(&Column, &[Value])> {
    match condition {
        Condition::Test(test) if !test.negated => match &test.is {
            Is::Equal(value) => Some((&test.column, std::slice::from_ref(value))),
            Is::OneOf(values) => Some((&test.column, values)),
            _ => None,
        },
        _ => None,
    }
}
