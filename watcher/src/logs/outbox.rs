//! Lines of one source between its reader and the server: bounded, numbered, and kept until the
//! server has them, on disk as well if there is a spool.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hindsight_proto::v1::{AppendLogRequest, LogLines};
use tokio::{sync::Notify, time::Instant};

use super::numbered;
use crate::spool::{FileId, Spool};

/// What a line counts besides its text.
const EACH: usize = 8;

/// Lines of one source that wait to be sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    disk: Option<OnDisk>,
}

/// Where lines are on disk, and as which calls.
#[derive(Debug)]
pub(super) struct OnDisk {
    spool: Arc<Spool>,
    /// A call without lines.
    of: AppendLogRequest,
}

impl OnDisk {
    pub(super) fn new(spool: Arc<Spool>, of: AppendLogRequest) -> Self {
        Self { spool, of }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Number of the first line that waits.
    first: i64,
    text: Vec<u8>,
    /// When each was written.
    times: Vec<i64>,
    holes: Vec<i64>,
    /// Whether nothing follows these lines.
    ends: bool,
    /// Since when the first one waits.
    since: Option<Instant>,
    is_out: bool,
    is_over: bool,
    /// Nothing but what waits is taken any more.
    is_cut: bool,
    /// What was out and fits nothing that the server has.
    failed: Option<LogLines>,
    /// Bytes that the source has in all.
    bytes: u64,
    last_time: Option<i64>,
    /// What waits is on disk up to here, or will be soon.
    spooled: Spooled,
    /// How often what waits was taken, or given up.
    turns: u64,
    /// The files that have what waits, and those that have what is out.
    files: Vec<FileId>,
    files_out: Vec<FileId>,
}

/// How much of what waits is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Spooled {
    lines: usize,
    bytes: usize,
    ends: bool,
}

/// What is sent of a source in one message.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) lines: LogLines,
    pub(crate) seal: bool,
    /// Since when its first line waits.
    pub(crate) since: Option<Instant>,
}

impl Batch {
    /// Bytes that it counts.
    pub(crate) fn size(&self) -> usize {
        self.lines.text.len() + EACH * self.lines.times.len()
    }
}

/// What became of what was written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// The server has it.
    Stored,
    /// The server has another log than was assumed.
    Failed,
    /// The log is sealed, or given up: nothing more is taken.
    Over,
}

impl Outbox {
    /// Goes on after `lines` lines of `bytes` bytes, the last of them written at `last_time`.
    pub(super) fn new(
        lines: i64,
        bytes: u64,
        last_time: Option<i64>,
        disk: Option<OnDisk>,
    ) -> Self {
        let state = State {
            first: lines,
            bytes,
            last_time,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            disk,
        }
    }

    /// Waits until less than `most` bytes wait, or nothing more is taken. Wakes `full` if it has to wait.
    pub(crate) async fn room(&self, most: usize, full: &Notify) -> Option<Written> {
        self.until(|state| match () {
            () if state.is_over || state.is_cut => Some(Some(Written::Over)),
            () if state.failed.is_some() => Some(Some(Written::Failed)),
            () if state.size() < most => Some(None),
            () => {
                full.notify_one();
                None
            }
        })
        .await
    }

    /// Waits until everything that was written is stored, or will not be.
    pub(crate) async fn flushed(&self) -> Written {
        self.until(|state| match () {
            () if state.is_over || state.is_cut => Some(Written::Over),
            () if state.failed.is_some() => Some(Written::Failed),
            () => {
                let is_empty = !state.is_out && state.times.is_empty() && !state.ends;
                is_empty.then_some(Written::Stored)
            }
        })
        .await
    }

    /// Waits until nothing more is taken.
    pub(crate) async fn stopped(&self) -> Written {
        self.until(|state| match () {
            () if state.is_over || state.is_cut => Some(Written::Over),
            () => state.failed.is_some().then_some(Written::Failed),
        })
        .await
    }

