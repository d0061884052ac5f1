//! Words for how a run stands.

use std::collections::BTreeSet;

use hindsight_run::keys;

use super::{
    error::{Fault, shown},
    lex::Word,
    quoted,
    test::{Test, any, nearest, single},
};

/// What `status:` takes, and the name of the outcome in CEL; none where an outcome says too little.
const STATUSES: [(&str, Option<&str>); 14] = [
    ("succeeded", Some("SUCCESS")),
    ("success", Some("SUCCESS")),
    ("ok", Some("SUCCESS")),
    ("failed", Some("FAILURE")),
    ("failure", Some("FAILURE")),
    ("timeout", Some("TIMEOUT")),
    ("timedout", Some("TIMEOUT")),
    ("cancelled", Some("CANCELLED")),
    ("canceled", Some("CANCELLED")),
    ("unknown", Some("UNKNOWN")),
    ("running", None),
    ("waiting", None),
    ("pending", None),
    ("vanished", None),
];

/// Words that mean a status by themselves.
pub(super) const BARE: [&str; 8] = [
    "failed",
    "succeeded",
    "timeout",
    "cancelled",
    "canceled",
    "running",
    "waiting",
    "vanished",
];

pub(super) fn status(word: &Word<'_>) -> Result<Test, Fault> {
    let mut names = Vec::new();
    for value in &word.values {
        let lower = value.text.to_ascii_lowercase();
        let known = STATUSES.iter().find(|(name, _)| *name == lower);
        match known.filter(|_| value.is_exact()) {
            Some((name, _)) => names.push(*name),
            None => {
                let known = [
                    "succeeded",
                    "failed",
                    "timeout",
                    "cancelled",
                    "running",
                    "waiting",
                    "vanished",
                ];
                let what = format!(
                    "unknown status `{}`; {}",
                    shown(&value.text),
                    nearest(&lower, STATUSES.map(|(name, _)| name), &known)
                );
                return Err(Fault::new(value.part.clone(), what));
            }
        }
    }
    Ok(statuses(&names, false))
}

/// That a run has one of these statuses; `widely`, that it did not succeed.
pub(super) fn statuses(names: &[&str], widely: bool) -> Test {
    let of = |name: &&str| STATUSES.iter().find(|(known, _)| known == name);
    let outcomes: BTreeSet<_> = names
        .iter()
        .filter_map(|name| of(name)?.1)
        .chain(widely.then_some("TIMEOUT"))
        .collect();
    let outcomes: Vec<_> = outcomes.into_iter().collect();
    let mut tests = match outcomes.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("run.outcome == {one}")],
        several => vec![format!("run.outcome in [{}]", several.join(", "))],
    };
    let open = |started| {
        format!("(run.outcome == UNKNOWN && {started}has(run.start_time) && !has(run.end_time))")
    };
    if names.contains(&"running") {
        tests.push(open(""));
    }
    if names.contains(&"waiting") || names.contains(&"pending") {
        tests.push(open("!"));
    }
    if names.contains(&"vanished") {
        tests.push("(run.outcome == UNKNOWN && has(run.end_time))".to_owned());
    }
    Test::present("run.outcome", any(tests))
}

pub(super) fn is(word: &Word<'_>) -> Result<Test, Fault> {
    let text = single(word)?;
    let lower = text.to_ascii_lowercase();
    let child = format!("has(run.labels[{}])", quoted(keys::PIPELINE_RUN));
    match lower.as_str() {
        "child" => Ok(Test::always(child)),
        "top" => Ok(Test::always(format!("!{child}"))),
        status if BARE.contains(&status) => Ok(statuses(&[status], status == "failed")),
        _ => {
            let known = BARE.into_iter().chain(["child", "top"]);
            let what = format!(
                "`is:` has no `{}`; {}",
                shown(text),
                nearest(&lower, known, &["failed", "running", "child", "top"])
            );
            Err(Fault::new(word.values[0].part.clone(), what))
        }
    }
}
