//! What words mean in CEL.

use std::collections::BTreeSet;

use super::{
    MAX_VALUES, MAX_WORDS, Now,
    error::{Fault, shown},
    kind::kind,
    lex::{Key, Piece, Word},
    quoted,
    status::{BARE, is, status, statuses},
    test::{Test, filled, nearest, one_of, optional, pattern, single},
    time,
};
use crate::{
    fields,
    model::{Resource, Tier},
};

/// Every key, and whether a run has one value of it, so that two of them exclude each other.
const KEYS: [(&str, bool); 16] = [
    ("status", true),
    ("is", false),
    ("pipeline", true),
    ("cluster", true),
    ("name", true),
    ("kind", true),
    ("namespace", true),
    ("ns", true),
    ("uid", true),
    ("reason", true),
    ("signature", true),
    ("tier", true),
    ("label", false),
    ("took", false),
    ("since", true),
    ("until", true),
];

/// The tests of the words so far.
pub(super) struct Meaning<'n> {
    now: &'n Now,
    tests: Vec<String>,
    values: usize,
    /// Keys that were given one value or a list of them.
    given: BTreeSet<&'static str>,
}

impl<'n> Meaning<'n> {
    pub(super) fn new(now: &'n Now) -> Self {
        Self {
            now,
            tests: Vec::new(),
            values: 0,
            given: BTreeSet::new(),
        }
    }

    /// The filter of all words.
    pub(super) fn cel(self) -> String {
        self.tests.join(" && ")
    }

    pub(super) fn add(&mut self, word: &Word<'_>) -> Result<(), Fault> {
        self.values += word.values.len();
        if self.tests.len() == MAX_WORDS || self.values > MAX_VALUES {
            let what = format!(
                "more than {MAX_WORDS} words or {MAX_VALUES} values; write a long filter in CEL, \
                 after `cel:`"
            );
            return Err(Fault::new(word.part.clone(), what));
        }
        let test = match &word.key {
            None => self.bare(word)?,
            Some(key) => self.keyed(word, *key)?,
        };
        self.tests.push(match word.excluded {
            false => test.holds,
            true => test.fails,
        });
        Ok(())
    }

    /// Takes down that a key has its value, of which a run has one.
    fn once(&mut self, key: &'static str, word: &Word<'_>) -> Result<(), Fault> {
        let exact = word.values.iter().all(Piece::is_exact);
        if word.excluded || !exact || self.given.insert(key) {
            return Ok(());
        }
        let what = match key {
            "since" | "until" => format!("`{key}:` is given twice; leave one out"),
            _ => {
                format!("`{key}:` is given twice, and a run has one; write `{key}:a,b` for either")
            }
        };
        Err(Fault::new(word.part.clone(), what))
    }

    /// A word without a key: a status, or a part of a name.
    fn bare(&mut self, word: &Word<'_>) -> Result<Test, Fault> {
        let [value] = word.values.as_slice() else {
            let what = "a list of names is written `name:a,b`, one of statuses `status:a,b`";
            return Err(Fault::new(word.part.clone(), what));
        };
        filled(value, "a word")?;
        let status = BARE.iter().find(|s| s.eq_ignore_ascii_case(&value.text));
        if let (Some(status), false, true) = (status, value.quoted, value.is_exact()) {
            self.once("status", word)?;
            return Ok(statuses(&[status], *status == "failed"));
        }
        if !value.quoted {
            plain(value)?;
        }
        let name = "data.metadata.name";
        let test = match value.is_exact() {
            true => format!("{name}.contains({})", quoted(&value.text)),
            false => pattern(name, value),
        };
        Ok(Test::always(test))
    }

    fn keyed(&mut self, word: &Word<'_>, key: Key<'_>) -> Result<Test, Fault> {
        let end = word.part.start + usize::from(word.excluded) + key.name.len();
        let part = word.part.start..end.min(word.part.end);
        let lower = key.name.to_ascii_lowercase();
        let Some(&(name, single)) = KEYS.iter().find(|(name, _)| *name == lower) else {
            return Err(Fault::new(part, unknown(key.name)));
        };
        let name = if name == "ns" { "namespace" } else { name };
        if name == "took" {
            return took(word, key.sign);
        }
        if key.sign != ":" {
            let what = format!("`{name}` has no `{}`; write `{name}:`", key.sign);
            return Err(Fault::new(part, what));
        }
        for value in &word.values {
            filled(value, &format!("`{name}:`"))?;
        }
        if single {
            self.once(name, word)?;
        }
        match name {
            "status" => status(word),
            "is" => is(word),
            "label" => label(word),
            "since" => self.started(word, ">="),
            "until" => self.started(word, "<"),
            "pipeline" => Ok(optional("run.pipeline", &word.values)),
            "cluster" => Ok(optional("run.cluster", &word.values)),
            "signature" => Ok(optional("run.signature", &word.values)),
            "kind" => kind(word),
            "tier" => tier(word),
            "reason" => Ok(optional("run.reason", &word.values)),
            "name" => Ok(Test::always(one_of("data.metadata.name", &word.values))),
            "uid" => Ok(Test::always(one_of("data.metadata.uid", &word.values))),
            _ => Ok(Test::always(one_of(
                "data.metadata.namespace",
                &word.values,
            ))),
        }
    }

