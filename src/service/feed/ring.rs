//! The changes of the last moments, in memory.

use std::{collections::VecDeque, sync::Arc};

use hindsight_storage::{ChangedRecord, FeedPage, FeedPosition};

/// Most changes that are kept.
const MOST: usize = 4_096;
/// Most bytes that they take.
const MOST_BYTES: usize = 8 << 20;
/// What a change takes beside its texts.
const OVERHEAD: usize = 1 << 10;

/// All changes between two places of a feed.
#[derive(Debug)]
pub(super) struct Ring {
    start: FeedPosition,
    end: FeedPosition,
    changes: VecDeque<Arc<ChangedRecord>>,
    bytes: usize,
}

/// What a ring has after a place.
#[derive(Debug, PartialEq)]
pub(super) enum After {
    /// These changes, and none else up to this place.
    Changes(VecDeque<Arc<ChangedRecord>>, FeedPosition),
    /// Changes after the place were dropped, or came before the ring.
    Behind,
}

/// How many bytes a change takes, about.
pub(super) fn weight(change: &ChangedRecord) -> usize {
    OVERHEAD + change.columns.weight()
}

impl Ring {
    /// A ring of what comes after a place.
    pub(super) fn new(start: FeedPosition) -> Self {
        Self {
            start,
            end: start,
            changes: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The place up to which it has all changes.
    pub(super) fn end(&self) -> FeedPosition {
        self.end
    }

    /// Takes the page that begins at its end, and drops what it was given first if that is too much.
    pub(super) fn push(&mut self, page: FeedPage) {
        for change in page.changes {
            self.bytes += weight(&change);
            self.changes.push_back(Arc::new(change));
        }
        self.end = page.end;
        while self.changes.len() > MOST || self.bytes > MOST_BYTES {
            let Some(dropped) = self.changes.pop_front() else {
                break;
            };
            self.bytes -= weight(&dropped);
            self.start = dropped.position;
        }
    }

    /// At most `most` changes after a place, which end with the one that brings them to `bytes`.
    pub(super) fn after(&self, place: FeedPosition, most: usize, bytes: usize) -> After {
        if place < self.start {
            return After::Behind;
        }
        let first = self
            .changes
            .partition_point(|change| change.position <= place);
        let mut taken = VecDeque::new();
        let mut sum = 0;
        for change in self.changes.iter().skip(first) {
            if taken.len() == most || sum >= bytes {
                let end = taken
                    .back()
                    .map_or(place, |last: &Arc<ChangedRecord>| last.position);
                return After::Changes(taken, end);
            }
            sum += weight(change);
            taken.push_back(Arc::clone(change));
        }
        After::Changes(taken, self.end.max(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hindsight_filter::columns::ObjectColumns;
    use hindsight_filter::model::{Etag, Record};
    use hindsight_storage::RecordColumns;
    use jiff::Timestamp;

    fn page(numbers: std::ops::Range<i64>, end: i64) -> FeedPage {
        let changes = numbers.map(|number| ChangedRecord {
            position: FeedPosition::after(number),
            columns: RecordColumns {
                record: Record {
                    name: "p/results/r/records/a".parse().unwrap(),
                    uid: String::new(),
                    etag: Etag::from_text(String::new()),
                    create_time: Timestamp::UNIX_EPOCH,
                    update_time: Timestamp::UNIX_EPOCH,
                    data: None,
                },
                object: ObjectColumns::default(),
            },
        });
        FeedPage {
            changes: changes.collect(),
            end: FeedPosition::after(end),
            more: false,
        }
    }

    fn numbers(after: After) -> Option<(Vec<i64>, i64)> {
        match after {
            After::Behind => None,
            After::Changes(changes, end) => {
                let numbers = changes.iter().map(|change| change.position.transaction);
                Some((numbers.collect(), end.transaction))
            }
        }
    }

    #[test]
    fn what_was_dropped_is_not_passed_over() {
        let mut ring = Ring::new(FeedPosition::after(10));
        let after = |ring: &Ring, place, most, bytes| {
            numbers(ring.after(FeedPosition::after(place), most, bytes))
        };
        assert_eq!(after(&ring, 9, 5, 1 << 20), None);
        assert_eq!(after(&ring, 10, 5, 1 << 20), Some((vec![], 10)));
        assert_eq!(
            after(&ring, 12, 5, 1 << 20),
            Some((vec![], 12)),
            "it is ahead"
        );
        ring.push(page(11..15, 20));
        assert_eq!(
            after(&ring, 10, 5, 1 << 20),
            Some((vec![11, 12, 13, 14], 20))
        );
        assert_eq!(after(&ring, 11, 2, 1 << 20), Some((vec![12, 13], 13)));
        assert_eq!(
            after(&ring, 11, 5, 1),
            Some((vec![12], 12)),
            "one in any case"
        );
        assert_eq!(after(&ring, 14, 5, 1 << 20), Some((vec![], 20)));
        let most = i64::try_from(MOST).unwrap();
        ring.push(page(21..21 + most, 30 + most));
        assert_eq!(after(&ring, 13, 5, 1 << 20), None, "14 was dropped");
        assert_eq!(after(&ring, 14, 1, 1 << 20), Some((vec![21], 21)));
        assert!(ring.bytes <= MOST_BYTES && ring.changes.len() == MOST);
    }
}
