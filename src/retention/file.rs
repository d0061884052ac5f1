//! The file of policies, in TOML.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use cronexpr::Crontab;
use hindsight_config::{Span, Value as _, entry_name};
use hindsight_filter::Filter;
use hindsight_filter::model::{Parent, Resource};
use hindsight_run::Outcome;
use serde::{Deserialize, Serialize};

use super::policy::{KeepFor, Policy, Terms};

/// Most policies of a file.
const MOST: usize = 100;
/// The policy of runs that no other matches.
const DEFAULT: &str = "default";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct FileError {
    path: PathBuf,
    why: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Whole {
    pub(super) run_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at_start: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pause: Option<String>,
    #[serde(default)]
    pub(super) policies: Vec<Entry>,
    pub(super) default: Kept,
    /// Shorter terms of namespaces, by the names of policies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, Kept>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcomes: Option<Vec<Word>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_last: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) archive_after: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_last: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) archive_after: Option<String>,
}

/// How a run ended, as `hindsight runs status:` calls it.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    Succeeded,
    Failed,
    Timeout,
    Cancelled,
    Unknown,
}

impl From<Word> for Outcome {
    fn from(word: Word) -> Self {
        match word {
            Word::Succeeded => Self::Success,
            Word::Failed => Self::Failure,
            Word::Timeout => Self::Timeout,
            Word::Cancelled => Self::Cancelled,
            Word::Unknown => Self::Unknown,
        }
    }
}

/// What the file says.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When runs are looked at, in its time zone.
    pub(super) run_at: Crontab,
    pub(super) at_start: bool,
    /// Results that are deleted between two pauses.
    pub(super) batch: NonZeroU32,
    pub(super) pause: Duration,
    /// In the order in which they are tried; the last one matches every run.
    pub(super) policies: Vec<Policy>,
}

impl Rules {
    /// Reads a file. It fails if something in it is not understood, or contradicts something else.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let rules = text.and_then(|text| Self::parse(&text));
        rules.map_err(|why| FileError {
            path: path.to_owned(),
            why,
        })
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let whole: Whole = toml::from_str(text).map_err(|error| {
            // The parser's own text quotes the line.
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| 1 + before.matches('\n').count());
            format!("line {line}: {}", error.message())
        })?;
        if whole.policies.len() > MOST {
            let count = whole.policies.len();
            return Err(format!("{count} policies; at most {MOST} are possible"));
        }
        let mut policies: Vec<Policy> = Vec::new();
        for entry in whole.policies {
            let name = entry.name.clone();
            if policies.iter().any(|policy| policy.name == name) {
                return Err(format!("policy `{name}` is there twice"));
            }
            let policy = policy(entry).map_err(|why| format!("policy `{name}`: {why}"))?;
            policies.push(policy);
        }
        policies.push(Policy {
            name: DEFAULT.to_owned(),
            when: None,
            outcomes: Vec::new(),
            terms: terms(&whole.default).map_err(|why| format!("default: {why}"))?,
            namespaces: BTreeMap::new(),
        });
        for (namespace, of) in &whole.namespaces {
            for (name, kept) in of {
                let policy = policies.iter_mut().find(|policy| policy.name == *name);
                tightened(policy, namespace, kept)
                    .map_err(|why| format!("namespace `{namespace}`, policy `{name}`: {why}"))?;
            }
        }
        let pause = whole.pause.as_deref().unwrap_or("100ms");
        let pause = Span::<0>::read(pause).map_err(|bad| format!("pause {bad}"))?;
        let batch = NonZeroU32::new(whole.batch.unwrap_or(50)).filter(|batch| batch.get() <= 1_000);
        Ok(Self {
            run_at: crontab(&whole.run_at)?,
            at_start: whole.at_start.unwrap_or(true),
            batch: batch.ok_or("batch is not 1 to 1000")?,
            pause: pause.get(),
            policies,
        })
    }
}

fn crontab(text: &str) -> Result<Crontab, String> {
    cronexpr::parse_crontab(text).map_err(|error| {
        format!(
            "run_at `{text}` is no cron expression with a time zone, such as \
             `30 3 * * * Europe/Berlin`: {error}"
        )
    })
}

