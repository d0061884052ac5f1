//! Read, decide, write: the loop behind every update.
//!
//! An update computes the new state from the one it read and writes it only if the row still
//! has that etag. When somebody else was faster, a caller who sent an etag is told; for one who
//! did not, the loop starts over.

use jiff::{Timestamp, ToSpan as _};

use super::Error;
use crate::{model::Etag, storage};

/// How often a lost race is tried again for callers who sent no etag.
pub(super) const RACES: usize = 64;

/// Checks the etags a caller sent against the current one: every one that is given must match.
pub(super) fn expect(name: &str, current: &Etag, sent: [&str; 2]) -> Result<(), Error> {
    for etag in sent {
        if !etag.is_empty() && etag != current.as_str() {
            return Err(Error::Store(storage::Error::Stale {
                name: name.to_owned(),
                expected: Etag::from_text(etag),
            }));
        }
    }
    Ok(())
}

/// The time of a change: now, but always after the one before, so that every change gives a
/// new etag even when clocks of replicas disagree.
pub(super) fn after(now: Timestamp, last: Timestamp) -> Timestamp {
    if now > last {
        now
    } else {
        last.checked_add(1.microsecond()).unwrap_or(last)
    }
}
