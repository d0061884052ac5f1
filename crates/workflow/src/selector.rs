//! Whether a selector is well-formed, and which labels it matches.

use std::collections::BTreeMap;

use hindsight_run::selector::is_qualified_name;

use crate::spec::{LabelSelector, Requirement};

/// What is wrong with a selector.
pub(crate) fn problems(selector: &LabelSelector) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, value) in &selector.match_labels {
        if !is_qualified_name(key) {
            problems.push(format!("spec.selector: \"{key}\" is not a key of a label"));
        }
        if !is_label_value(value) {
            problems.push(format!(
                "spec.selector: \"{value}\" is not a value of a label"
            ));
        }
    }
    for Requirement {
        key,
        operator,
        values,
    } in &selector.match_expressions
    {
        if !is_qualified_name(key) {
            problems.push(format!("spec.selector: \"{key}\" is not a key of a label"));
        }
        let wants = match operator.as_str() {
            "In" | "NotIn" => !values.is_empty(),
            "Exists" | "DoesNotExist" => values.is_empty(),
            _ => {
                problems.push(format!(
                    "spec.selector: \"{operator}\" is not an operator; want In, NotIn, Exists or \
                     DoesNotExist"
                ));
                continue;
            }
        };
        if !wants {
            let text =
                format!("spec.selector: {operator} of \"{key}\" has a wrong number of values");
            problems.push(text);
        }
    }
    problems
}

/// Whether these labels are selected.
pub(crate) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    let passes = |test: &Requirement| {
        let value = labels.get(&test.key);
        match test.operator.as_str() {
            "In" => value.is_some_and(|value| test.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !test.values.contains(value)),
            "Exists" => value.is_some(),
            _ => value.is_none(),
        }
    };
    selector.match_labels.iter().all(has) && selector.match_expressions.iter().all(passes)
}

/// Whether a text may be the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_alphanumeric();
    let inner = |byte: u8| edge(byte) || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().copied().all(inner)
        && bytes.first().copied().is_none_or(edge)
        && bytes.last().copied().is_none_or(edge)
}
