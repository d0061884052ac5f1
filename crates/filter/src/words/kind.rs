//! Kinds of runs by the names that people and kubectl give them.

use hindsight_run::Kinds;

use super::{
    error::{Fault, shown},
    lex::{Piece, Word},
    test::{Test, one_of},
};
use crate::fields;

/// Short names of kinds, as kubectl has them.
const SHORT_KINDS: [(&str, &str); 4] = [
    ("pr", "PipelineRun"),
    ("prs", "PipelineRun"),
    ("tr", "TaskRun"),
    ("wf", "Workflow"),
];

pub(super) fn kind(word: &Word<'_>) -> Result<Test, Fault> {
    let mut named = Vec::new();
    for value in &word.values {
        let text = match value.is_exact() && !value.quoted {
            true => kind_named(value)?,
            false => value.text.clone(),
        };
        named.push(Piece {
            part: value.part.clone(),
            text,
            label: None,
            open_start: value.open_start,
            open_end: value.open_end,
            quoted: value.quoted,
        });
    }
    Ok(Test::always(one_of("data.kind", &named)))
}

/// The kind that a value means. Kinds begin with a capital, so that other words must be known.
fn kind_named(value: &Piece) -> Result<String, Fault> {
    let lower = value.text.to_ascii_lowercase();
    let kinds = Kinds::built_in();
    let known = kinds
        .all()
        .find(|kind| kind.kind.eq_ignore_ascii_case(&lower) || kind.plural == lower);
    let short = SHORT_KINDS.iter().find(|(short, _)| *short == lower);
    match (known, short) {
        (Some(kind), _) => return Ok(kind.kind.to_owned()),
        (None, Some((_, kind))) => return Ok((*kind).to_owned()),
        (None, None) if value.text.starts_with(|c: char| c.is_ascii_uppercase()) => {
            return Ok(value.text.clone());
        }
        (None, None) => {}
    }
    let names = kinds.all().map(|kind| kind.kind);
    let what = format!(
        "unknown kind `{}`; {} Another kind is written as it is spelled, with its capitals",
        shown(&value.text),
        match fields::nearest(&lower, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None =>
                "known are `pipelinerun`, `taskrun`, `workflow`, `job` and `rayjob`.".to_owned(),
        }
    );
    Err(Fault::new(value.part.clone(), what))
}
