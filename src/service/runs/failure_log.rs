//! The log of what ended a run: its last lines, and the signature that its end makes.

use std::collections::VecDeque;

use hindsight_analysis::signature::{Key, LOG_BYTES, Signature};
use hindsight_analysis::tree::{Node, Tree};
use hindsight_logs::{Reader, Selection, ends};
use hindsight_storage::{
    FailedPart, LogChunks, LogSource, StoredLog, failed_log, log_tail, signing_log,
};

use crate::service::{Error, Service};
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_filter::model::{LogName, RecordName};

/// Most lines of an answer.
const MOST: usize = 100;
/// Most characters of a line.
const MAX_TEXT: usize = 1_000;

/// Permission to get logs of the parent of a run, and how many lines of one are wanted.
#[derive(Debug, Clone, Copy)]
pub struct FailureLogAsk<'a> {
    /// To get logs.
    pub grant: &'a Grant,
    /// The last so many lines, [`MOST`] at most.
    pub lines: i32,
}

/// The log of what failed.
#[derive(Debug, Clone)]
pub struct FailureLog {
    /// The log of a run, of which it is one source.
    pub name: LogName,
    /// Which container; empty for a log that was uploaded.
    pub source: LogSource,
    /// How many lines are stored.
    pub lines: i64,
    /// The last ones.
    pub tail: Vec<FailureLogLine>,
}

/// A line of it.
#[derive(Debug, Clone)]
pub struct FailureLogLine {
    /// Its number in its source.
    pub line: i64,
    /// When it was written, in microseconds.
    pub time_us: i64,
    /// The text without its line feed, cut to [`MAX_TEXT`] characters.
    pub text: String,
}

/// The run that has the log of a node, and what of it failed; none if no run above is stored.
fn part_of(tree: &Tree, at: usize) -> Option<(RecordName, FailedPart<'_>)> {
    let leaf = tree.nodes.get(at)?;
    let above = |node: &&Node| tree.nodes.get(node.parent?);
    let owner = std::iter::successors(Some(leaf), above).find_map(|node| node.record.as_ref())?;
    let part = match (&leaf.record, leaf.failed_step()) {
        (None, _) => FailedPart::Pod(leaf.id.rsplit('-').next()?),
        (Some(_), Some(step)) => FailedPart::Step(&step.name),
        (Some(_), None) if leaf.steps.is_empty() => FailedPart::Whole,
        // What its steps wrote says nothing of why it failed.
        (Some(_), None) => return None,
    };
    Some((owner.parse().ok()?, part))
}

/// The logs of the run that has the log of a node.
pub(super) struct LeafLogs<'t> {
    leaf: &'t Node,
    run: RecordName,
    part: FailedPart<'t>,
    sources: Vec<StoredLog>,
}

impl LeafLogs<'_> {
    /// The log that the signature of the leaf was made with; none if it was made without one, by now.
    fn signing(&self) -> Option<&StoredLog> {
        let is_signed = |log: &StoredLog| log.sha256.is_none() || log.signed;
        if self.leaf.record.is_none() || !self.sources.iter().all(is_signed) {
            return None;
        }
        let step = self.leaf.failed_step().map(|step| step.name.as_str());
        signing_log(&self.sources, step, !self.leaf.steps.is_empty())
    }
}

/// What the failure of a leaf has in common with others.
#[derive(Debug, Clone)]
pub struct FailureSignature {
    /// The column of the leaf has it too, if that has a record.
    pub key: Key,
    /// The text; without what a log says for callers who may not read that.
    pub template: String,
}

impl From<Signature> for FailureSignature {
    fn from(signature: Signature) -> Self {
        Self {
            key: signature.key(),
            template: signature.template().to_owned(),
        }
    }
}

impl Service {
    /// The logs of the node at a place of a tree; none if what failed in it has no log of its own.
    pub(super) async fn leaf_logs<'t>(
        &self,
        tree: &'t Tree,
        at: usize,
    ) -> Result<Option<LeafLogs<'t>>, Error> {
        let (Some((run, part)), Some(leaf)) = (part_of(tree, at), tree.nodes.get(at)) else {
            return Ok(None);
        };
        Ok(Some(LeafLogs {
            leaf,
            part,
            sources: self.logs.store.logs(&run).await?,
            run,
        }))
    }

    /// The log of what failed, if a line of it is stored.
    pub(super) async fn failure_log(
        &self,
        ask: FailureLogAsk<'_>,
        logs: &LeafLogs<'_>,
    ) -> Result<Option<FailureLog>, Error> {
        let most = match usize::try_from(ask.lines) {
            Ok(most) if most <= MOST => most,
            _ => {
                return Err(Error::Invalid(format!(
                    "log_lines {} is out of range: want 0 to {MOST}",
                    ask.lines
                )));
            }
        };
        let parent = logs.run.result().parent();
        ask.grant.check(Verb::Get, Guarded::Logs, parent)?;
        let Some(log) = failed_log(&logs.sources, logs.part) else {
            return Ok(None);
        };
        Ok(Some(FailureLog {
            tail: self.last_lines(log, most).await?,
            name: LogName::from(logs.run.clone()),
            source: log.key.source.clone(),
            lines: log.lines,
        }))
    }

    /// The signature of a leaf, as its column has it. It tells what the log says if `may_read`.
    pub(super) async fn failure_signature(
        &self,
        leaf: &Node,
        logs: Option<&LeafLogs<'_>>,
        may_read: bool,
    ) -> Result<Option<FailureSignature>, Error> {
        let plain = leaf.signature();
        let log = logs.filter(|_| leaf.is_vague()).and_then(LeafLogs::signing);
        let Some(log) = log else {
            return Ok(plain.map(Into::into));
        };
        let tail = log_tail(&*self.logs.store, log, LOG_BYTES).await?;
        let whole = leaf.signature_with(&tail).map(FailureSignature::from);
        Ok(match (whole, plain) {
            (Some(whole), Some(plain)) if !may_read => Some(FailureSignature {
                template: plain.template().to_owned(),
                ..whole
            }),
            (Some(whole), None) if !may_read => Some(FailureSignature {
                template: String::new(),
                ..whole
            }),
            (whole, _) => whole,
        })
    }

    async fn last_lines(&self, log: &StoredLog, most: usize) -> Result<Vec<FailureLogLine>, Error> {
        let mut last = VecDeque::new();
        if most == 0 {
            return Ok(Vec::new());
        }
        let chunks = LogChunks::new(&*self.logs.store, log.row);
        let selection = Selection {
            tail: most as u64,
            ..Selection::default()
        };
        let mut reader = Reader::open(&chunks, selection).await?;
        while let Some(lines) = reader.next(&chunks).await? {
            let mut from = 0;
            for ((end, time_us), line) in ends(&lines.text).zip(&lines.times).zip(lines.first..) {
                if last.len() == most {
                    last.pop_front();
                }
                last.push_back(FailureLogLine {
                    line,
                    time_us: *time_us,
                    text: text(&lines.text[from..end]),
                });
                from = end;
            }
        }
        Ok(last.into())
    }
}

/// A line as text.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // A character has four bytes at most.
    let line = &line[..line.len().min(4 * MAX_TEXT)];
    String::from_utf8_lossy(line)
        .chars()
        .take(MAX_TEXT)
        .collect()
}
