//! Which terms of collection hold for a run: those of the first rule that it fits, else the
//! general ones, and what its namespace adds to either. A namespace can only keep runs longer.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use hindsight_filter::Expression;
use hindsight_run::{Kind, Outcome, View, selector::Selector};

/// Names that `collect-when` may use besides `object`.
pub const VARIABLES: &[&str] = &["kind", "pipeline", "outcome"];

/// Which stored runs are deleted from the cluster, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collect {
    /// How long a run stays after it ended; negative means not at all.
    pub grace: SignedDuration,
    /// Only runs with these labels.
    pub selector: Selector,
    /// Leave every run that has an owner, not only those of a PipelineRun.
    pub check_owner: bool,
    /// How long until a run that waits for its children is looked at again.
    pub recheck: SignedDuration,
    /// How many of the newest finished runs of a pipeline stay.
    pub keep_last: usize,
    /// Only runs of which this is true.
    pub when: Option<Expression>,
    /// Other terms for some runs; the first rule that a run fits counts.
    pub rules: Vec<Rule>,
    /// Namespaces may ask by annotation that their runs stay longer.
    pub namespaces: bool,
}

impl Default for Collect {
    fn default() -> Self {
        Self {
            grace: SignedDuration::from_mins(10),
            selector: Selector::default(),
            check_owner: true,
            recheck: SignedDuration::from_mins(1),
            keep_last: 0,
            when: None,
            rules: Vec::new(),
            namespaces: false,
        }
    }
}

/// Terms for some runs. What it leaves open is as in general.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// Only these kinds; all if empty.
    pub kinds: Vec<&'static Kind>,
    /// Only these namespaces; all if empty. `*` at the end stands for anything.
    pub namespaces: Vec<String>,
    /// Only runs with these labels.
    pub selector: Selector,
    /// Only runs that ended like this; all if empty.
    pub outcomes: BTreeSet<Outcome>,
    /// Such runs are never collected.
    pub never: bool,
    /// Instead of the general grace.
    pub grace: Option<SignedDuration>,
    /// Instead of the general number.
    pub keep_last: Option<usize>,
    /// Instead of the general expression.
    pub when: Option<Expression>,
}

/// What a namespace asks for its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tightening {
    /// No run of the namespace is deleted.
    pub paused: bool,
    /// At least this grace.
    pub grace: Option<SignedDuration>,
    /// At least so many of the newest runs of a pipeline stay.
    pub keep_last: usize,
}

/// The terms for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms<'c> {
    /// It is not collected at all.
    pub never: bool,
    /// How long it stays after it ended.
    pub grace: SignedDuration,
    /// How many newer finished runs of its pipeline there must be.
    pub keep_last: usize,
    /// What must be true of it.
    pub when: Option<&'c Expression>,
    /// Which rule says so; runs of one pipeline are counted apart for each.
    pub rule: Option<usize>,
}

impl Collect {
    /// The terms for a run, in a namespace that asks for `tightening`.
    pub fn terms(&self, run: &View<'_>, tightening: &Tightening) -> Terms<'_> {
        let fits = self.rules.iter().position(|rule| rule.fits(run));
        let rule = fits.and_then(|n| self.rules.get(n));
        let grace = rule.and_then(|rule| rule.grace).unwrap_or(self.grace);
        let keep_last = rule
            .and_then(|rule| rule.keep_last)
            .unwrap_or(self.keep_last);
        Terms {
            never: tightening.paused || rule.is_some_and(|rule| rule.never),
            grace: tightening.grace.map_or(grace, |least| grace.max(least)),
            keep_last: keep_last.max(tightening.keep_last),
            when: rule
                .and_then(|rule| rule.when.as_ref())
                .or(self.when.as_ref()),
            rule: fits,
        }
    }
}

impl Rule {
    fn fits(&self, run: &View<'_>) -> bool {
        let kind = run.known_kind();
        let namespace = run.namespace().unwrap_or_default();
        (self.kinds.is_empty() || kind.is_some_and(|kind| self.kinds.contains(&kind)))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|p| is_like(namespace, p)))
            && self.selector.matches(|key| run.label(key))
            && (self.outcomes.is_empty() || self.outcomes.contains(&run.finish().outcome))
    }
}

fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

impl Terms<'_> {
    /// Whether what must be true of the run is. What has no answer is not true: the run stays.
    pub fn hold(&self, run: &View<'_>) -> bool {
        let Some(when) = self.when else { return true };
        let kind = run.kind().unwrap_or_default();
        let pipeline = run.pipeline().unwrap_or_default();
        when.holds(run.object(), &[kind, pipeline, name(run.finish().outcome)])
    }
}

/// How outcomes are written.
pub const OUTCOMES: &[(&str, Outcome)] = &[
    ("success", Outcome::Success),
    ("failure", Outcome::Failure),
    ("timeout", Outcome::Timeout),
    ("cancelled", Outcome::Cancelled),
    ("unknown", Outcome::Unknown),
];

fn name(outcome: Outcome) -> &'static str {
    let named = OUTCOMES.iter().find(|(_, known)| *known == outcome);
    named.map_or("unknown", |(name, _)| name)
}

#[cfg(test)]
mod tests;
