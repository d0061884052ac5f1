//! Expressions over one object: the language of filters, with variables that the caller names.

use std::{fmt, sync::Arc};

use serde_json::Value as Json;

use super::{
    cost::CostBudget, error::FilterError, eval, expr::Expr, lower, parse, types::Type, value::Value,
};

/// An expression over `object` and variables that are texts.
#[derive(Clone)]
pub struct Expression {
    text: Arc<str>,
    expr: Arc<Expr>,
}

impl Expression {
    /// Reads `text`, which may name `object` and `variables`; it fails as
    /// [`Filter::compile`](crate::Filter::compile) does of a filter.
    pub fn compile(text: &str, variables: &[&str]) -> Result<Self, FilterError> {
        let mut budget = CostBudget::default();
        let tree = parse::parse(text, &mut budget)?;
        let texts = variables.iter().map(|name| (*name, Type::Text));
        let scope = [("object", Type::Dyn)].into_iter().chain(texts);
        let scope = scope.map(|(name, ty)| (name.to_owned(), ty)).collect();
        let expr = lower::over(&tree, scope, &mut budget);
        Ok(Self {
            text: text.into(),
            expr: Arc::new(expr.map_err(|problem| problem.in_meaning(text))?),
        })
    }

    /// Whether it is true of `object` and `texts`, one for each variable. Where that is unknown, it
    /// is not true.
    pub fn holds(&self, object: &Json, texts: &[&str]) -> bool {
        self.value(object, texts) == Some(Value::Bool(true))
    }

    /// The text that it makes of `object` and `texts`, unless that is unknown, empty or no text.
    pub fn text(&self, object: &Json, texts: &[&str]) -> Option<String> {
        match self.value(object, texts)? {
            Value::Text(text) => Some(text.to_string()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    fn value<'a>(&'a self, object: &'a Json, texts: &[&'a str]) -> Option<Value<'a>> {
        let texts = texts.iter().map(|text| Value::text(text));
        let variables = [Value::of_json(object)].into_iter().chain(texts);
        eval::with_variables(&self.expr, variables.collect())
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

    use super::Expression;

    const VARIABLES: &[&str] = &["outcome"];

    fn read(text: &str) -> Expression {
        Expression::compile(text, VARIABLES).unwrap()
    }

    #[track_caller]
    fn check(text: &str, holds: bool) {
        let object = json!({"spec": {"n": 3, "f": 1.5, "tags": ["a", "b"]}, "metadata": {
            "labels": {"app.example/x": "y"}, "name": "build-1"}});
        assert_eq!(read(text).holds(&object, &["failure"]), holds, "{text}");
    }

    #[test]
    fn an_expression_asks_about_the_whole_object() {
        for text in [
            "object.spec.n == 3",
            "object.spec.n > 2 && object.spec.f < 2.0",
            "object.metadata.labels['app.example/x'] == 'y'",
            "has(object.spec.n) && !has(object.spec.missing)",
            "'b' in object.spec.tags",
            "object.spec.tags.exists(t, t.startsWith('a') && outcome == 'failure')",
            "object.metadata.name.matches('^build-[0-9]+$')",
            "size(object.spec.tags) == 2",
            "outcome == 'failure' ? true : false",
        ] {
            check(text, true);
        }
        check("object.spec.n == 4", false);
    }

    #[test]
    fn what_is_missing_or_of_another_type_is_neither_true_nor_false() {
        for text in [
            "object.spec.missing == 3",
            "object.metadata.labels['none'] == 'y'",
            "object.spec.n == 'a'",
            "object.spec.tags > 3",
            "1 / (object.spec.n - 3) == 1",
        ] {
            check(text, false);
            check(&format!("!({text})"), false);
        }
        check("object.spec.n", false);
    }

    #[test]
    fn a_text_may_be_left_out() {
        let object = json!({"status": {"end": "2026-03-01T10:00:00Z", "empty": "", "no": null}});
        let text = |text| read(text).text(&object, &[""]);
        let end = text("object.status.end");
        assert_eq!(end.as_deref(), Some("2026-03-01T10:00:00Z"));
        for none in ["object.status.empty", "object.status.no", "object.x", "1"] {
            assert_eq!(text(none), None, "{none}");
        }
    }

    #[test]
    fn a_wrong_expression_is_refused_with_what_would_be_right() {
        for (text, why) in [
            ("object.", "filter column 8: `.` is not expected here"),
            (
                "run.spec == 1",
                "filter column 1: unknown name `run`; the names here are `object` and `outcome`",
            ),
            ("data.x == 1", "unknown name `data`"),
            (
                "outcom == ''",
                "unknown name `outcom`; did you mean `outcome`?",
            ),
        ] {
            let error = Expression::compile(text, VARIABLES).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