fn policy(entry: Entry) -> Result<Policy, String> {
    let name = entry.name;
    entry_name(&name).map_err(|bad| format!("name {bad}"))?;
    if name == DEFAULT {
        return Err("this name is taken by the table [default]".to_owned());
    }
    if entry.when.is_none() && entry.outcomes.is_none() {
        return Err(
            "it has neither `when` nor `outcomes`, so it would match every run; give one, or say \
             it in [default]"
                .to_owned(),
        );
    }
    if entry.outcomes.as_ref().is_some_and(Vec::is_empty) {
        return Err("outcomes is empty; leave it out to match all".to_owned());
    }
    let when = match entry.when.as_deref() {
        None => None,
        Some(text) if text.trim().is_empty() => {
            return Err("when is empty; leave it out to match all".to_owned());
        }
        Some(text) => {
            let filter = Filter::compile(text, Resource::Records);
            Some(filter.map_err(|error| format!("when `{text}`: {error}"))?)
        }
    };
    let outcomes = entry.outcomes.unwrap_or_default();
    Ok(Policy {
        name,
        when,
        outcomes: outcomes.into_iter().map(Outcome::from).collect(),
        terms: terms(&Kept {
            keep_for: entry.keep_for,
            keep_last: entry.keep_last,
            archive_after: entry.archive_after,
        })?,
        namespaces: BTreeMap::new(),
    })
}

fn terms(kept: &Kept) -> Result<Terms, String> {
    let keep_for = match (kept.keep_for.as_deref(), kept.keep_last) {
        (Some("forever"), Some(_)) => {
            return Err(
                "keep_for `forever` keeps every run, so keep_last says nothing; leave one out"
                    .to_owned(),
            );
        }
        (Some("forever"), None) => KeepFor::Forever,
        (Some(text), _) => {
            let span = Span::<60_000>::read(text);
            let span = span.map_err(|bad| format!("keep_for {bad}, or `forever`"))?;
            KeepFor::Age(span.get())
        }
        (None, Some(_)) => KeepFor::Age(Duration::ZERO),
        (None, None) => return Err("give keep_for, keep_last or both".to_owned()),
    };
    let keep_last = kept.keep_last.map(|count| {
        NonZeroU32::new(count).ok_or("keep_last is 0; leave it out, and give keep_for")
    });
    let archive_after = match kept.archive_after.as_deref() {
        None => None,
        Some(text) => {
            let span = Span::<60_000>::read(text);
            Some(span.map_err(|bad| format!("archive_after {bad}"))?.get())
        }
    };
    if let (Some(after), KeepFor::Age(age)) = (archive_after, keep_for)
        && after >= age
        && kept.keep_last.is_none()
    {
        return Err(format!(
            "archive_after {} is not before keep_for {}, so nothing would be moved",
            shown(KeepFor::Age(after)),
            shown(keep_for)
        ));
    }
    Ok(Terms {
        keep_for,
        keep_last: keep_last.transpose()?,
        archive_after,
    })
}

/// Gives a policy other terms in a namespace, which must keep fewer runs and none longer.
fn tightened(policy: Option<&mut Policy>, namespace: &str, kept: &Kept) -> Result<(), String> {
    let policy = policy.ok_or("there is no such policy")?;
    namespace
        .parse::<Parent>()
        .map_err(|error| format!("the namespace: {error}"))?;
    let whole = policy.terms;
    if kept.archive_after.is_some() {
        return Err("archive_after is that of the policy in every namespace".to_owned());
    }
    let own = Terms {
        archive_after: whole.archive_after,
        ..terms(kept)?
    };
    // What the namespace does not say is as it is everywhere; to keep all says nothing of both.
    let terms = match whole.keep_for {
        KeepFor::Forever => own,
        KeepFor::Age(_) => Terms {
            keep_for: match kept.keep_for {
                Some(_) => own.keep_for,
                None => whole.keep_for,
            },
            keep_last: own.keep_last.or(whole.keep_last),
            archive_after: whole.archive_after,
        },
    };
    let is_longer = match (terms.keep_for, whole.keep_for) {
        (_, KeepFor::Forever) => false,
        (KeepFor::Forever, KeepFor::Age(_)) => true,
        (KeepFor::Age(here), KeepFor::Age(most)) => here > most,
    };
    if is_longer {
        return Err(format!(
            "keep_for {} is longer than the {} of the policy; a namespace may only shorten it",
            shown(terms.keep_for),
            shown(whole.keep_for)
        ));
    }
    let count = |terms: Terms| terms.keep_last.map_or(0, NonZeroU32::get);
    if count(terms) > count(whole) && whole.keep_for != KeepFor::Forever {
        return Err(format!(
            "keep_last {} is more than the {} of the policy; a namespace may only lower it",
            count(terms),
            count(whole)
        ));
    }
    policy.namespaces.insert(namespace.to_owned(), terms);
    Ok(())
}

fn shown(keep_for: KeepFor) -> String {
    match keep_for {
        KeepFor::Forever => "`forever`".to_owned(),
        KeepFor::Age(Duration::ZERO) => "of no time".to_owned(),
        KeepFor::Age(age) => {
            let age = format!("{}s", age.as_secs());
            format!("`{}`", Span::<0>::read(&age).map_or(age, |age| age.show()))
        }
    }
}

#[cfg(test)]
mod tests;
