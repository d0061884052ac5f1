//! Expressions of operators over the object of a run, in CEL. Pure: an object in, a value out.
//!
//! What an expression says nothing about is not decided by it: a missing field, or a comparison
//! of values of different types, is an error of the evaluation, and whoever asked takes the
//! careful way.

use std::{collections::HashMap, fmt, sync::Arc};

use cel::{
    Context, Program, Value as Cel,
    common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr},
    objects::Key,
};
use serde_json::Value;

/// Longest text of an expression, in bytes.
const LONGEST: usize = 10_000;

/// An expression, read once.
#[derive(Clone)]
pub struct Expression {
    text: Arc<str>,
    program: Arc<Program>,
}

/// What an expression may ask about: the object, and what was found out about it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// `object`: all of it.
    pub object: &'a Value,
    /// Other variables, which are texts.
    pub texts: &'a [(&'static str, &'a str)],
}

/// Why a text is no expression that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no expression: {why}")]
pub struct ParseExpressionError {
    text: String,
    why: String,
}

/// Why an expression has no value for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` says nothing about this object: {why}")]
pub struct EvaluationError {
    text: Arc<str>,
    why: String,
}

impl Expression {
    /// Reads `text`, which may name `object` and `variables`.
    ///
    /// # Errors
    /// If it is no CEL, is longer than ten kilobytes, or names something else.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, ParseExpressionError> {
        let refuse = |why: String| ParseExpressionError {
            text: text.chars().take(200).collect(),
            why,
        };
        if text.len() > LONGEST {
            return Err(refuse(format!("it is longer than {LONGEST} bytes")));
        }
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.errors.first();
            refuse(first.map_or_else(|| "it cannot be read".to_owned(), |e| e.msg.clone()))
        })?;
        let mut bound: Vec<&str> = variables.iter().copied().chain(["object"]).collect();
        if let Some(name) = unbound(program.expression(), &mut bound) {
            let known: Vec<String> = ["object"]
                .iter()
                .chain(variables)
                .map(|name| format!("`{name}`"))
                .collect();
            return Err(refuse(format!(
                "there is no `{name}`; want {}",
                known.join(", ")
            )));
        }
        Ok(Self {
            text: text.into(),
            program: Arc::new(program),
        })
    }

    /// Whether it is true of `facts`.
    ///
    /// # Errors
    /// If it is neither true nor false of them.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, EvaluationError> {
        match self.value(facts)? {
            Cel::Bool(truth) => Ok(truth),
            other => Err(self.wrong(&other, "a truth")),
        }
    }

    /// The text that it makes of `facts`; `None` if that is null or empty.
    ///
    /// # Errors
    /// If it makes something else of them.
    pub fn text(&self, facts: &Facts<'_>) -> Result<Option<String>, EvaluationError> {
        match self.value(facts)? {
            Cel::String(text) => Ok(Some(text.to_string()).filter(|text| !text.is_empty())),
            Cel::Null => Ok(None),
            other => Err(self.wrong(&other, "a text")),
        }
    }

    fn value(&self, facts: &Facts<'_>) -> Result<Cel, EvaluationError> {
        let mut context = Context::default();
        context.add_variable_from_value("object", convert(facts.object));
        for (name, text) in facts.texts {
            context.add_variable_from_value(*name, Cel::String(Arc::new((*text).to_owned())));
        }
        self.program
            .execute(&context)
            .map_err(|error| EvaluationError {
                text: Arc::clone(&self.text),
                why: error.to_string(),
            })
    }

    fn wrong(&self, value: &Cel, wanted: &str) -> EvaluationError {
        EvaluationError {
            text: Arc::clone(&self.text),
            why: format!("want {wanted}, not {}", value.type_of()),
        }
    }
}

