//! The parts of the configuration that are more than a key and a value: `[[rule]]` in the file.

use serde::Deserialize;

use hindsight_run::Kind;

use super::texts::{duration, kinds, labels};
use crate::{
    declared::Declared,
    expression::Expression,
    policy::{
        Rule,
        rules::{OUTCOMES, VARIABLES},
    },
};

/// The keys of the file that are tables.
pub(super) const NAMES: &[&str] = &["kind", "rule"];

/// What they say.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// `[[rule]]`, in order.
    pub(super) rules: Vec<Rule>,
    /// `[[kind]]`, and of which labels.
    pub(super) kinds: Vec<(&'static Kind, Option<String>)>,
}

impl Tables {
    /// Reads one of [`NAMES`]. Returns what is wrong, and in which table, counted from one.
    pub(super) fn read(&mut self, name: &str, value: &toml::Value) -> Vec<(usize, String)> {
        let Some(tables) = value.as_array() else {
            return vec![(1, format!("want tables; write `[[{name}]]`"))];
        };
        let mut wrong = Vec::new();
        for (n, table) in (1..).zip(tables) {
            let read = match name {
                "kind" => kind(table).map(|kind| self.kinds.push(kind)),
                _ => rule(table).map(|rule| self.rules.push(rule)),
            };
            if let Err(why) = read {
                wrong.push((n, why));
            }
        }
        wrong
    }
}

/// `[[rule]]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RuleText {
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
/// What is wrong with it.
fn rule(table: &toml::Value) -> Result<Rule, String> {
    let text: RuleText = table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(Rule {
        kinds: match text.kinds.is_empty() {
            true => Vec::new(),
            false => kinds(&text.kinds.join(","))?,
        },
        namespaces: text.namespaces,
        selector: text
            .label_selector
            .unwrap_or_default()
            .parse()
            .map_err(|error| format!("label-selector: {error}"))?,
        outcomes: text
            .outcomes
            .iter()
            .map(|name| outcome(name))
            .collect::<Result<_, _>>()?,
        never: text.collect == Some(false),
        grace: text
            .grace
            .map(|grace| duration(&grace))
            .transpose()
            .map_err(|why| format!("grace: {why}"))?,
        keep_last: text.keep_last,
        when: text.collect_when.map(|text| when(&text)).transpose()?,
    })
}

/// `[[kind]]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KindText {
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
fn kind(table: &toml::Value) -> Result<(&'static Kind, Option<String>), String> {
    let text: KindText = table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let read = |key: &str, text: &str| {
        Expression::parse(text, &[]).map_err(|error| format!("{key}: {error}"))
    };
    let optional =
        |key: &str, text: &Option<String>| text.as_deref().map(|text| read(key, text)).transpose();
    let judge = Declared {
        done: read("done", &text.done)?,
        outcome: optional("outcome", &text.outcome)?,
        started: optional("started", &text.started)?,
        ended: optional("ended", &text.ended)?,
        group: optional("group-by", &text.group_by)?,
    };
    let labels = text.label_selector.as_deref().map(labels).transpose()?;
    let kind = judge.declare(&text.group, &text.version, &text.kind, &text.plural)?;
    Ok((kind, labels))
}

/// Reads the expression that must be true of a run that is collected.
///
/// # Errors
/// If it is none, or names what is not known.
pub(super) fn when(text: &str) -> Result<Expression, String> {
    Expression::parse(text, VARIABLES).map_err(|error| format!("collect-when: {error}"))
}

fn outcome(name: &str) -> Result<hindsight_run::Outcome, String> {
    let known = OUTCOMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, outcome)| *outcome).ok_or_else(|| {
        let names: Vec<&str> = OUTCOMES.iter().map(|(name, _)| *name).collect();
        format!(
            "outcomes: `{name}` is none; want any of {}",
            names.join(", ")
        )
    })
}
