//! Going on with a log that was read before: which lines of the API are stored already.
//!
//! A log is read again from the beginning of the second of its last stored line, because the API
//! knows no finer time. Lines of one microsecond keep their order in a log, so that as many of
//! them as are stored are dropped. Their texts are not compared: a server may store another one,
//! with secrets left out.

use std::collections::HashMap;

/// The lines that are stored from some second on.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    /// How many lines of each microsecond were not seen again yet.
    stored: HashMap<i64, u32>,
    last: Option<i64>,
    /// Everything up to the last one is stored: they are too many to be counted.
    is_cut: bool,
    is_found: bool,
}

impl Overlap {
    /// Of the times of stored lines, which are all there are from a second on unless `is_cut`.
    pub(crate) fn new(times: &[i64], is_cut: bool) -> Self {
        let mut stored = HashMap::new();
        if !is_cut {
            for time in times {
                *stored.entry(*time).or_default() += 1;
            }
        }
        Self {
            stored,
            last: times.iter().max().copied(),
            is_cut,
            is_found: times.is_empty(),
        }
    }

    /// Whether a line that is read is stored already.
    pub(crate) fn is_stored(&mut self, time: i64) -> bool {
        let is_stored = match self.stored.get_mut(&time) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => self.is_cut && self.last.is_some_and(|last| time <= last),
        };
        self.is_found |= is_stored && Some(time) == self.last;
        is_stored
    }

    /// Whether a line of this time follows the last stored one, which was not seen again: lines between them may be
    /// missing.
    pub(crate) fn is_passed(&self, time: i64) -> bool {
        !self.is_found && self.last.is_some_and(|last| time > last)
    }

    /// Whether the last stored line was seen again, so that nothing is missing after it.
    pub(crate) fn is_found(&self) -> bool {
        self.is_found
    }
}

#[cfg(test)]
mod tests {
    use super::Overlap;

    fn new(stored: &[i64], read: &[i64]) -> (Vec<i64>, bool) {
        let mut overlap = Overlap::new(stored, false);
        let new = read
            .iter()
            .copied()
            .filter(|time| !overlap.is_stored(*time));
        (new.collect(), overlap.is_found())
    }

    #[test]
    fn lines_that_are_stored_are_dropped_and_no_others() {
        assert_eq!(new(&[], &[1, 2]), (vec![1, 2], true));
        assert_eq!(new(&[1, 2], &[1, 2, 3]), (vec![3], true));
        // Of three lines of one microsecond two are stored.
        assert_eq!(new(&[1, 2, 2], &[1, 2, 2, 2, 3]), (vec![2, 3], true));
        // The clock of the node was set back.
        assert_eq!(new(&[5, 9], &[5, 9, 7, 10]), (vec![7, 10], true));
        // The log was rotated: before, and after the last stored line.
        assert_eq!(new(&[1, 2, 3], &[3, 4]), (vec![4], true));
        assert_eq!(new(&[1, 2, 3], &[5, 6]), (vec![5, 6], false));
        assert_eq!(new(&[1, 2, 3], &[]), (vec![], false));
    }

    #[test]
    fn a_line_before_the_last_stored_one_shows_no_rotation() {
        let mut overlap = Overlap::new(&[1, 3], false);
        let read = [1, 2].map(|time| overlap.is_stored(time));
        assert_eq!((read, overlap.is_passed(2)), ([true, false], false));
        assert!(overlap.is_passed(4));
        assert!(overlap.is_stored(3) && !overlap.is_passed(4));
    }

    #[test]
    fn of_too_many_to_be_counted_everything_up_to_the_last_is_stored() {
        let mut overlap = Overlap::new(&[4, 5], true);
        let read = [1, 2, 4, 5, 6].map(|time| overlap.is_stored(time));
        assert_eq!(read, [true, true, true, true, false]);
        assert!(overlap.is_found());
    }
}
