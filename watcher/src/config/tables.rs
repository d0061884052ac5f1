//! The tables of the file: `[[rule]]` and `[[kind]]`.

use hindsight_config::{BadValue, Value, one_of, signed_duration};
use hindsight_run::{Kind, selector::Selector};
use serde::Deserialize;

use super::values::{Condition, Kinds, LabelSelector, expression};
use crate::{
    declared::Declared,
    policy::{Rule, rules::OUTCOMES},
};

/// The keys of `[[rule]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    namespaces: Vec<String>,
    label_selector: Option<String>,
    #[serde(default)]
    outcomes: Vec<String>,
    collect: Option<bool>,
    grace: Option<String>,
    keep_last: Option<usize>,
    collect_when: Option<String>,
}

/// Reads one rule.
///
/// # Errors
/// The complaint about its first wrong key.
pub(super) fn rule(text: RuleText) -> Result<Rule, String> {
    let why = |bad: BadValue| bad.to_string();
    Ok(Rule {
        kinds: Kinds::read(&text.kinds.join(",")).map_err(why)?.0,
        namespaces: text.namespaces,
        selector: labels(text.label_selector)?.map_or_else(Selector::default, |labels| labels.0),
        outcomes: text
            .outcomes
            .iter()
            .map(|name| outcome(name))
            .collect::<Result<_, _>>()?,
        never: text.collect == Some(false),
        grace: text
            .grace
            .map(|grace| signed_duration(&grace))
            .transpose()
            .map_err(|bad| format!("grace: {bad}"))?,
        keep_last: text.keep_last,
        when: text
            .collect_when
            .map(|text| Condition::read(&text))
            .transpose()
            .map_err(|bad| format!("collect_when: {bad}"))?
            .map(|when| when.0),
    })
}

/// The keys of `[[kind]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindText {
    group: String,
    version: String,
    kind: String,
    plural: String,
    label_selector: Option<String>,
    done: String,
    outcome: Option<String>,
    started: Option<String>,
    ended: Option<String>,
    group_by: Option<String>,
}

/// Reads one kind, and makes it known.
///
/// # Errors
/// What is wrong with it, or that it is known already.
pub(super) fn kind(text: KindText) -> Result<(&'static Kind, Option<String>), String> {
    let read =
        |key: &str, text: &str| expression(text, &[]).map_err(|error| format!("{key}: {error}"));
    let optional =
        |key: &str, text: &Option<String>| text.as_deref().map(|text| read(key, text)).transpose();
    let judge = Declared {
        done: read("done", &text.done)?,
        outcome: optional("outcome", &text.outcome)?,
        started: optional("started", &text.started)?,
        ended: optional("ended", &text.ended)?,
        group: optional("group_by", &text.group_by)?,
    };
    let labels = labels(text.label_selector)?;
    let kind = judge.declare(&text.group, &text.version, &text.kind, &text.plural)?;
    Ok((kind, labels.as_ref().map(Value::show)))
}

fn labels(text: Option<String>) -> Result<Option<LabelSelector>, String> {
    let labels = text.as_deref().map(LabelSelector::read).transpose();
    labels.map_err(|bad| format!("label_selector: {bad}"))
}

fn outcome(name: &str) -> Result<hindsight_run::Outcome, String> {
    let known = OUTCOMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, outcome)| *outcome).ok_or_else(|| {
        let names: Vec<&str> = OUTCOMES.iter().map(|(name, _)| *name).collect();
        let names = one_of(&names);
        format!("outcomes: `{name}` is not a valid outcome; want {names}")
    })
}