    fn started(&self, word: &Word<'_>, sign: &str) -> Result<Test, Fault> {
        let text = single(word)?;
        let time = time::moment(text, self.now).ok_or_else(|| {
            let what = format!("`{}` is not a time; {}", shown(text), time::TIMES);
            Fault::new(word.values[0].part.clone(), what)
        })?;
        let test = format!(
            "run.start_time {sign} timestamp({})",
            quoted(&time.to_string())
        );
        Ok(Test::present("run.start_time", test))
    }
}

fn tier(word: &Word<'_>) -> Result<Test, Fault> {
    let tiers = [Tier::Hot, Tier::Cold].map(Tier::as_str);
    let is_other = |value: &&Piece| !value.is_exact() || !tiers.contains(&&*value.text);
    match word.values.iter().find(is_other) {
        Some(value) => {
            let what = format!("`{}` is no tier; want `hot` or `cold`", shown(&value.text));
            Err(Fault::new(value.part.clone(), what))
        }
        None => Ok(Test::always(one_of("tier", &word.values))),
    }
}

fn took(word: &Word<'_>, sign: &str) -> Result<Test, Fault> {
    if sign == ":" {
        let what = "write `took>10m` or `took<10m`; no run takes an exact time";
        return Err(Fault::new(word.part.clone(), what));
    }
    let text = single(word)?;
    let length = time::length(text).ok_or_else(|| {
        let what = format!("`{}` is no length of time; {}", shown(text), time::LENGTHS);
        Fault::new(word.values[0].part.clone(), what)
    })?;
    let length = quoted(&format!("{}s", length.as_secs()));
    let took = format!("run.end_time - run.start_time {sign} duration({length})");
    Ok(Test {
        fails: format!("(!has(run.start_time) || !has(run.end_time) || !({took}))"),
        holds: took,
    })
}

fn label(word: &Word<'_>) -> Result<Test, Fault> {
    let mut values = word.values.iter();
    let first = values.next().ok_or_else(|| {
        let what = "want `label:key` or `label:key=value`";
        Fault::new(word.part.clone(), what)
    })?;
    let Some(key) = &first.label else {
        if word.values.len() > 1 || !first.is_exact() {
            let what = "want one key, `label:key`, or a key and values, `label:key=a,b`";
            return Err(Fault::new(word.part.clone(), what));
        }
        let field = format!("run.labels[{}]", quoted(&first.text));
        return Ok(Test::always(format!("has({field})")));
    };
    if key.is_empty() {
        let what = "there is no key before `=`; write `label:key=value`";
        return Err(Fault::new(first.part.clone(), what));
    }
    let field = format!("run.labels[{}]", quoted(key));
    Ok(optional(&field, &word.values))
}

/// Refuses what may be meant as CEL, or is no part of a name.
fn plain(value: &Piece) -> Result<(), Fault> {
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if let Some(odd) = value.text.chars().find(|&c| is_odd(c)) {
        let what = match odd {
            '=' => "a word with a value is written `key:value`; a filter in CEL begins with `cel:`"
                .to_owned(),
            '!' => "exclude with `-` or `not:`; a filter in CEL begins with `cel:`".to_owned(),
            odd => format!(
                "`{}` is in no name; quote it to search for it, or begin with `cel:` if this is a \
                 filter in CEL",
                odd.escape_default()
            ),
        };
        return Err(Fault::new(value.part.clone(), what));
    }
    let variable = value.text.split_once('.').map(|(variable, _)| variable);
    if variable.is_some_and(|name| fields::is_variable(Resource::Records, name)) {
        let what = format!(
            "`{}` may be a field of CEL or a part of a name; begin with `cel:` for the one, quote \
             it for the other",
            shown(&value.text)
        );
        return Err(Fault::new(value.part.clone(), what));
    }
    Ok(())
}

fn unknown(key: &str) -> String {
    let lower = key.to_ascii_lowercase();
    let root = lower.split('.').next().unwrap_or_default();
    if fields::is_variable(Resource::Records, root) {
        return format!(
            "`{}` is a variable of CEL; begin the filter with `cel:`",
            shown(key)
        );
    }
    let names = KEYS.map(|(name, _)| name);
    let advice = nearest(&lower, names, &names);
    let end = if advice.ends_with('?') { " To" } else { "; to" };
    format!(
        "unknown word `{}`; {advice}{end} search names for it, quote it",
        shown(key)
    )
}
