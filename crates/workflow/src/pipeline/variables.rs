//! Variables in values, such as `$(params.NAME)`, `$(params.NAME[0])` or `$(tasks.TASK.results.NAME[*])`.

use serde_json::Value;

/// What a variable stands for.
pub(super) enum Found {
    /// This text, list or object.
    Value(Value),
    /// Itself: it is for somebody else to replace.
    Kept,
}

/// A name, and what of its value is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'t> {
    /// `NAME`, or `NAME.KEY` for a member of an object.
    pub(super) name: &'t str,
    /// The item of a list.
    index: Option<usize>,
}

/// Why a place has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// There is nothing of the name.
    Name,
    /// The list is shorter.
    Item,
}

/// The name of a task and the place of its result, where the variable is one.
pub(super) fn result(variable: &str) -> Option<(&str, Place<'_>)> {
    let (task, place) = variable.strip_prefix("tasks.")?.split_once(".results")?;
    let is_name = !task.is_empty() && !task.contains('.');
    Some((task, place_of(place)?)).filter(|_| is_name)
}

/// The place of a parameter, where the variable is one.
pub(super) fn param(variable: &str) -> Option<Place<'_>> {
    place_of(variable.strip_prefix("params")?)
}

/// `.NAME`, `["NAME"]` or `['NAME']`, and then nothing, `[*]` or a number in brackets.
fn place_of(text: &str) -> Option<Place<'_>> {
    let quoted = |quote: &str| {
        let inner = text.strip_prefix('[')?.strip_prefix(quote)?;
        let (name, rest) = inner.split_once(quote)?;
        Some((name, rest.strip_prefix(']')?))
    };
    let dotted = || {
        let name = text.strip_prefix('.')?;
        let end = name.find('[').unwrap_or(name.len());
        Some(name.split_at(end))
    };
    let (name, rest) = quoted("\"").or_else(|| quoted("'")).or_else(dotted)?;
    let index = match rest {
        "" | "[*]" => None,
        rest => Some(rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?),
    };
    (!name.is_empty()).then_some(Place { name, index })
}

impl Place<'_> {
    /// The value at the place, of those by name.
    pub(super) fn of<'v>(
        self,
        named: impl Fn(&str) -> Option<&'v Value>,
    ) -> Result<&'v Value, Missing> {
        let member = || {
            let (name, key) = self.name.rsplit_once('.')?;
            named(name)?.as_object()?.get(key)
        };
        let value = named(self.name).or_else(member).ok_or(Missing::Name)?;
        match self.index {
            None => Ok(value),
            Some(index) => value.get(index).ok_or(Missing::Item),
        }
    }
}

/// All variables in a value: what is within `$(` and `)`.
pub(super) fn variables(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => text.split("$(").skip(1).filter_map(inner).collect(),
        Value::Array(items) => items.iter().flat_map(variables).collect(),
        Value::Object(members) => members.values().flat_map(variables).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Puts values in the place of variables. A text that is one variable becomes its value, and an item of a list
/// the items of it. Returns the variables within texts that stand for no text.
pub(super) fn fill(value: &mut Value, of: &mut impl FnMut(&str) -> Found) -> Vec<String> {
    match value {
        Value::String(text) => {
            let whole = text.strip_prefix("$(").and_then(|rest| {
                let variable = inner(rest)?;
                (variable.len() + 1 == rest.len()).then_some(variable)
            });
            if let Some(variable) = whole {
                if let Found::Value(found) = of(variable) {
                    *value = found;
                }
                return Vec::new();
            }
            let (filled, problems) = within(text, of);
            *value = Value::String(filled);
            problems
        }
        Value::Array(items) => {
            let mut problems = Vec::new();
            for mut item in std::mem::take(items) {
                let is_text = item.is_string();
                problems.extend(fill(&mut item, of));
                match item {
                    Value::Array(inner) if is_text => items.extend(inner),
                    item => items.push(item),
                }
            }
            problems
        }
        Value::Object(members) => {
            let members = members.values_mut();
            members.flat_map(|member| fill(member, of)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn within(text: &str, of: &mut impl FnMut(&str) -> Found) -> (String, Vec<String>) {
    let mut parts = text.split("$(");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    let mut problems = Vec::new();
    for part in parts {
        let found = inner(part).map(|variable| (variable, of(variable)));
        match found {
            Some((variable, Found::Value(Value::String(value)))) => {
                filled.push_str(&value);
                filled.push_str(&part[variable.len() + 1..]);
                continue;
            }
            Some((variable, Found::Value(_))) => problems.push(variable.to_owned()),
            Some((_, Found::Kept)) | None => {}
        }
        filled.push_str("$(");
        filled.push_str(part);
    }
    (filled, problems)
}

/// What is before the parenthesis.
fn inner(rest: &str) -> Option<&str> {
    rest.split_once(')').map(|(variable, _)| variable)
}
