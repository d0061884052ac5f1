//! Parameters of a custom run in the spec of its workflow: `$(params.NAME)` within any text, and
//! `$(params.NAME[*])` as an item of a list, which becomes the items of the parameter.

use serde_json::Value;

use super::run::Param;

const START: &str = "$(params";

/// Puts the values of `params` into `value`, which is at `path`. Returns what is wrong with references to
/// parameters in it.
pub(super) fn fill(value: &mut Value, params: &[Param], path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    Filler {
        params,
        problems: &mut problems,
    }
    .visit(value, path);
    problems
}

struct Filler<'p> {
    params: &'p [Param],
    problems: &'p mut Vec<String>,
}

impl Filler<'_> {
    fn visit(&mut self, value: &mut Value, path: &str) {
        match value {
            Value::String(text) => {
                if let Some(filled) = self.text(text, path) {
                    *text = filled;
                }
            }
            Value::Array(items) => {
                let before = std::mem::take(items);
                for (index, mut item) in before.into_iter().enumerate() {
                    match self.list(&item) {
                        Some(list) => items.extend(list),
                        None => {
                            self.visit(&mut item, &format!("{path}[{index}]"));
                            items.push(item);
                        }
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.visit(member, &format!("{path}.{name}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The items of a list that the whole text refers to.
    fn list(&self, item: &Value) -> Option<Vec<Value>> {
        let text = item.as_str()?;
        let (name, rest) = reference(text.strip_prefix(START)?)?;
        let name = name.strip_suffix("[*]").filter(|_| rest.is_empty())?;
        self.value(unquoted(name))?.as_array().cloned()
    }

    /// The text with values for references; `None` where it has none.
    fn text(&mut self, text: &str, path: &str) -> Option<String> {
        let (mut filled, mut left) = (String::new(), text);
        while let Some((before, after)) = left.split_once(START) {
            filled.push_str(before);
            let Some((name, rest)) = reference(after) else {
                filled.push_str(START);
                left = after;
                continue;
            };
            match self.value(unquoted(name)) {
                Some(Value::String(value)) => filled.push_str(value),
                Some(_) => self.problems.push(format!(
                    "{path}: `$(params{name})` is no text; a list is an item of a list, as \
                     `$(params.NAME[*])`"
                )),
                None => self.problems.push(format!(
                    "{path}: `$(params{name})` is not a parameter of the run"
                )),
            }
            left = rest;
        }
        (!filled.is_empty() || left.len() < text.len()).then(|| filled + left)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let mut params = self.params.iter();
        params
            .find(|param| param.name == name)
            .map(|param| &param.value.0)
    }
}

/// What is between `$(params` and the parenthesis, and what follows that; `None` where it is no reference.
fn reference(after: &str) -> Option<(&str, &str)> {
    let (name, rest) = after.split_once(')')?;
    name.starts_with(['.', '[']).then_some((name, rest))
}

/// The name in `.NAME`, `["NAME"]` or `['NAME']`.
fn unquoted(name: &str) -> &str {
    let quoted = |quote: char| {
        let inner = name.strip_prefix('[')?.strip_suffix(']')?;
        inner.strip_prefix(quote)?.strip_suffix(quote)
    };
    let name = quoted('"')
        .or_else(|| quoted('\''))
        .or_else(|| name.strip_prefix('.'));
    name.unwrap_or_default()
}
