//! Stretches of time that a list goes through one after the other, where an index leads to the
//! rows of each but not to all of them in order.
//!
//! PostgreSQL's index of labels knows in which week and on which day a record was stored, and
//! gives all rows that it finds at once. A list of a label that many old rows have would sort
//! them all for its first page; so it asks for the rows of a day, then of two, then of four, and
//! reads at most twice as many days as it must.

/// Microseconds of a day, of which the index has the numbers.
const DAY: i64 = 86_400_000_000;
/// Likewise of a week.
const WEEK: i64 = 7 * DAY;

/// Days that are asked for at once; of more, the weeks are.
const MOST_DAYS: i64 = 14;
/// More weeks than a list of them is worth.
const MOST_KEYS: i64 = 600;
/// A time, in microseconds, from its first to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) struct Stretch {
    pub(in crate::storage) first: i64,
    pub(in crate::storage) last: i64,
}

impl Stretch {
    /// The parts of it, each twice as long as the one before, from its end if `descending`.
    pub(in crate::storage) fn parts(self, descending: bool) -> impl Iterator<Item = Self> {
        let mut rest = Some(self).filter(|rest| rest.first <= rest.last);
        let mut length = DAY;
        std::iter::from_fn(move || {
            let Self { first, last } = rest?;
            let part = if descending {
                let from = last.saturating_sub(length - 1).max(first);
                Self { first: from, last }
            } else {
                let to = first.saturating_add(length - 1).min(last);
                Self { first, last: to }
            };
            rest = match descending {
                true => part.first.checked_sub(1).map(|last| Self { first, last }),
                false => part.last.checked_add(1).map(|first| Self { first, last }),
            };
            rest = rest.filter(|rest| rest.first <= rest.last);
            length = length.saturating_mul(2);
            Some(part)
        })
    }

    /// The numbers of its days, or, where those are many, of its weeks; none if these are too
    /// many as well.
    pub(super) fn keys(self) -> Option<Vec<i64>> {
        let Self { first, last } = self;
        let unit = match last / DAY - first / DAY {
            ..MOST_DAYS => DAY,
            _ => WEEK,
        };
        let (first, last) = (first / unit, last / unit);
        (last - first < MOST_KEYS).then(|| (first..=last).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![-40 * WEEK..400 * WEEK, any::<i64>()]
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_in_order(a in time(), b in time(), descending: bool) {
            let whole = Stretch { first: a.min(b), last: a.max(b) };
            let mut parts: Vec<_> = whole.parts(descending).collect();
            prop_assert!(parts.len() < 30, "{} parts", parts.len());
            if descending {
                parts.reverse();
            }
            prop_assert_eq!((parts[0].first, parts[parts.len() - 1].last), (whole.first, whole.last));
            for part in &parts {
                prop_assert!(part.first <= part.last);
            }
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].last + 1, pair[1].first);
            }
        }
    }

    #[test]
    fn keys_are_days_or_weeks() {
        let of_days = |days: i64| {
            Stretch {
                first: DAY,
                last: days * DAY,
            }
            .keys()
        };
        assert_eq!(of_days(3), Some(vec![1, 2, 3]));
        assert_eq!(of_days(700), Some((0..=100).collect()));
        assert_eq!(of_days(7_000), None);
    }

    #[test]
    fn no_time_has_no_parts() {
        let nothing = Stretch { first: 1, last: 0 };
        assert_eq!(nothing.parts(true).count(), 0);
    }
}