/// A name in `tree` that neither `bound` nor a macro around it gives a meaning.
fn unbound<'t>(tree: &'t IdedExpr, bound: &mut Vec<&'t str>) -> Option<&'t str> {
    match &tree.expr {
        Expr::Unspecified | Expr::Literal(_) => None,
        Expr::Ident(name) => (!bound.contains(&name.as_str())).then_some(name),
        Expr::Select(select) => unbound(&select.operand, bound),
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.into_iter().find_map(|part| unbound(part, bound))
        }
        Expr::List(list) => list.elements.iter().find_map(|part| unbound(part, bound)),
        Expr::Map(map) => entries(&map.entries, bound),
        Expr::Struct(of) => entries(&of.entries, bound),
        Expr::Comprehension(all) => {
            let outside = [&all.iter_range, &all.accu_init];
            if let Some(name) = outside.into_iter().find_map(|part| unbound(part, bound)) {
                return Some(name);
            }
            let before = bound.len();
            bound.extend([all.iter_var.as_str(), all.accu_var.as_str()]);
            bound.extend(all.iter_var2.as_deref());
            let inside = [&all.loop_cond, &all.loop_step, &all.result];
            let found = inside.into_iter().find_map(|part| unbound(part, bound));
            bound.truncate(before);
            found
        }
    }
}

fn entries<'t>(entries: &'t [IdedEntryExpr], bound: &mut Vec<&'t str>) -> Option<&'t str> {
    entries.iter().find_map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => unbound(&field.value, bound),
        EntryExpr::MapEntry(member) => {
            let parts = [&member.key, &member.value];
            parts.into_iter().find_map(|part| unbound(part, bound))
        }
    })
}

fn convert(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(whole)) => Cel::UInt(whole),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(members) => {
            let map: HashMap<Key, Cel> = members
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), convert(value)))
                .collect();
            Cel::Map(map.into())
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Expression, Facts};

    const VARIABLES: &[&str] = &["outcome"];

    fn read(text: &str) -> Expression {
        Expression::parse(text, VARIABLES).unwrap()
    }

    #[track_caller]
    fn check(text: &str, holds: Option<bool>) {
        let object = json!({"spec": {"n": 3, "f": 1.5, "tags": ["a", "b"]}, "metadata": {
            "labels": {"app.example/x": "y"}, "name": "build-1"}});
        let facts = Facts {
            object: &object,
            texts: &[("outcome", "failure")],
        };
        assert_eq!(read(text).holds(&facts).ok(), holds, "{text}");
    }

    #[test]
    fn an_expression_asks_about_the_whole_object() {
        for text in [
            "object.spec.n == 3",
            "object.spec.n > 2 && object.spec.f < 2.0",
            "object.metadata.labels['app.example/x'] == 'y'",
            "has(object.spec.n) && !has(object.spec.missing)",
            "'b' in object.spec.tags",
            "object.spec.tags.exists(t, t.startsWith('a'))",
            "object.metadata.name.matches('^build-[0-9]+$')",
            "size(object.spec.tags) == 2",
            "outcome == 'failure' ? true : false",
        ] {
            check(text, Some(true));
        }
        check("object.spec.n == 4", Some(false));
    }

    #[test]
    fn what_is_missing_or_of_another_type_has_no_answer() {
        for text in [
            "object.spec.missing == 3",
            "object.metadata.labels['none'] == 'y'",
            "object.spec.n",
            "object.spec.tags > 3",
            "1 / 0 == 1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_text_may_be_left_out() {
        let object = json!({"status": {"end": "2026-03-01T10:00:00Z", "empty": "", "no": null}});
        let facts = Facts {
            object: &object,
            texts: &[],
        };
        let text = |text| read(text).text(&facts);
        assert_eq!(
            text("object.status.end"),
            Ok(Some("2026-03-01T10:00:00Z".into()))
        );
        assert_eq!(text("object.status.empty"), Ok(None));
        assert_eq!(text("object.status.no"), Ok(None));
        assert!(text("1").is_err());
    }

    #[test]
    fn a_wrong_expression_is_refused_with_what_would_be_right() {
        for (text, why) in [
            ("object.", "`object.` is no expression"),
            (
                "run.spec == 1",
                "there is no `run`; want `object`, `outcome`",
            ),
            (&"1+".repeat(6000), "longer than 10000 bytes"),
        ] {
            let error = Expression::parse(text, VARIABLES).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
