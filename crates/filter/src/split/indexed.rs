//! Tests of parts of payloads that are no columns: what is asked of an index, should there be one.
//!
//! Such an index gives every row that passes, and perhaps others, so nothing here is exact.

use super::{Splitter, pushed::Pushed};
use crate::{
    condition::{Ability, Column, Condition, Is, Test, Value as Key},
    expr::{Comparison, Expr, ExprKind, Macro, MacroKind},
    indexed::{Asked, Indexed, Kind, Path, Step},
    value::{Elements, Value},
};

/// Most members by which a macro's elements are looked for.
const MAX_SELECTORS: usize = 4;

/// What the variable of a macro stands for: elements that a path leads to.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    slot: usize,
    steps: Vec<Step>,
}

impl Splitter<'_> {
    pub(super) fn part_compared(
        &self,
        part: &Expr,
        comparison: Comparison,
        constant: &Value<'_>,
        wanted: bool,
    ) -> Pushed {
        use Comparison::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};
        let Some(path) = self.path(part) else {
            return Pushed::unknown();
        };
        if *constant == Value::Null {
            return match (comparison, wanted) {
                (Equal, true) | (NotEqual, false) => self.part_lacks(path),
                _ => Pushed::unknown(),
            };
        }
        let Some(asked) = Asked::of(constant) else {
            return Pushed::unknown();
        };
        let key = Key::Text(asked.key);
        // Keys are rounded, so what is below may have the same key.
        let (is, passes) = match (comparison, wanted) {
            (Equal, true) | (NotEqual, false) => (Is::Equal(key), true),
            (NotEqual, true) | (Equal, false) => (Is::Equal(key), false),
            (Less | AtMost, true) | (Greater | AtLeast, false) => (Is::AtMost(key), true),
            (Greater | AtLeast, true) | (Less | AtMost, false) => (Is::AtLeast(key), true),
        };
        if (!passes && !asked.is_alone) || (asked.kind == Kind::Bool && !matches!(is, Is::Equal(_)))
        {
            return Pushed::unknown();
        }
        self.part_test(path, asked.kind, is, passes)
    }

    pub(super) fn part_in(&self, part: &Expr, list: Elements<'_, '_>, wanted: bool) -> Pushed {
        let asked: Option<Vec<Asked>> = list.iter().map(|value| Asked::of(&value)).collect();
        let (Some(path), Some(asked)) = (self.path(part), asked) else {
            return Pushed::unknown();
        };
        let Some(kind) = asked.first().map(|first| first.kind) else {
            return Pushed::unknown();
        };
        if asked
            .iter()
            .any(|one| one.kind != kind || !(wanted || one.is_alone))
        {
            return Pushed::unknown();
        }
        let keys = asked.into_iter().map(|one| Key::Text(one.key)).collect();
        self.part_test(path, kind, Is::OneOf(keys), wanted)
    }

    pub(super) fn part_starts(&self, part: &Expr, text: &str, wanted: bool) -> Pushed {
        let (Some(path), Some(asked)) = (self.path(part), Asked::of(&Value::text(text))) else {
            return Pushed::unknown();
        };
        self.part_test(path, Kind::Text, Is::StartsWith(asked.key), wanted)
    }

    /// A part that is a test by itself.
    pub(super) fn part_is(&self, part: &Expr, wanted: bool) -> Pushed {
        self.part_compared(part, Comparison::Equal, &Value::Bool(true), wanted)
    }

    /// The test for `!has(of.key)`, if `of` is a path.
    pub(super) fn part_is_missing(&self, of: &Expr, key: &str) -> Pushed {
        match self.path(of) {
            Some(mut path) => {
                path.push(Step::Key(key.to_owned()));
                self.part_lacks(path)
            }
            None => Pushed::unknown(),
        }
    }

    /// Rows without a value. Where a path may find several, one that is missing says nothing.
    fn part_lacks(&self, steps: Vec<Step>) -> Pushed {
        if Path::new(steps.clone()).has_where() {
            return Pushed::unknown();
        }
        let tests = Kind::ALL.map(|kind| self.part_test(steps.clone(), kind, Is::Present, false));
        Pushed::and(tests).inexact()
    }

    fn part_test(&self, steps: Vec<Step>, kind: Kind, is: Is, passes: bool) -> Pushed {
        let indexed = Indexed {
            path: Path::new(steps),
            kind,
            field: None,
        };
        let test = Test {
            column: Column::Indexed(indexed),
            is,
            negated: !passes,
        };
        // No index of such a field is exact: who says so speaks of columns.
        match (self.ability)(&test) {
            Ability::Superset => Pushed {
                condition: Condition::Test(test),
                exact: false,
            },
            Ability::None | Ability::Exact => Pushed::unknown(),
        }
    }

    /// `range.exists(element, test)`, where elements are chosen by a text that a member has: what
    /// is asked of a row's elements together is asked of each, so each is a test of the row.
    pub(super) fn some(&self, of: &Macro) -> Pushed {
        let (MacroKind::Exists, 1, Some(test)) = (of.of, of.variables, &of.test) else {
            return Pushed::unknown();
        };
        match self.path(&of.range) {
            Some(range) => self.some_of(&range, of.slot, test),
            None => Pushed::unknown(),
        }
    }

    fn some_of(&self, range: &[Step], slot: usize, test: &Expr) -> Pushed {
        if let ExprKind::Or(pair) = &test.kind {
            let parts = pair.iter().map(|part| self.some_of(range, slot, part));
            return Pushed::or(parts, self.ability);
        }
        let mut all = Vec::new();
        conjuncts(test, &mut all);
        let selectors = all
            .iter()
            .enumerate()
            .filter_map(|(at, part)| Some((at, selector(part, slot)?)));
        let mut parts = Vec::new();
        for (at, step) in selectors.take(MAX_SELECTORS) {
            let steps = range.iter().cloned().chain([step]).collect();
            self.scopes.borrow_mut().push(Scope { slot, steps });
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            parts.extend(others.map(|(_, part)| self.push(part, true)));
            self.scopes.borrow_mut().pop();
        }
        Pushed::and(parts).inexact()
    }

    /// The steps from the payload to `part`.
    fn path(&self, part: &Expr) -> Option<Vec<Step>> {
        let mut steps = match &part.kind {
            ExprKind::Data | ExprKind::Alias(_) => return Some(Vec::new()),
            ExprKind::Local(slot) => {
                let scopes = self.scopes.borrow();
                let scope = scopes.iter().rev().find(|scope| scope.slot == *slot)?;
                return Some(scope.steps.clone());
            }
            ExprKind::Member(of, _) => self.path(of)?,
            ExprKind::Index(of, index) => {
                let Value::Int(at) = index.constant()? else {
                    return None;
                };
                // Whichever of those that were chosen: all are in the index.
                if let ExprKind::Macro(chosen) = &of.kind {
                    return self.chosen(chosen);
                }
                let mut steps = self.path(of)?;
                steps.push(Step::At(usize::try_from(*at).ok()?));
                return Some(steps);
            }
            _ => return None,
        };
        if let ExprKind::Member(_, key) = &part.kind {
            steps.push(Step::Key(key.clone()));
        }
        Some(steps)
    }

    /// `range.filter(element, element.key == text)`.
    fn chosen(&self, of: &Macro) -> Option<Vec<Step>> {
        let (MacroKind::Filter, 1, Some(test)) = (of.of, of.variables, &of.test) else {
            return None;
        };
        let mut steps = self.path(&of.range)?;
        steps.push(selector(test, of.slot)?);
        Some(steps)
    }
}

fn conjuncts<'e>(expr: &'e Expr, into: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::And(pair) => pair.iter().for_each(|part| conjuncts(part, into)),
        _ => into.push(expr),
    }
}

fn selector(expr: &Expr, slot: usize) -> Option<Step> {
    let ExprKind::Compare(Comparison::Equal, pair) = &expr.kind else {
        return None;
    };
    let (member, text) = match &**pair {
        [member, text] if text.constant().is_some() => (member, text),
        [text, member] => (member, text),
    };
    match (&member.kind, text.constant()) {
        (ExprKind::Member(of, key), Some(Value::Text(text))) if matches!(of.kind, ExprKind::Local(local) if local == slot) => {
            Some(Step::Where {
                key: key.clone(),
                is: text.to_string(),
            })
        }
        _ => None,
    }
}
