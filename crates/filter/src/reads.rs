//! Which parts of a payload a filter reads, so that the rest need not be made into values.
//!
//! Invariant: judged on a payload that is cut down to what is read, the filter gives what it
//! gives on the whole one. Keeping more is always right.

use std::collections::BTreeMap;

use super::{
    expr::{Expr, ExprKind, Macro, MacroKind},
    value::Value,
};

/// What is read of a value of a payload. Of what is not named here only the type is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) whole: bool,
    /// Members of an object.
    pub(super) members: BTreeMap<String, Reads>,
    /// Every element of an array, and every member of an object.
    pub(super) each: Option<Box<Reads>>,
}

impl Reads {
    /// What `expr` reads of the payload.
    pub(super) fn of(expr: &Expr) -> Self {
        let mut reader = Reader {
            root: Self::default(),
            locals: Vec::new(),
        };
        reader.observe(expr);
        reader.root
    }

    fn at(&mut self, path: &[Step]) -> &mut Self {
        path.iter().fold(self, |node, step| match step {
            Step::Member(key) => node.members.entry(key.clone()).or_default(),
            Step::Each => node.each.get_or_insert_default(),
        })
    }
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Each,
}

struct Reader {
    root: Reads,
    /// Which part of the payload a variable of a macro may be.
    locals: Vec<Option<Vec<Step>>>,
}

impl Reader {
    /// Where `expr` is in the payload, if it is a part of it and nothing else.
    fn path(&self, expr: &Expr) -> Option<Vec<Step>> {
        let (of, step) = match &expr.kind {
            ExprKind::Data | ExprKind::Alias(_) => return Some(Vec::new()),
            ExprKind::Local(slot) => return self.locals.get(*slot)?.clone(),
            ExprKind::Member(of, key) => (of, Step::Member(key.clone())),
            ExprKind::Index(of, index) => match index.constant()? {
                Value::Text(key) => (of, Step::Member(key.to_string())),
                _ => (of, Step::Each),
            },
            _ => return None,
        };
        let mut path = self.path(of)?;
        path.push(step);
        Some(path)
    }

    /// Takes down what is read when the value of `expr` is looked at.
    fn observe(&mut self, expr: &Expr) {
        if expr.is_of_run() {
            self.root.whole = true;
            return;
        }
        if let Some(path) = self.path(expr) {
            self.root.at(&path).whole = true;
            return;
        }
        match &expr.kind {
            ExprKind::Has(of, key) => match self.path(of) {
                Some(mut path) => {
                    path.push(Step::Member(key.clone()));
                    self.root.at(&path);
                }
                None => self.observe(of),
            },
            ExprKind::Macro(of) => self.observe_macro(of),
            _ => {
                for part in expr.parts() {
                    self.observe(part);
                }
            }
        }
    }

    fn observe_macro(&mut self, of: &Macro) {
        let element = self.path(&of.range).map(|mut path| {
            path.push(Step::Each);
            path
        });
        match &element {
            Some(path) => {
                let kept = self.root.at(path);
                // Its elements are what comes out.
                let given =
                    matches!(of.of, MacroKind::Filter | MacroKind::Map) && of.make.is_none();
                kept.whole |= given;
            }
            None => self.observe(&of.range),
        }
        let depth = self.locals.len();
        self.locals.resize(of.slot, None);
        for variable in 0..of.variables {
            // Of two variables the first is an index or a key.
            let is_element = variable + 1 == of.variables;
            self.locals.push(element.clone().filter(|_| is_element));
        }
        for part in of.test.iter().chain(&of.make) {
            self.observe(part);
        }
        self.locals.truncate(depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, model::Resource};

    /// The paths that are read, `*` for each element and `=` where all of it is.
    fn reads(filter: &str) -> Vec<String> {
        fn walk(node: &Reads, path: &str, into: &mut Vec<String>) {
            if node.whole {
                into.push(format!("{path}="));
            } else if node.members.is_empty() && node.each.is_none() && !path.is_empty() {
                into.push(path.to_owned());
            }
            for (key, child) in &node.members {
                walk(child, &format!("{path}.{key}"), into);
            }
            if let Some(child) = &node.each {
                walk(child, &format!("{path}.*"), into);
            }
        }
        let filter = Filter::compile(filter, Resource::Records).unwrap();
        let mut found = Vec::new();
        walk(&Reads::of(&filter.expr), "", &mut found);
        found
    }

    #[test]
    fn only_what_is_looked_at_is_read() {
        assert_eq!(reads("name == 'a'"), [""; 0]);
        assert_eq!(reads("data.a.b == 'x' || data['c'] > 1"), [".a.b=", ".c="]);
        assert_eq!(
            reads("data.status.conditions[0].reason == 'x'"),
            [".status.conditions.*.reason="]
        );
        assert_eq!(reads("has(data.a.b)"), [".a.b"]);
        assert_eq!(reads("data.a.contains('x')"), [".a="]);
        assert_eq!(reads("data[data.a] == 1"), ["=", ".a="]);
        assert_eq!(reads("data.a == data.b.c"), [".a=", ".b.c="]);
    }

    #[test]
    fn macros_read_what_they_ask_of_elements() {
        assert_eq!(
            reads("data.p.exists(p, p.name == 'x' && has(p.value))"),
            [".p.*.name=", ".p.*.value"]
        );
        assert_eq!(
            reads("data.p.exists(i, p, i == 0 && p.q.all(r, r.s == 1))"),
            [".p.*.q.*.s="]
        );
        assert_eq!(reads("data.p.map(p, p.a).size() > 1"), [".p.*.a="]);
        assert_eq!(
            reads("data.p.filter(p, p.a == 1).exists(q, q.b == 2)"),
            [".p.*=", ".p.*.a="]
        );
        assert_eq!(reads("data.labels.exists(key, key == 'a')"), [".labels.*="]);
    }
}
