//! Watches: the stream of changes from a version on, as one client sees it through its selector.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    faults::Signals,
    history::Event,
    kinds::Kind,
    list::Form,
    objects::{KindId, Stored, Types, World},
    refusal::Refusal,
    route::Query,
    select::Selector,
    sim::Shared,
};

/// How many changes are sent at once.
const BATCH: usize = 256;

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
        namespace: &str,
        form: Form,
        streaming_lists: bool,
    ) -> Result<Self, Refusal> {
        let selector = Selector::parse(query.text("labelSelector"), query.text("fieldSelector"))?;
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

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    id: KindId,
    kind: Arc<Kind>,
    types: Types,
    watching: Watching,
    /// Present objects still to be sent.
    initial: VecDeque<Arc<Stored>>,
    /// Whether the bookmark after the present objects is still to be sent.
    owes_mark: bool,
    /// Everything up to this version was sent or is not for this client.
    seen: u64,
    news: watch::Receiver<u64>,
    signals: watch::Receiver<Signals>,
    noticed: Signals,
    deadline: Instant,
    next_bookmark: Instant,
    ended: bool,
}

/// What a look at the world gave.
enum Look {
    Lines(Vec<u8>),
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
        let now = Instant::now();
        Self {
            deadline: now + watching.timeout,
            next_bookmark: now + shared.settings.bookmark_every,
            owes_mark: watching.start == Start::PresentMarked && watching.bookmarks,
            shared,
            id,
            kind,
            types,
            watching,
            initial,
            seen,
            news,
            signals,
            noticed,
            ended: false,
        }
    }

    /// The next bytes of the stream; `None` at its end, an error when it breaks.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(lines) = self.present() {
                return Some(Ok(lines));
            }
            self.news.mark_unchanged();
            match self.look() {
                Look::Lines(lines) => return Some(Ok(lines.into())),
                Look::Forgotten => {
                    self.ended = true;
                    return Some(Ok(self.too_old()));
                }
                Look::Uninstalled => return None,
                Look::Nothing => {}
            }
            let bookmark_at = self.next_bookmark;
            tokio::select! {
                changed = self.news.changed() => if changed.is_err() { return None },
                changed = self.signals.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                    if let Some(answer) = self.signalled() {
                        return Some(answer);
                    }
                }
                () = sleep_until(self.deadline) => {
                    self.ended = true;
                    return self.watching.bookmarks.then(|| Ok(self.bookmark(false)));
                }
                () = sleep_until(bookmark_at), if self.watching.bookmarks => {
                    return Some(Ok(self.bookmark(false)));
                }
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

    /// Reads changes until there is something to send.
    fn look(&mut self) -> Look {
        let shared = Arc::clone(&self.shared);
        let world: MutexGuard<'_, World> = shared.world();
        if !world.shelves.contains_key(&self.id) {
            return Look::Uninstalled;
        }
        if self.seen > world.version {
            return Look::Nothing;
        }
        let Some(events) = world.history.since(self.seen) else {
            return Look::Forgotten;
        };
        let mut found = Vec::new();
        let mut seen = world.version;
        for event in events.filter(|event| event.kind == self.id) {
            if found.len() == BATCH {
                seen = found.last().map_or(seen, |event: &Event| event.version);
                break;
            }
            found.push(event.clone());
        }
        drop(world);
        self.seen = seen;
        let mut out = Vec::new();
        for event in &found {
            self.watching.write(event, &self.types, &mut out);
        }
        match (out.is_empty(), found.len() == BATCH) {
            (false, _) => Look::Lines(out),
            // Nothing of a full batch is for this client; there may be more.
            (true, true) => self.look(),
            (true, false) => Look::Nothing,
        }
    }

    fn signalled(&mut self) -> Option<io::Result<Bytes>> {
        let signals = *self.signals.borrow_and_update();
        let before = std::mem::replace(&mut self.noticed, signals);
        if signals.down || signals.drops != before.drops {
            self.ended = true;
            let why = "the connection was closed in the middle of a watch";
            return Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
        }
        let wanted = self.watching.bookmarks && signals.bookmarks != before.bookmarks;
        wanted.then(|| Ok(self.bookmark(false)))
    }

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        self.next_bookmark = Instant::now() + self.shared.settings.bookmark_every;
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
        let oldest = self.shared.world().history.forgotten();
        let message = format!(
            "too old resource version: {} ({oldest}) for {}",
            self.seen, self.kind.plural
        );
        let status = Refusal::gone(message).status();
        format!("{}\n", json!({"type": "ERROR", "object": status})).into()
    }
}
