//! What is probably wrong with a filter that matched nothing: a part of payloads that no payload
//! has, or one that is compared with a value of another type.
//!
//! Neither is an error, because payloads are anybody's, but an empty list does not tell them from
//! a question to which the answer is "none".

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{
    expr::{Expr, ExprKind, Macro},
    fields,
    indexed::{Path, Step},
    value::Value,
};

/// Most things that are told of one filter.
const MOST: usize = 5;
/// Most members that are named where one should be chosen.
const MOST_NAMES: usize = 5;
/// Longest name of a member that may be meant by another.
const LONGEST_NAME: usize = 64;
/// Most values of one payload that a path is followed to.
const MOST_VALUES: usize = 1_000;

/// What is told of a filter that matches none of `payloads`, which it was judged on.
pub(super) fn advice(expr: &Expr, payloads: &[Json]) -> Vec<String> {
    if payloads.is_empty() {
        return Vec::new();
    }
    let mut mentions = Mentions::default();
    mentions.gather(expr);
    let told: BTreeSet<_> = mentions
        .found
        .iter()
        .filter_map(|mention| mention.advice(payloads))
        .collect();
    told.into_iter().take(MOST).collect()
}

/// A JSON type of which a filter holds constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Text,
    Number,
    Bool,
}

impl Scalar {
    fn of_json(json: &Json) -> Option<Self> {
        match json {
            Json::String(_) => Some(Self::Text),
            Json::Number(_) => Some(Self::Number),
            Json::Bool(_) => Some(Self::Bool),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// The type that a part must have to equal the constant; of a list, one of its elements.
    fn of_constant(constant: &Value<'_>) -> Option<Self> {
        match constant {
            // Payloads hold times and durations as text.
            Value::Text(_) | Value::Time(_) | Value::Duration(_) => Some(Self::Text),
            Value::Int(_) | Value::Uint(_) | Value::Double(_) => Some(Self::Number),
            Value::Bool(_) => Some(Self::Bool),
            Value::List(items) => {
                let mut types = items.iter().map(Self::of_constant);
                let first = types.next()??;
                types.all(|other| other == Some(first)).then_some(first)
            }
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Bool => "a boolean",
        }
    }
}

/// A step into a payload: a part, or every element of a list.
#[derive(Debug, Clone, PartialEq)]
enum Hop {
    Step(Step),
    Each,
}

/// A part of payloads that a filter names.
#[derive(Debug)]
struct Mention {
    path: Vec<Hop>,
    /// What it is compared with.
    compared: Option<Scalar>,
}

#[derive(Debug, Default)]
struct Mentions {
    found: Vec<Mention>,
    /// What the variables of the macros around stand for, outermost first.
    scopes: Vec<Option<Vec<Hop>>>,
}

impl Mentions {
    fn gather(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Compare(_, pair) | ExprKind::In(pair) => {
                let [left, right] = &**pair;
                let is_in = matches!(expr.kind, ExprKind::In(_));
                for (part, other) in [(left, Some(right)), (right, (!is_in).then_some(left))] {
                    let compared = other.and_then(Expr::constant);
                    let compared = compared.and_then(Scalar::of_constant);
                    match self.path(part) {
                        Some(path) => self.found.push(Mention { path, compared }),
                        None => self.gather(part),
                    }
                }
            }
            ExprKind::Has(of, key) => {
                if let Some(mut path) = self.path(of) {
                    path.push(Hop::Step(Step::Key(key.clone())));
                    let compared = None;
                    self.found.push(Mention { path, compared });
                }
            }
            ExprKind::Macro(of) => self.gather_macro(of),
            _ => match self.path(expr) {
                Some(path) => {
                    let compared = None;
                    self.found.push(Mention { path, compared });
                }
                None => expr.parts().into_iter().for_each(|part| self.gather(part)),
            },
        }
    }

    fn gather_macro(&mut self, of: &Macro) {
        self.gather(&of.range);
        let element = self.path(&of.range).map(|mut path| {
            path.push(Hop::Each);
            path
        });
        let before = self.scopes.len();
        // The first of two variables is the index.
        self.scopes.extend((of.variables == 2).then_some(None));
        self.scopes.push(element);
        for part in of.test.iter().chain(&of.make) {
            self.gather(part);
        }
        self.scopes.truncate(before);
    }

    /// The way from a payload to what `expr` is.
    fn path(&self, expr: &Expr) -> Option<Vec<Hop>> {
        let (of, step) = match &expr.kind {
            ExprKind::Data | ExprKind::Alias(_) => return Some(Vec::new()),
            ExprKind::Local(slot) => return self.scopes.get(*slot)?.clone(),
            ExprKind::Member(of, key) => (of, Step::Key(key.clone())),
            ExprKind::Index(of, index) => match index.constant()? {
                Value::Int(at) => (of, Step::At(usize::try_from(*at).ok()?)),
                _ => return None,
            },
            _ => return None,
        };
        let mut path = self.path(of)?;
        path.push(Hop::Step(step));
        Some(path)
    }
}

impl Mention {
    fn advice(&self, payloads: &[Json]) -> Option<String> {
        let mut found: Vec<_> = payloads.iter().collect();
        for (at, hop) in self.path.iter().enumerate() {
            let next = follow(&found, hop);
            if next.is_empty() {
                return match hop {
                    Hop::Step(Step::Key(key)) => missing(&self.path[..at], key, &found),
                    // Lists may be short.
                    _ => None,
                };
            }
            found = next;
        }
        self.of_another_type(&found)
    }

