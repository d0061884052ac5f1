//! What an engine can answer of a filter.
//!
//! The filter's tests become tests of columns where a column answers the same question. Negation
//! is pushed down to them: a row is wanted where a part is *true* or where it is *false*, and
//! where it is unknown it is in neither set, which is what a test and its negation say about
//! rows without the column.
//!
//! What has no column is left out of the condition, which then accepts too much, never too
//! little; the whole filter is then evaluated on each returned row.

pub(super) mod column;
mod indexed;
mod leaf;
mod pushed;

use std::cell::{Cell, RefCell};

use self::pushed::Pushed;
use super::{
    condition::{Ability, Condition, Is, Test},
    expr::{Comparison, Expr, ExprKind},
    types::Type,
    value::Value,
};

/// Most tests and most values that an engine is given; statements have limits.
const MAX_TESTS: usize = 500;
const MAX_VALUES: usize = 10_000;
/// Most parts that are looked at; choices (`? :`) inside conditions multiply.
const MAX_VISITS: usize = 50_000;

/// A filter divided between an engine and us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What the engine is asked.
    pub condition: Condition,
    /// The engine may return rows that do not match: each must be judged by the whole filter,
    /// and no limit may be pushed.
    pub residual: bool,
}

pub(super) fn split(expr: &Expr, ability: &dyn Fn(&Test) -> Ability) -> Split {
    let splitter = Splitter {
        ability,
        visits: Cell::new(0),
        scopes: RefCell::default(),
    };
    let pushed = bounded(splitter.push(expr, true));
    Split {
        condition: pushed.condition,
        residual: !pushed.exact,
    }
}

struct Splitter<'a> {
    ability: &'a dyn Fn(&Test) -> Ability,
    visits: Cell<usize>,
    /// What the variables of the macros around stand for, outermost first.
    scopes: RefCell<Vec<indexed::Scope>>,
}

impl Splitter<'_> {
    /// The rows on which `expr` is `wanted`.
    fn push(&self, expr: &Expr, wanted: bool) -> Pushed {
        self.visits.set(self.visits.get() + 1);
        if self.visits.get() > MAX_VISITS {
            return Pushed::unknown();
        }
        match &expr.kind {
            ExprKind::Not(of) => self.push(of, !wanted),
            ExprKind::And(pair) | ExprKind::Or(pair) => {
                let parts = pair.iter().map(|part| self.push(part, wanted));
                match matches!(expr.kind, ExprKind::And(_)) == wanted {
                    true => Pushed::and(parts),
                    false => Pushed::or(parts, self.ability),
                }
            }
            ExprKind::If(three) => {
                let [condition, then, otherwise] = &**three;
                let then = [self.push(condition, true), self.push(then, wanted)];
                let otherwise = [self.push(condition, false), self.push(otherwise, wanted)];
                Pushed::or([Pushed::and(then), Pushed::and(otherwise)], self.ability)
            }
            ExprKind::Compare(comparison, pair) => match truth_of(*comparison, pair) {
                Some((test, is)) => self.push(test, is == wanted),
                None => self.leaf(expr, wanted),
            },
            _ => self.leaf(expr, wanted),
        }
    }
}

/// `test == true` and the like: the test, and what it must be.
fn truth_of(comparison: Comparison, pair: &[Expr; 2]) -> Option<(&Expr, bool)> {
    let equal = match comparison {
        Comparison::Equal => true,
        Comparison::NotEqual => false,
        _ => return None,
    };
    let (test, constant) = match pair {
        [test, other] | [other, test] if test.constant().is_none() => (test, other.constant()?),
        _ => return None,
    };
    match (&test.ty, constant) {
        (Type::Bool, Value::Bool(truth)) => Some((test, *truth == equal)),
        _ => None,
    }
}

/// Leaves parts out until an engine can take the rest.
fn bounded(pushed: Pushed) -> Pushed {
    let fits = |condition: &Condition, room: &mut (usize, usize)| {
        let (tests, values) = weight(condition);
        let fits = tests <= room.0 && values <= room.1;
        if fits {
            *room = (room.0 - tests, room.1 - values);
        }
        fits
    };
    let mut room = (MAX_TESTS, MAX_VALUES);
    if fits(&pushed.condition, &mut room) {
        return pushed;
    }
    let Condition::And(mut parts) = pushed.condition else {
        return Pushed::unknown();
    };
    parts.retain(|part| fits(part, &mut room));
    let parts = parts.into_iter().map(|condition| Pushed {
        condition,
        exact: false,
    });
    Pushed::and(parts).inexact()
}

/// How many tests, and how many values in them.
fn weight(condition: &Condition) -> (usize, usize) {
    match condition {
        Condition::All | Condition::Nothing => (0, 0),
        Condition::And(parts) | Condition::Or(parts) => parts
            .iter()
            .map(weight)
            .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1)),
        Condition::Test(test) => match &test.is {
            Is::OneOf(values) => (1, values.len()),
            _ => (1, 1),
        },
    }
}
