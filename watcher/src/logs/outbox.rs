//! Lines of one source between its reader and the server: bounded, numbered, and kept until the
//! server has them, on disk as well if there is a spool.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hindsight_proto::v1::{AppendLogRequest, LogLines};
use tokio::{sync::Notify, time::Instant};

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
    has_failed: bool,
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
        let outbox = Self {
            state: Mutex::default(),
            changed: Notify::new(),
            disk,
        };
        outbox.restart(lines, bytes, last_time);
        outbox
    }

    /// Forgets what waits, and goes on after what is stored.
    pub(crate) fn restart(&self, lines: i64, bytes: u64, last_time: Option<i64>) {
        let mut state = self.state();
        self.release_all(&mut state);
        *state = State {
            first: lines,
            bytes,
            last_time,
            turns: state.turns + 2,
            ..State::default()
        };
    }

    /// Waits until less than `most` bytes wait, or nothing more is taken. Wakes `full` if it has to wait.
    pub(crate) async fn room(&self, most: usize, full: &Notify) -> Option<Written> {
        self.until(|state| match () {
            () if state.is_over || state.is_cut => Some(Some(Written::Over)),
            () if state.has_failed => Some(Some(Written::Failed)),
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
            () if state.has_failed => Some(Written::Failed),
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
            () => state.has_failed.then_some(Written::Failed),
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
        if is_hole {
            let number = state.next();
            state.holes.push(number);
        }
        state.text.extend_from_slice(text);
        state.times.push(time);
        state.bytes += text.len() as u64;
        state.last_time = Some(time);
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
        let first_line = state.number(from.lines);
        let holes = state.holes.iter().copied();
        let lines = LogLines {
            first_line,
            text: state.text[from.bytes..].to_vec(),
            times: differences(state.times[from.lines..].to_vec()),
            holes: holes.filter(|hole| *hole >= first_line).collect(),
        };
        let call = AppendLogRequest {
            lines: Some(lines),
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

    /// Everything that waits, unless something is out already.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        if state.is_out || state.is_over || (state.times.is_empty() && !state.ends) {
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

    /// What was out fits nothing that the server has.
    pub(crate) fn fail(&self) {
        self.state().has_failed = true;
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
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_numbered_and_wait_until_they_are_stored() {
        let (outbox, now) = (Outbox::new(7, 100, Some(50), None), Instant::now());
        assert!(outbox.push(Some(60), b"a\n", now));
        assert!(!outbox.push(Some(55), b"b\n", now));
        assert!(!outbox.push_hole("missing\n", 0, now));
        let batch = outbox.take().unwrap();
        assert_eq!(batch.lines.first_line, 7);
        assert_eq!(batch.lines.text, b"a\nb\nmissing\n");
        assert_eq!(batch.lines.times, [60, -5, 0]);
        assert_eq!(batch.lines.holes, [9]);
        assert!(!batch.seal);
        assert!(outbox.push(Some(70), b"c\n", now));
        assert!(outbox.take().is_none(), "one at a time");
        assert!(outbox.stored(false));
        outbox.end();
        let batch = outbox.take().unwrap();
        assert_eq!((batch.lines.first_line, batch.seal), (10, true));
        assert!(!outbox.stored(true));
        assert_eq!(outbox.flushed().await, Written::Over);
        assert_eq!(outbox.bytes(), 114);
    }

    #[tokio::test]
    async fn a_log_that_is_cut_ends_with_a_hole_in_the_place_of_what_was_refused() {
        let (outbox, now) = (Outbox::new(3, 0, Some(50), None), Instant::now());
        outbox.push(Some(60), b"refused\n", now);
        let refused = outbox.take().unwrap();
        outbox.push(Some(70), b"later\n", now);
        outbox.cut(refused.lines.first_line, "missing\n", 0, now);
        outbox.push(Some(80), b"too late\n", now);
        assert_eq!(outbox.stopped().await, Written::Over);
        let last = outbox.take().unwrap();
        assert_eq!((last.lines.first_line, last.seal), (3, true));
        assert_eq!(
            (&*last.lines.text, last.lines.holes),
            (&b"missing\n"[..], vec![3])
        );
        assert!(!outbox.stored(true));
        assert!(outbox.take().is_none());
    }

    #[tokio::test]
    async fn a_reader_waits_while_too_much_waits() {
        let (outbox, now) = (Outbox::new(0, 0, None, None), Instant::now());
        let (most, full) = (1_000, Notify::new());
        assert_eq!(outbox.room(most, &full).await, None);
        outbox.push(Some(1), &vec![b'x'; most], now);
        tokio::select! {
            biased;
            _ = outbox.room(most, &full) => panic!("there is no room"),
            () = full.notified() => {}
        }
        outbox.take().unwrap();
        assert_eq!(outbox.room(most, &full).await, None);
        outbox.fail();
        assert_eq!(outbox.room(most, &full).await, Some(Written::Failed));
    }
}
