//! A request to watch, as it is read from a query.

use std::time::Duration;

use super::LONGEST;
use crate::{
    history::Event,
    kinds::Kind,
    list::Form,
    objects::{Stored, Types},
    refusal::Refusal,
    route::Query,
    select::Selector,
};

/// A request to watch.
#[derive(Debug, Clone)]
pub(crate) struct Watching {
    pub(super) namespace: Option<String>,
    selector: Selector,
    pub(super) start: Start,
    pub(super) bookmarks: bool,
    pub(super) timeout: Duration,
    pub(super) form: Form,
    /// Begins with what only a storage that tells its progress can give.
    pub(super) needs_progress: bool,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With the present objects as ADDED, then what changes.
    Present,
    /// As `Present`, and a bookmark that says when the present objects are through.
    PresentMarked,
    /// With the changes after a version.
    After(u64),
}

impl Watching {
    /// Reads the query of a watch request. Parameters that do not parse are refused with 400, and
    /// streaming lists with 422 where they are not offered or not asked for properly.
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

    pub(super) fn sees(&self, object: &Stored) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|wanted| *wanted == object.key.namespace)
            && self.selector.matches(object)
    }

    /// Appends what this client sees of a change.
    pub(super) fn write(&self, event: &Event, types: &Types, out: &mut Vec<u8>) {
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

    pub(super) fn line(&self, kind: &str, object: &Stored, types: &Types, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        self.form.write(object, types, out);
        out.extend_from_slice(b"}\n");
    }
}
