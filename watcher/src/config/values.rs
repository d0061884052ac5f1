//! Types of values that only a watcher has.

use hindsight_config::{BadValue, Kind as TextKind, Value, choice};
use hindsight_filter::Expression;
use hindsight_run::{Kind, selector::Selector};

use crate::policy::{ClusterId, ClusterIdError, rules::VARIABLES};

/// So many a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub(super) f64);

impl Value for Rate {
    const WORD: &'static str = "NUMBER";

    fn read(text: &str) -> Result<Self, BadValue> {
        let rate = text.parse().ok();
        let rate = rate.filter(|rate| (0.001..=100_000.0).contains(rate));
        let want = "a number from 0.001 to 100000, as `50` or `0.5`";
        rate.map(Self)
            .ok_or_else(|| BadValue::not_valid(text, "rate", want))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

choice! {
    /// Whether logs of containers are read.
    pub enum Logs: "WHEN", "way to read logs" {
        /// They are not.
        Off = "off",
        /// Once a container has ended.
        Finished = "finished",
        /// While it runs.
        Follow = "follow",
    }
}

/// The name of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(pub(super) String);

impl Value for Namespace {
    const WORD: &'static str = "NAME";

    fn read(text: &str) -> Result<Self, BadValue> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.len() > 63 || !text.chars().all(legal) {
            let want = "one, in small letters, digits and `-`";
            return Err(BadValue::not_valid(text, "namespace", want));
        }
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The name of a cluster, or `auto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterName {
    text: String,
    /// The name; `None` if it has to be found out.
    pub(super) id: Option<ClusterId>,
}

impl Value for ClusterName {
    const WORD: &'static str = "ID";

    fn read(text: &str) -> Result<Self, BadValue> {
        let id = match text {
            "auto" => Ok(None),
            text => text.parse().map(Some),
        };
        Ok(Self {
            text: text.to_owned(),
            id: id.map_err(|bad: ClusterIdError| BadValue::new(bad.to_string()))?,
        })
    }

    fn show(&self) -> String {
        self.text.clone()
    }
}

/// Kinds by plural or kind, alone (then of every group that has it) or with `.group`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kinds(pub(super) Vec<&'static Kind>);

impl Value for Kinds {
    const WORD: &'static str = "KINDS";
    const KIND: TextKind = TextKind::List;

    fn read(text: &str) -> Result<Self, BadValue> {
        let all = Kind::all();
        let mut wanted: Vec<&'static Kind> = Vec::new();
        for item in Vec::<String>::read(text)? {
            let (name, group) = match item.split_once('.') {
                Some((name, group)) => (name, Some(group)),
                None => (item.as_str(), None),
            };
            let named = |kind: &&'static Kind| {
                (kind.plural.eq_ignore_ascii_case(name) || kind.kind.eq_ignore_ascii_case(name))
                    && group.is_none_or(|group| kind.group == group)
            };
            let before = wanted.len();
            wanted.extend(all.iter().copied().filter(named));
            if wanted.len() == before {
                let want = format!("any of {}", Self(all).show());
                return Err(BadValue::not_valid(&item, "kind of run", want));
            }
        }
        let wanted = all.into_iter().filter(|kind| wanted.contains(kind));
        Ok(Self(wanted.collect()))
    }

    fn show(&self) -> String {
        let named = |kind: &&Kind| format!("{}.{}", kind.plural, kind.group);
        self.0.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

/// Labels of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(pub(super) Selector);

impl Value for LabelSelector {
    const WORD: &'static str = "SELECTOR";

    fn read(text: &str) -> Result<Self, BadValue> {
        let selector = text.parse().map(Self);
        selector.map_err(|bad| BadValue::new(format!("`{text}` is not a label selector: {bad}")))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// The condition of a run that is collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(pub(super) Expression);

impl Value for Condition {
    const WORD: &'static str = "CEL";

    fn read(text: &str) -> Result<Self, BadValue> {
        expression(text, VARIABLES).map(Self)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// An expression over `object` and `variables`.
pub(super) fn expression(text: &str, variables: &[&str]) -> Result<Expression, BadValue> {
    Expression::compile(text, variables).map_err(|bad| {
        let bad = bad.to_string();
        let bad = bad.trim_start_matches("filter ");
        BadValue::new(format!("`{text}` is not a valid expression: {bad}"))
    })
}
