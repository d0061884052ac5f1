//! Watches: the stream of changes from a version on, as one client sees it through its selector. A
//! client that does not read is not waited for: its watch ends.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::json;
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
    list::Form,
    objects::{KindId, Stored, Types},
    refusal::Refusal,
    route::Query,
    select::Selector,
    shared::Shared,
    world::World,
};

/// How many changes are read or sent at once.
const BATCH: usize = 256;

/// How long before the end of a watch its last bookmark comes.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How long a watch lasts when the client does not say.
const LONGEST: Duration = Duration::from_hours(1);

/// A request to watch.
#[derive(Debug, Clone)]
pub(crate) struct Watching {
    namespace: Option<String>,
    selector: Selector,
    start: Start,
    bookmarks: bool,
    timeout: Duration,
    form: Form,
    /// Begins with what only a storage that tells its progress can give.
    needs_progress: bool,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With the present objects as ADDED, then what changes.
    Present,
    /// As `Present`, and a bookmark that says when the present objects are through.
    PresentMarked,
    /// With the changes after a version.
    After(u64),
}

impl Watching {
    /// Reads the query of a watch request.
    ///
    /// # Errors
    /// 400 for parameters that do not parse; 422 for streaming lists where they are not offered or
    /// not asked for properly.
    pub(crate) fn parse(
        query: &Query,
        kind: &Kind,
        namespace: &str,
        form: Form,
        streaming_lists: bool,
    ) -> Result<Self, Refusal> {
        let selector = Selector::of(query, kind)?;
        let version = query.number("resourceVersion")?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let initial = match query.text("sendInitialEvents") {
            "" => None,
            text => Some(text == "true" || text == "1"),
        };
        let rule = query.text("resourceVersionMatch");
        let invalid = |why: &str| Refusal::new(422, "Invalid", why);
        let start = match (initial, version) {
            (Some(_), _) if !streaming_lists => {
                return Err(invalid(
                    "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
                ));
            }
            (Some(_), _) if rule != "NotOlderThan" => {
                return Err(invalid(
                    "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            (None, _) if !rule.is_empty() => {
                return Err(invalid(
                    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            (Some(true), _) => Start::PresentMarked,
            (_, None | Some(0)) => Start::Present,
            (_, Some(version)) => Start::After(version),
        };
        let timeout = query
            .number("timeoutSeconds")?
            .map_or(LONGEST, Duration::from_secs);
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        Ok(Self {
            namespace,
            selector,
            start,
            bookmarks,
            timeout,
            form,
            needs_progress: start == Start::PresentMarked || start == Start::Present && bookmarks,
        })
    }

    fn sees(&self, object: &Stored) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|wanted| *wanted == object.key.namespace)
            && self.selector.matches(object)
    }

    /// Appends what this client sees of a change.
    fn write(&self, event: &Event, types: &Types, out: &mut Vec<u8>) {
        let before = event.before.as_ref().filter(|before| self.sees(before));
        let after = (!event.deleted && self.sees(&event.after)).then_some(&event.after);
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => self.line("ADDED", after, types, out),
            (Some(_), Some(after)) => self.line("MODIFIED", after, types, out),
            (Some(_), None) if event.deleted => self.line("DELETED", &event.after, types, out),
            (Some(before), None) => {
                // The object left the selector: it is shown as it was seen last, at this version.
                let mut last = before.value(types);
                last["metadata"]["resourceVersion"] = event.version.to_string().into();
                self.line("DELETED", &Stored::new(&last), types, out);
            }
        }
    }

    fn line(&self, kind: &str, object: &Stored, types: &Types, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        self.form.write(object, types, out);
        out.extend_from_slice(b"}\n");
    }
}

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

    /// Turns changes into lines.
    fn show(&mut self, events: &[Event]) {
        for event in events {
            let mut line = Vec::new();
            self.watching.write(event, &self.types, &mut line);
            if !line.is_empty() {
                self.told = event.version;
                self.lines.push_back(line.into());
            }
        }
    }

    /// Some of the objects that were there when the watch began, then the mark that ends them.
    fn present(&mut self) -> Option<Bytes> {
        if self.initial.is_empty() {
            return std::mem::take(&mut self.owes_mark).then(|| self.bookmark(true));
        }
        let mut out = Vec::new();
        let some = self.initial.len().min(BATCH);
        for object in self.initial.drain(..some) {
            self.watching.line("ADDED", &object, &self.types, &mut out);
        }
        Some(out.into())
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

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        self.told = self.seen;
        let mut metadata = json!({
            "resourceVersion": self.seen.to_string(),
            "creationTimestamp": null,
        });
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": self.types.kind,
            "apiVersion": self.types.api_version,
            "metadata": metadata,
        });
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }

    fn too_old(&self) -> Bytes {
        let world = self.shared.world();
        let oldest = world.history.uncached(world.now);
        drop(world);
        let message = format!(
            "too old resource version: {} ({oldest}) for {}",
            self.seen, self.kind.plural
        );
        error_line(&Refusal::gone(message))
    }
}

fn error_line(refusal: &Refusal) -> Bytes {
    format!("{}\n", json!({"type": "ERROR", "object": refusal.status()})).into()
}

/// What a server says whose etcd does not tell its progress, as those before 3.5.13 do not.
fn no_progress() -> Refusal {
    let why = "a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled";
    Refusal::new(500, "InternalError", why)
}