    /// What is told if none of the values can equal what they are compared with.
    fn of_another_type(&self, values: &[&Json]) -> Option<String> {
        let wanted = self.compared?;
        if values
            .iter()
            .any(|value| Scalar::of_json(value) == Some(wanted))
        {
            return None;
        }
        let part = spelled(&self.path);
        let value = values.iter().find(|value| !value.is_null())?;
        let remedy = match (value, Scalar::of_json(value)) {
            (_, Some(Scalar::Number)) => {
                format!("write the number without quotes, or `string({part})`")
            }
            (_, Some(Scalar::Bool)) => "write `true` or `false`, without quotes".to_owned(),
            (_, Some(Scalar::Text)) => match wanted {
                Scalar::Number => format!("write it in quotes, or `double({part})`"),
                _ => "write it in quotes".to_owned(),
            },
            (Json::Object(members), _) => {
                let names: Vec<_> = members
                    .keys()
                    .take(MOST_NAMES)
                    .map(|name| format!("`{name}`"))
                    .collect();
                format!("name one of its members, such as {}", names.join(", "))
            }
            _ => format!("write `{part}.exists(e, e == ...)`, or choose one, as in `{part}[0]`"),
        };
        let is = match value {
            Json::Object(_) => "an object",
            Json::Array(_) => "a list",
            scalar => Scalar::of_json(scalar)?.name(),
        };
        Some(format!(
            "`{part}` is {is} in the records that were looked at, and is compared with {}; {remedy}",
            wanted.name()
        ))
    }
}

/// What is told of a member that none of its objects has.
fn missing(above: &[Hop], key: &str, objects: &[&Json]) -> Option<String> {
    let members = objects.iter().filter_map(|value| value.as_object());
    let names: BTreeSet<_> = members.flat_map(|members| members.keys()).collect();
    // Of long ones the distance would take long to find.
    let short = |name: &str| name.len() <= LONGEST_NAME;
    let names = names
        .iter()
        .map(|name| name.as_str())
        .filter(|name| short(name));
    let near = short(key).then(|| fields::nearest(key, names)).flatten();
    let spell = |key: &str| {
        let mut path = above.to_vec();
        path.push(Hop::Step(Step::Key(key.to_owned())));
        spelled(&path)
    };
    let advice = match near {
        Some(near) => format!("; did you mean `{}`?", spell(near)),
        None if objects.iter().any(|value| value.is_array()) => {
            let list = spelled(above);
            format!(
                "; `{list}` is a list: write `{list}.exists(e, e...)`, or choose one, as in `{list}[0]`"
            )
        }
        None => String::new(),
    };
    let part = spell(key);
    Some(format!(
        "none of the records that were looked at has `{part}`{advice}"
    ))
}

fn follow<'j>(values: &[&'j Json], hop: &Hop) -> Vec<&'j Json> {
    let most = MOST_VALUES.max(values.len());
    let step = |value: &&'j Json| -> Vec<&'j Json> {
        match (hop, *value) {
            (Hop::Step(Step::Key(key)), Json::Object(members)) => {
                members.get(key).into_iter().collect()
            }
            (Hop::Step(Step::At(at)), Json::Array(items)) => items.get(*at).into_iter().collect(),
            (Hop::Each, Json::Array(items)) => items.iter().collect(),
            _ => Vec::new(),
        }
    };
    values.iter().flat_map(step).take(most).collect()
}

/// A path as a filter writes it; `[]` is any element.
fn spelled(path: &[Hop]) -> String {
    let mut text = String::new();
    let mut part = Vec::new();
    for hop in path {
        match hop {
            Hop::Step(step) => part.push(step.clone()),
            Hop::Each => {
                text = append(&text, std::mem::take(&mut part)) + "[]";
            }
        }
    }
    append(&text, part)
}

/// A path of steps alone says its root.
fn append(text: &str, steps: Vec<Step>) -> String {
    let path = Path::new(steps).to_string();
    match text {
        "" => path,
        text => format!("{text}{}", path.strip_prefix("data").unwrap_or(&path)),
    }
}

#[cfg(test)]
mod tests;
