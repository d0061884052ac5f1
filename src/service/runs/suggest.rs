//! Texts of recent runs that begin as a person began to type.

use std::{collections::HashSet, sync::Arc};

use hindsight_filter::condition::ObjectField;
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{Filter, run_filter, words::quoted};
use hindsight_storage::{Projection, RecordColumns};

use crate::query::Fold;
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};

/// Texts of an answer when none are asked for.
const USUAL: usize = 50;
/// Most texts of an answer.
const MOST: usize = 1_000;
/// Most runs that one call reads: the answer is for a person who waits for it.
const MOST_RUNS: usize = 10_000;
/// Longest prefix, and longest text that is told, in bytes.
const LONGEST: usize = 512;
/// What a text needs beside its bytes.
const PER_TEXT: usize = 64;

/// What a text is the beginning of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggested {
    /// Names of runs.
    Names,
    /// Names of pipelines.
    Pipelines,
    /// Parents of results.
    Namespaces,
    /// Keys of labels.
    LabelKeys,
    /// Values of the label with this key.
    LabelValues(String),
}

/// What to complete, and with what.
#[derive(Debug, Clone)]
pub struct SuggestAsk {
    /// What the texts are.
    pub what: Suggested,
    /// What they begin with.
    pub prefix: String,
    /// Most of them; 0 is the usual number.
    pub limit: i32,
}

impl SuggestAsk {
    /// The runs that are read. Names have an index, so that one of any age is found by how it begins.
    fn filter(&self) -> String {
        let runs = run_filter();
        match self.what {
            Suggested::Names if !self.prefix.is_empty() => {
                let prefix = quoted(&self.prefix);
                format!("{runs} && data.metadata.name.startsWith({prefix})")
            }
            _ => runs,
        }
    }
}

/// Texts that begin so.
#[derive(Debug, Clone)]
pub struct Suggestions {
    /// Each once, those of the newest runs first.
    pub values: Vec<String>,
    /// How many runs were read.
    pub runs_read: usize,
    /// Whether these are all texts of all runs.
    pub is_whole: bool,
}

/// Texts that were found, while runs are read.
#[derive(Debug)]
struct Found {
    ask: SuggestAsk,
    limit: usize,
    values: Vec<String>,
    known: HashSet<String>,
    bytes: usize,
    read: usize,
}

impl Fold for Found {
    type Row = RecordColumns;

    fn add(&mut self, rows: Vec<RecordColumns>) -> bool {
        for row in &rows {
            if self.read == MOST_RUNS {
                return false;
            }
            self.read += 1;
            let goes_on = match &self.ask.what {
                Suggested::Names => self.take(row.object.text(ObjectField::Name)),
                Suggested::Pipelines => self.take(row.object.pipeline()),
                Suggested::Namespaces => {
                    let parent = row.record.name.result().parent().to_string();
                    self.take(Some(&parent))
                }
                Suggested::LabelKeys => {
                    let mut keys = row.object.labels.keys();
                    keys.all(|key| self.take(Some(key)))
                }
                Suggested::LabelValues(key) => {
                    let value = row.object.labels.get(key);
                    self.take(value.map(String::as_str))
                }
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn projection(&self) -> Projection {
        match self.ask.what {
            Suggested::Names => Projection::of(&[ObjectField::Name]),
            Suggested::Pipelines => Projection::of(&[ObjectField::PipelineRef]).with_labels(),
            Suggested::Namespaces => Projection::of(&[]),
            Suggested::LabelKeys | Suggested::LabelValues(_) => Projection::of(&[]).with_labels(),
        }
    }
}

impl Found {
    fn new(ask: SuggestAsk, limit: usize) -> Self {
        Self {
            ask,
            limit,
            values: Vec::new(),
            known: HashSet::new(),
            bytes: 0,
            read: 0,
        }
    }

    /// Takes a text that begins as it should, once; false if there is no room for it.
    fn take(&mut self, text: Option<&str>) -> bool {
        let text = text.filter(|text| !text.is_empty() && text.len() <= LONGEST);
        let text = text.filter(|text| text.starts_with(self.ask.prefix.as_str()));
        let Some(text) = text.filter(|text| !self.known.contains(*text)) else {
            return true;
        };
        if self.values.len() == self.limit {
            return false;
        }
        self.bytes += 2 * (text.len() + PER_TEXT);
        self.known.insert(text.to_owned());
        self.values.push(text.to_owned());
        true
    }
}

impl Service {
    /// Texts of the runs stored last under the parent that `grant` is for; fails if the request is wrong.
    pub async fn suggest(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: SuggestAsk,
    ) -> Result<Suggestions, Error> {
        let parent = grant.scope(Verb::List, Resource::Records)?.clone();
        let limit = super::limit(ask.limit, USUAL, MOST)?;
        if ask.prefix.len() > LONGEST {
            return Err(Error::Invalid(format!(
                "prefix has {} bytes, at most {LONGEST} are possible",
                ask.prefix.len()
            )));
        }
        let runs = Arc::new(Filter::compile(&ask.filter(), Resource::Records)?);
        let scope = ResultPattern { parent, id: result };
        let engine = self.engine.with_quota(&by.quota);
        let reading = engine.fold_columns(scope, runs, Found::new(ask, limit));
        let (found, is_whole) = reading.await?;
        Ok(Suggestions {
            values: found.values,
            runs_read: found.read,
            is_whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prefix: &str, limit: usize) -> Found {
        let ask = SuggestAsk {
            what: Suggested::Names,
            prefix: prefix.to_owned(),
            limit: 0,
        };
        Found::new(ask, limit)
    }

    #[test]
    fn each_text_is_told_once_and_no_more_than_the_limit() {
        let mut found = found("re", 2);
        let long = format!("re{}", "x".repeat(LONGEST));
        for (text, goes_on) in [
            ("release-1", true),
            ("release-1", true),
            ("other", true),
            ("", true),
            (&long, true),
            ("release-2", true),
            ("release-1", true),
            ("release-3", false),
        ] {
            assert_eq!(found.take(Some(text)), goes_on, "{text}");
        }
        assert!(found.take(None));
        assert_eq!(found.values, ["release-1", "release-2"]);
        assert!(found.bytes() > 0);
    }
}
