//! From the stream of a log to the lines that wait to be sent.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep},
};
use tracing::error;

use crate::{
    log_tasks::hole::{Hole, mark},
    logs::{Line, Overlap, Sight, Source, Splitter, Written},
    shared::Shared,
};

/// So much is looked at before it is asked whether there is room for more.
const PIECE: usize = 16 << 10;

/// Of a container that runs when its run goes, everything is read until nothing came for so long.
const SILENCE: Duration = Duration::from_millis(300);

/// And never for longer than this.
const LONGEST: Duration = Duration::from_secs(5);

/// How reading ended.
pub(super) enum Read {
    /// The stream is at its end.
    Whole,
    /// The run goes while the container runs.
    Left,
    /// As much was read as is kept.
    Full,
    /// No more lines are taken.
    Written(Written),
    /// The connection broke, after something was read or not.
    Broken { any: bool },
}

/// A log that is being read.
pub(super) struct Reading<'s> {
    pub(super) shared: &'s Shared,
    pub(super) source: &'s Arc<Source>,
    pub(super) overlap: Overlap,
    pub(super) splitter: Splitter,
    pub(super) follow: bool,
    pub(super) is_full: bool,
}

/// Puts what was read on disk, if there is a spool. Whether there was something to put there, which can be sent now.
pub(super) async fn spool(source: &Arc<Source>) -> bool {
    if !source.outbox.is_to_spool() {
        return false;
    }
    let source = Arc::clone(source);
    let spooled = spawn_blocking(move || source.outbox.spool()).await;
    if let Err(error) = spooled {
        error!("lines of a log were not spooled: {error}");
    }
    true
}

impl Reading<'_> {
    /// Reads to the end of the stream.
    pub(super) async fn run(
        mut self,
        stream: impl AsyncBufRead,
        sight: &mut watch::Receiver<Sight>,
    ) -> (Read, Self) {
        let mut stream = pin!(stream);
        let mut any = false;
        let mut leaving: Option<Instant> = None;
        let read = loop {
            let logs = &self.shared.logs;
            if let Some(written) = self.source.outbox.room(logs.share(), &logs.full).await {
                break Read::Written(written);
            }
            if self.follow && sight.borrow().is_leaving {
                let since = leaving.get_or_insert_with(Instant::now);
                if since.elapsed() > LONGEST {
                    break Read::Left;
                }
            }
            let bytes = tokio::select! {
                bytes = stream.fill_buf() => bytes,
                changed = sight.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => break Read::Written(Written::Over),
                },
                written = self.source.outbox.stopped() => break Read::Written(written),
                () = sleep(SILENCE), if leaving.is_some() => break Read::Left,
            };
            let count = match bytes {
                Ok([]) => break Read::Whole,
                Ok(bytes) => {
                    let piece = &bytes[..bytes.len().min(PIECE)];
                    let mut splitter = std::mem::take(&mut self.splitter);
                    splitter.push(piece, |line| self.take(&line));
                    self.splitter = splitter;
                    piece.len()
                }
                Err(_) => break Read::Broken { any },
            };
            any = true;
            stream.as_mut().consume(count);
            if spool(self.source).await {
                self.shared.logs.has_lines(self.source);
            }
            if self.is_full {
                break Read::Full;
            }
        };
        (read, self)
    }

    /// Takes a last line that has no line feed.
    pub(super) fn finish(&mut self) {
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.finish(|line| self.take(&line));
    }

    fn take(&mut self, line: &Line<'_>) {
        if self.is_full || line.time.is_some_and(|time| self.overlap.is_stored(time)) {
            return;
        }
        // The kubelet writes what it cannot do where the lines would be.
        let Some(time) = line.time else {
            let words = String::from_utf8_lossy(line.text);
            mark(self.shared, self.source, Hole::Unreadable, &words);
            return;
        };
        if self.overlap.is_passed(time) {
            mark(self.shared, self.source, Hole::Rotated, "");
            self.overlap = Overlap::new(&[], false);
        }
        let outbox = &self.source.outbox;
        let most = self.shared.config.logs_max_bytes;
        if outbox.bytes().saturating_add(line.text.len() as u64) > most {
            mark(self.shared, self.source, Hole::TooLong, "");
            self.is_full = true;
            return;
        }
        if outbox.push(Some(time), line.text, Instant::now()) {
            self.shared.logs.has_lines(self.source);
        }
    }
}
