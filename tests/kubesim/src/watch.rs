//! Watches: the stream of changes from a version on, as one client sees it through its selector. A
//! client that does not read is not waited for: its watch ends.

mod lines;
mod request;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::{
    sync::{
        mpsc::{self, error::SendTimeoutError},
        watch,
    },
    time::{Instant, sleep_until},
};

use crate::{
    faults::Signals,
    history::Event,
    kinds::Kind,
    objects::{KindId, Stored, Types},
    shared::Shared,
    world::World,
};
use request::Start;

use lines::{error_line, no_progress};

pub(crate) use request::Watching;

/// How many changes are read or sent at once.
const BATCH: usize = 256;

/// How long before the end of a watch its last bookmark comes.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How long a watch lasts when the client does not say.
const LONGEST: Duration = Duration::from_hours(1);

#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    id: KindId,
    kind: Arc<Kind>,
    version: String,
    types: Types,
    watching: Watching,
    /// Present objects still to be sent.
    initial: VecDeque<Arc<Stored>>,
    /// Whether the bookmark after the present objects is still to be sent.
    owes_mark: bool,
    /// Lines that were read and not sent.
    lines: VecDeque<Bytes>,
    /// Everything up to this version was sent or is not for this client.
    seen: u64,
    /// What the client knows already; a bookmark says more.
    told: u64,
    news: watch::Receiver<u64>,
    signals: watch::Receiver<Signals>,
    noticed: Signals,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    ended: bool,
}

/// What a look at the world gave.
enum Look {
    Changes(Vec<Event>),
    Nothing,
    Forgotten,
    Uninstalled,
}

impl Watch {
    pub(crate) fn open(
        shared: Arc<Shared>,
        id: KindId,
        kind: Arc<Kind>,
        version: &str,
        watching: Watching,
    ) -> Self {
        let types = watching.form.types(&kind, version);
        let news = shared.news();
        let signals = shared.faults.signals();
        let noticed = *signals.borrow();
        let (initial, seen) = match watching.start {
            Start::After(version) => (VecDeque::new(), version),
            Start::Present | Start::PresentMarked => {
                let world = shared.world();
                let present = world.at(id, world.version);
                let walked = present
                    .iter()
                    .flat_map(|present| present.walk(watching.namespace.as_deref(), None));
                let seen = walked
                    .filter(|object| watching.sees(object))
                    .map(Arc::clone)
                    .collect();
                (seen, world.version)
            }
        };
        let deadline = Instant::now() + watching.timeout;
        let mut watch = Self {
            deadline,
            next_bookmark: None,
            owes_mark: watching.start == Start::PresentMarked && watching.bookmarks,
            lines: VecDeque::new(),
            shared,
            id,
            kind,
            version: version.to_owned(),
            types,
            watching,
            initial,
            seen,
            told: seen,
            news,
            signals,
            noticed,
            ended: false,
        };
        watch.plan_bookmark();
        watch
    }

    /// The watch as the body of an answer. It goes on by itself, as a real one, whether or not the
    /// client reads; a client that leaves it too far behind finds it ended.
    pub(crate) fn stream(mut self) -> impl Stream<Item = io::Result<Bytes>> {
        let shared = Arc::clone(&self.shared);
        let (sender, receiver) = mpsc::channel(shared.settings.watch_buffer.max(1));
        tokio::spawn(async move {
            loop {
                let next = tokio::select! {
                    next = self.next() => next,
                    () = sender.closed() => return,
                };
                let Some(next) = next else { return };
                // What was there at the beginning is waited for, as it comes from no buffer.
                if !self.initial.is_empty() || self.owes_mark {
                    if sender.send(next).await.is_err() {
                        return;
                    }
                } else if let Err(error) = sender
                    .send_timeout(next, shared.settings.watch_patience)
                    .await
                {
                    if matches!(error, SendTimeoutError::Timeout(_)) {
                        shared.closed_watches.fetch_add(1, Ordering::Relaxed);
                    }
                    return;
                }
            }
        });
        stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        })
    }

    /// The next bytes of the stream; `None` at its end, an error when it breaks.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.watching.needs_progress && !self.shared.settings.watch_progress {
            self.initial.clear();
            self.watching.needs_progress = false;
            self.ended = true;
            return Some(Ok(error_line(&no_progress())));
        }
        loop {
            if self.ended {
                return None;
            }
            let frozen = self.signals.borrow().frozen;
            if !frozen {
                if let Some(line) = self.present().or_else(|| self.lines.pop_front()) {
                    return Some(Ok(line));
                }
                self.news.mark_unchanged();
                match self.look() {
                    Look::Changes(events) => {
                        self.show(&events);
                        continue;
                    }
                    Look::Forgotten => {
                        self.ended = true;
                        return Some(Ok(self.too_old()));
                    }
                    Look::Uninstalled => return None,
                    Look::Nothing => {}
                }
            }
            let bookmark_at = self.next_bookmark.filter(|_| !frozen);
            tokio::select! {
                changed = self.news.changed(), if !frozen => if changed.is_err() { return None },
                changed = self.signals.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                    if let Some(answer) = self.signalled() {
                        return Some(answer);
                    }
                }
                () = sleep_until(self.deadline), if !frozen => return None,
                () = sleep_until(bookmark_at.unwrap_or(self.deadline)), if bookmark_at.is_some() => {
                    self.plan_bookmark();
                    // One that says nothing new is not sent.
                    if self.seen > self.told {
                        return Some(Ok(self.bookmark(false)));
                    }
                }
            }
        }
    }

    /// The next bookmark comes after a while, and the last one shortly before the end.
    fn plan_bookmark(&mut self) {
        let now = Instant::now();
        let next = now + self.shared.settings.bookmark_every;
        let last = self.deadline.checked_sub(LAST_BOOKMARK).unwrap_or(now);
        let next = next.min(last);
        self.next_bookmark = (self.watching.bookmarks && next > now).then_some(next);
    }

    /// Reads the next changes.
    fn look(&mut self) -> Look {
        let shared = Arc::clone(&self.shared);
        let world: MutexGuard<'_, World> = shared.world();
        if !world
            .shelves
            .get(&self.id)
            .is_some_and(|shelf| shelf.kind.serves(&self.version))
        {
            return Look::Uninstalled;
        }
        if self.seen > world.version {
            return Look::Nothing;
        }
        if self.seen < world.history.uncached(world.now) {
            return Look::Forgotten;
        }
        let Some(events) = world.history.since(self.seen) else {
            return Look::Forgotten;
        };
        let found: Vec<Event> = events
            .filter(|event| event.kind == self.id)
            .take(BATCH)
            .cloned()
            .collect();
        self.seen = match found.last() {
            Some(last) if found.len() == BATCH => last.version,
            _ => world.version,
        };
        if found.is_empty() {
            return Look::Nothing;
        }
        Look::Changes(found)
    }

    fn signalled(&mut self) -> Option<io::Result<Bytes>> {
        let signals = *self.signals.borrow_and_update();
        let before = std::mem::replace(&mut self.noticed, signals);
        if signals.down || signals.drops != before.drops {
            self.ended = true;
            let why = "the connection was closed in the middle of a watch";
            return Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
        }
        let wanted =
            self.watching.bookmarks && !signals.frozen && signals.bookmarks != before.bookmarks;
        wanted.then(|| Ok(self.bookmark(false)))
    }
}
