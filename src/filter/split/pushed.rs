//! Conditions that know whether they say enough, and how they combine.

use crate::filter::condition::{Ability, Column, Condition, Is, Test};

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
    let mut out: Vec<Condition> = Vec::with_capacity(kept.len());
    for condition in kept {
        let values = match &condition {
            Condition::Test(test) if !test.negated => match &test.is {
                Is::Equal(value) => Some((&test.column, vec![value.clone()])),
                Is::OneOf(values) => Some((&test.column, values.clone())),
                _ => None,
            },
            _ => None,
        };
        let Some((column, values)) = values else {
            out.push(condition);
            continue;
        };
        let same = out.iter_mut().find_map(|other| match other {
            Condition::Test(test) if !test.negated && test.column == *column => {
                matches!(test.is, Is::Equal(_) | Is::OneOf(_)).then_some(test)
            }
            _ => None,
        });
        let Some(same) = same else {
            out.push(condition);
            continue;
        };
        let mut joined = match &same.is {
            Is::Equal(value) => vec![value.clone()],
            Is::OneOf(values) => values.clone(),
            _ => Vec::new(),
        };
        joined.extend(values);
        let test = Test {
            column: column.clone(),
            is: Is::OneOf(joined),
            negated: false,
        };
        // Of an index that answers either too much, it answers both too much.
        let is_promoted = matches!(test.column, Column::Promoted(_));
        let able = ability(&test);
        if able == Ability::Exact || (is_promoted && able == Ability::Superset) {
            *same = test;
        } else {
            out.push(condition);
        }
    }
    out
}
