//! Where the Kubernetes events about a run are kept: in one record beside that of the run.

use hindsight_proto::names::RecordName;
use hindsight_run::{Lifetime, Upload, View, keys};

use jiff::{SignedDuration, Timestamp};

use super::{EventRecord, Remembered};
use crate::{content::EVENT_LIST, policy::Policy};

/// How often the events of a run are copied that lasts until it is deleted. Clusters forget events after an hour.
const COPY_EVERY: SignedDuration = SignedDuration::from_mins(30);

/// The record of the run's events, if they are wanted, and the same again if they are to be stored now.
pub(super) fn wanted(
    view: &View<'_>,
    upload: &Upload,
    lifetime: Lifetime,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> (Option<RecordName>, Option<RecordName>) {
    let record = record(view, upload, policy).filter(|_| lifetime != Lifetime::Endless);
    let news = match lifetime {
        Lifetime::UntilDeleted => record.clone().filter(|_| are_due(remembered, now)),
        _ => missing(record.as_ref(), view, upload, remembered, policy),
    };
    (record, news)
}

/// The record of the run's events, if they are wanted. Its name follows from the run's UID, unless
/// the run says where Tekton Results' watcher has put them.
pub(super) fn record(view: &View<'_>, upload: &Upload, policy: &Policy) -> Option<RecordName> {
    if !policy.store_events {
        return None;
    }
    marked(view, upload).or_else(|| own(&upload.grouping.record, view.uid()?))
}

/// The record of the events of the run that is stored as `record`, by the run's UID.
pub(crate) fn own(record: &RecordName, uid: &str) -> Option<RecordName> {
    record.result().record(&format!("{uid}-events")).ok()
}

/// The record, unless it is there already. What the run says of itself is no proof; it is enough
/// where nothing is deleted because of it.
fn missing(
    record: Option<&RecordName>,
    view: &View<'_>,
    upload: &Upload,
    remembered: &Remembered,
    policy: &Policy,
) -> Option<RecordName> {
    let is_stored = remembered.events != EventRecord::Unknown
        || (policy.collect.is_none() && marked(view, upload).is_some());
    record.filter(|_| !is_stored).cloned()
}

/// Whether the events of a run that lasts until it is deleted are copied now: now and then while it is there, and when it
/// is gone.
fn are_due(remembered: &Remembered, now: Timestamp) -> bool {
    remembered.presence.is_gone() || next_copy(false, remembered, now) <= now
}

/// When they are copied next, if they are copied now or not.
pub(super) fn next_copy(is_copied_now: bool, remembered: &Remembered, now: Timestamp) -> Timestamp {
    let last = match remembered.events {
        EventRecord::Until(last) if !is_copied_now => Some(last),
        _ => is_copied_now.then_some(now),
    };
    last.map_or(now, |last| {
        last.saturating_add(COPY_EVERY).unwrap_or(Timestamp::MAX)
    })
}

/// Where the run says that its events are, if it says so of itself: a copy of another run, and a
/// child that inherits from its owner, also carry that one's record.
fn marked(view: &View<'_>, upload: &Upload) -> Option<RecordName> {
    let own = &upload.grouping.record;
    if view.annotation(keys::RECORD) != Some(own.to_string().as_str()) {
        return None;
    }
    let events: RecordName = view.annotation(EVENT_LIST)?.parse().ok()?;
    (events.result() == own.result() && events != *own).then_some(events)
}
