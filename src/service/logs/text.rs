//! The log of a run as one text: what was uploaded as it is, lines of containers with their step before
//! them, and those of a PipelineRun put together of its TaskRuns.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use hindsight_analysis::tree::{Node, Tree};
use hindsight_logs::{Reader, Selection, ends};
use hindsight_storage::{LogKind, StoredLog};

use super::{Found, missing, place::Place};
use crate::service::runs::Succeeded;
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{LogName, RecordName};

/// Most bytes that are given at once.
pub const PART: usize = 32 << 10;

/// How names of containers of steps and of sidecars begin in Tekton.
const STEP: &str = "step-";
const SIDECAR: &str = "sidecar-";

/// One source of the text.
#[derive(Debug)]
struct Part {
    row: i64,
    /// What stands before each line, between brackets; an upload has nothing there.
    prefix: Option<String>,
}

/// A part that is read.
#[derive(Debug)]
struct Open {
    part: Part,
    reader: Reader,
    /// Lines that were read and are not printed yet.
    text: Bytes,
    /// Whether the next line begins where a line of the text does.
    begins: bool,
}

/// A text that is read.
pub struct LogText {
    service: Service,
    /// At whose expense records of runs are read.
    quota: QuotaGuard,
    /// Where the parts are read.
    place: Place,
    /// Runs below, which are looked up when it is their turn, and what they are called.
    runs: VecDeque<(RecordName, String)>,
    parts: VecDeque<Part>,
    open: Option<Open>,
    ready: BytesMut,
}

impl std::fmt::Debug for LogText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogText")
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Begins to read the log of a run as a text. It fails if nothing of it is stored.
    pub async fn log_text(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &LogName,
    ) -> Result<LogText, Error> {
        grant.check(Verb::Get, Guarded::Logs, name.record().result().parent())?;
        let found = self.find_log_anywhere(&by.quota, name).await?;
        let mut text = LogText {
            service: self.clone(),
            quota: by.quota.clone(),
            place: found.place.clone(),
            runs: VecDeque::new(),
            parts: VecDeque::new(),
            open: None,
            ready: BytesMut::new(),
        };
        if found.sources.is_empty() {
            text.runs = self.runs_below(by, &found).await?.into();
        } else {
            text.parts = parts(&found.sources, None).into();
        }
        if !text.has_parts().await? {
            return Err(missing(name));
        }
        Ok(text)
    }

    /// The stored runs below one, in the order in which they began, and what they are called.
    async fn runs_below(
        &self,
        by: &RequestContext,
        found: &Found,
    ) -> Result<Vec<(RecordName, String)>, Error> {
        // Until the tree is made.
        let part = by.quota.part();
        let look = self.look_at(&part, &found.run, |record, object| {
            Some((record.clone(), Arc::new(object?)))
        });
        let Some((record, object)) = look.await?.flatten() else {
            return Ok(Vec::new());
        };
        let tree = self.tree(by, &record, &object, Succeeded::Brief);
        let Tree { nodes, .. } = tree.await?;
        let mut below: Vec<Node> = nodes.into_iter().skip(1).collect();
        below.sort_by_key(|node| node.started.or(node.created));
        let runs = below.into_iter().filter_map(|node| {
            let record: RecordName = node.record?.parse().ok()?;
            Some((record, node.name))
        });
        Ok(runs.collect())
    }
}

/// The parts of what is stored of a run: an upload alone, or its containers.
fn parts(sources: &[StoredLog], task: Option<&str>) -> Vec<Part> {
    if let Some(upload) = sources.iter().find(|it| it.key.kind == LogKind::Uploaded) {
        return vec![Part {
            row: upload.row,
            prefix: None,
        }];
    }
    let steps = sources
        .iter()
        .filter(|it| !it.key.source.container.starts_with(SIDECAR));
    let part = |source: &StoredLog| {
        let container = source.key.source.container.as_str();
        let step = container.strip_prefix(STEP).unwrap_or(container);
        Part {
            row: source.row,
            prefix: Some(match task {
                Some(task) => format!("[{task} : {step}] "),
                None => format!("[{step}] "),
            }),
        }
    };
    steps.map(part).collect()
}

impl LogText {
    /// Whether there is a part, looking through the runs below until one has some.
    async fn has_parts(&mut self) -> Result<bool, Error> {
        while self.parts.is_empty() {
            let Some((run, task)) = self.runs.pop_front() else {
                return Ok(false);
            };
            let found = self.service.sources_for(&self.quota, &run).await?;
            self.place = found.place;
            self.parts = parts(&found.sources, Some(&task)).into();
        }
        Ok(true)
    }

    /// The next bytes, [`PART`] at most; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.ready.len() >= PART {
                return Ok(Some(self.ready.split_to(PART).freeze()));
            }
            if self.open.is_none() {
                if !self.has_parts().await? {
                    let rest = self.ready.split().freeze();
                    return Ok(Some(rest).filter(|rest| !rest.is_empty()));
                }
                if let Some(part) = self.parts.pop_front() {
                    let reader = self.place.open(part.row, Selection::default()).await?;
                    self.open = Some(Open {
                        part,
                        reader,
                        text: Bytes::new(),
                        begins: true,
                    });
                }
            }
            let Some(open) = &mut self.open else { continue };
            open.print(&mut self.ready);
            if !open.text.is_empty() {
                continue;
            }
            match self.place.next(open.part.row, &mut open.reader).await? {
                Some(lines) => open.text = lines.text,
                None => {
                    // As `tkn` prints it, an empty line follows each step.
                    if open.part.prefix.is_some() {
                        let ends_line = open.begins;
                        self.ready
                            .extend_from_slice(if ends_line { b"\n" } else { b"\n\n" });
                    }
                    self.open = None;
                }
            }
        }
    }
}

impl Open {
    /// Prints lines until there is enough, or none is left.
    fn print(&mut self, out: &mut BytesMut) {
        while out.len() < PART {
            let Some(end) = ends(&self.text).next() else {
                return;
            };
            let line = self.text.split_to(end);
            if self.begins
                && let Some(prefix) = &self.part.prefix
            {
                out.extend_from_slice(prefix.as_bytes());
            }
            out.extend_from_slice(&line);
            // What is longer than a line may be goes on in the next one.
            self.begins = line.ends_with(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_under_a_long_name_take_no_memory_but_that_of_a_part() {
        const LINES: usize = 1 << 20;
        let prefix = format!("[{} : step] ", "x".repeat(253));
        let mut open = Open {
            part: Part {
                row: 0,
                prefix: Some(prefix.clone()),
            },
            reader: Reader::default(),
            text: vec![b'\n'; LINES].into(),
            begins: true,
        };
        let mut printed = 0;
        while !open.text.is_empty() {
            let mut out = BytesMut::new();
            open.print(&mut out);
            assert!(out.capacity() < 4 * PART, "{} bytes", out.capacity());
            printed += out.len();
        }
        assert_eq!(printed, LINES * (prefix.len() + 1));
    }
}