    async fn until<T>(&self, mut holds: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = holds(&self.state()) {
                return found;
            }
            changed.await;
        }
    }

    /// Appends a line. Whether it is the first that waits.
    pub(crate) fn push(&self, time: Option<i64>, text: &[u8], now: Instant) -> bool {
        self.append(time, text, false, now)
    }

    /// Appends a line that stands for lines that are missing. It has the time of the line before, so
    /// that reading goes on from there.
    pub(crate) fn push_hole(&self, text: &str, time: i64, now: Instant) -> bool {
        let time = self.last_time().unwrap_or(time);
        self.append(Some(time), text.as_bytes(), true, now)
    }

    fn append(&self, time: Option<i64>, text: &[u8], is_hole: bool, now: Instant) -> bool {
        let mut state = self.state();
        if state.is_cut {
            return false;
        }
        let time = time.or(state.last_time).unwrap_or_default();
        state.put(time, text, is_hole);
        state.since.replace(now).is_none_or(|since| {
            state.since = Some(since);
            false
        })
    }

    /// Puts a line that stands for lines that are missing in the place of what was out, which begins at a line, and of
    /// all that waits. Nothing follows it.
    pub(crate) fn cut(&self, first_line: i64, text: &str, time: i64, now: Instant) {
        let mut state = self.state();
        self.release_all(&mut state);
        let time = state.last_time.unwrap_or(time);
        *state = State {
            first: first_line,
            text: text.as_bytes().to_vec(),
            times: vec![time],
            holes: vec![first_line],
            ends: true,
            is_cut: true,
            since: Some(now),
            bytes: state.bytes,
            last_time: Some(time),
            turns: state.turns + 2,
            ..State::default()
        };
        drop(state);
        self.changed.notify_waiters();
    }

    /// Says that nothing follows, so that the source is sealed.
    pub(crate) fn end(&self) {
        self.state().ends = true;
    }

    /// Whether there is something to put on disk.
    pub(crate) fn is_to_spool(&self) -> bool {
        let state = self.state();
        self.disk.is_some() && !state.is_over && state.spooled != state.waiting()
    }

    /// Puts on disk what waits and is not there yet, which may block. One caller at a time.
    pub(crate) fn spool(&self) {
        let Some(disk) = &self.disk else { return };
        let mut state = self.state();
        let (from, now, turn) = (state.spooled, state.waiting(), state.turns);
        if state.is_over || from == now {
            return;
        }
        let call = AppendLogRequest {
            lines: Some(state.lines_from(from)),
            seal: state.ends,
            ..disk.of.clone()
        };
        state.spooled = now;
        drop(state);
        let file = disk.spool.lines().put(&call);
        let mut state = self.state();
        match state.turns - turn {
            0 => state.files.extend(file),
            1 if state.is_out => state.files_out.extend(file),
            // They are stored by now, or given up.
            _ => self.release(file),
        }
    }

    fn release(&self, files: impl IntoIterator<Item = FileId>) {
        if let Some(disk) = &self.disk {
            disk.spool.lines().release(files);
        }
    }

    fn release_all(&self, state: &mut State) {
        self.release(state.files.drain(..).chain(state.files_out.drain(..)));
    }

    /// Everything that waits, unless something is out already, or some of it is still to be put on disk: lines that
    /// are found there later follow what the server has only if none before them is in memory alone.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        let is_spooled = self.disk.is_none() || state.is_cut || state.spooled == state.waiting();
        let is_empty = state.times.is_empty() && !state.ends;
        if state.is_out || state.is_over || is_empty || !is_spooled {
            return None;
        }
        state.spooled = Spooled {
            ends: state.ends,
            ..Spooled::default()
        };
        state.turns += 1;
        state.files_out = std::mem::take(&mut state.files);
        let first_line = state.first;
        state.first = state.next();
        state.is_out = true;
        let batch = Batch {
            lines: LogLines {
                first_line,
                text: std::mem::take(&mut state.text),
                times: differences(std::mem::take(&mut state.times)),
                holes: std::mem::take(&mut state.holes),
            },
            seal: state.ends,
            since: state.since.take(),
        };
        drop(state);
        self.changed.notify_waiters();
        Some(batch)
    }

    /// What was out is stored. Whether more waits.
    pub(crate) fn stored(&self, is_sealed: bool) -> bool {
        let mut state = self.state();
        self.release(state.files_out.drain(..));
        state.is_out = false;
        state.is_over |= is_sealed;
        let waits = !state.is_over && (!state.times.is_empty() || state.ends);
        drop(state);
        self.changed.notify_waiters();
        waits
    }

    /// What was out fits nothing that the server has. Nothing more is taken before [`Self::resume`].
    pub(crate) fn fail(&self, lines: LogLines) {
        self.state().failed = Some(lines);
        self.changed.notify_waiters();
    }

    /// When the first line was written that is not stored, holes left aside.
    pub(crate) fn first_time(&self) -> Option<i64> {
        let unsent = self.state().unsent();
        let written = unsent.iter().flat_map(numbered);
        let written = written.filter(|line| !line.is_hole);
        written.map(|line| line.time).min()
    }

    /// Goes on after `lines` lines of `bytes` bytes, which the server has, the last of them written at `last_time`. What
    /// waits and of which `is_stored` is not true waits on, with new numbers; nothing waits where the server lost lines
    /// before it.
    pub(crate) fn resume(
        &self,
        (lines, bytes, last_time): (i64, u64, Option<i64>),
        mut is_stored: impl FnMut(i64) -> bool,
    ) {
        let mut state = self.state();
        let mut next = State {
            first: lines,
            bytes,
            last_time,
            turns: state.turns + 2,
            ..State::default()
        };
        let first = state
            .failed
            .as_ref()
            .map_or(state.first, |of| of.first_line);
        if lines < first {
            self.release_all(&mut state);
        } else {
            for line in state.unsent().iter().flat_map(numbered) {
                if line.is_hole || !is_stored(line.time) {
                    next.put(line.time, line.text, line.is_hole);
                }
            }
            (next.ends, next.since) = (state.ends, Some(Instant::now()));
            // On disk as they were: when they are found there, their times count.
            next.spooled = next.waiting();
            next.files = state.files_out.drain(..).collect();
            next.files.append(&mut state.files);
        }
        *state = next;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Nothing more is taken. What waits stays on disk.
    pub(crate) fn close(&self) {
        self.state().is_over = true;
        self.changed.notify_waiters();
    }

    /// Nothing more is taken, and what waits is not needed any more.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        self.release_all(&mut state);
        state.turns += 2;
        drop(state);
        self.close();
    }

    /// Bytes that the source has in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// When its last line was written, if it has one.
    pub(crate) fn last_time(&self) -> Option<i64> {
        self.state().last_time
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, time: i64, text: &[u8], is_hole: bool) {
        if is_hole {
            self.holes.push(self.next());
        }
        self.text.extend_from_slice(text);
        self.times.push(time);
        self.bytes += text.len() as u64;
        self.last_time = Some(time);
    }

    /// What waits, from a place on.
    fn lines_from(&self, from: Spooled) -> LogLines {
        let first_line = self.number(from.lines);
        let holes = self.holes.iter().copied();
        LogLines {
            first_line,
            text: self.text[from.bytes..].to_vec(),
            times: differences(self.times[from.lines..].to_vec()),
            holes: holes.filter(|hole| *hole >= first_line).collect(),
        }
    }

    /// What was out and failed, and what waits.
    fn unsent(&self) -> [LogLines; 2] {
        let failed = self.failed.clone().unwrap_or_default();
        [failed, self.lines_from(Spooled::default())]
    }

    fn size(&self) -> usize {
        self.text.len() + EACH * self.times.len()
    }

    fn waiting(&self) -> Spooled {
        Spooled {
            lines: self.times.len(),
            bytes: self.text.len(),
            ends: self.ends,
        }
    }

    /// The number of a line that waits, by its place among them.
    fn number(&self, at: usize) -> i64 {
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        self.first.saturating_add(at)
    }

    fn next(&self) -> i64 {
        self.number(self.times.len())
    }
}

/// The first time, and what each is after the one before.
fn differences(mut times: Vec<i64>) -> Vec<i64> {
    let mut before = 0;
    for time in &mut times {
        let own = *time;
        *time = own.wrapping_sub(before);
        before = own;
    }
    times
}

#[cfg(test)]
mod tests;
