//! Stretches of time that a list goes through one after the other, where an index leads to the
//! rows of each but not to all of them in order.
//!
//! PostgreSQL's index of labels knows in which week and on which day a record was stored, and
//! gives all rows that it finds at once. A list of a label that many old rows have would sort
//! them all for its first page; so it asks for the rows of a day, and then of as many as are
//! likely to have the rest of the page, at most sixteen times as many.

/// Microseconds of a day, of which the index has the numbers.
const DAY: i64 = 86_400_000_000;
/// Days of a week, of which it has the numbers likewise.
const DAYS: i64 = 7;

/// How many times as long as the one before a stretch is at most.
const GROWTH: i64 = 16;

/// More weeks than a list of them is worth.
const MOST_KEYS: i64 = 600;

/// More days than are worth asking for one by one, of which each takes 12 µs.
const MOST_DAYS: i64 = 300;

/// Days after which what was found says how much the rest is likely to have: days of a week differ.
const TYPICAL: i64 = 14 * DAY;

/// Rows that are found and sorted in the time that another stretch takes.
const FEW: i64 = 50;

/// A time, in microseconds, from its first to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Whether few rows are likely to be found there and before together, so that an index does not
    /// have to be asked for the time.
    pub(crate) has_few: bool,
}

impl TimeWindow {
    /// A time in which any number of rows may be found.
    pub(crate) fn new(first: i64, last: i64) -> Self {
        Self {
            first,
            last,
            has_few: false,
        }
    }
}

/// The stretches of a time, one after the other.
#[derive(Debug)]
pub(crate) struct Windows {
    rest: Option<TimeWindow>,
    descending: bool,
    /// How long the next one is.
    length: i64,
    /// Whether few rows are likely to be found in all of the rest, which is the next one then.
    has_few: bool,
    /// How long those were together that there were, and how many rows they had.
    seen: (i64, i64),
}

impl Windows {
    /// Those of `whole`, from its end if `descending`; the first is a day.
    pub(crate) fn new(whole: TimeWindow, descending: bool) -> Self {
        Self {
            rest: Some(whole).filter(|rest| rest.first <= rest.last),
            descending,
            length: DAY,
            has_few: false,
            seen: (0, 0),
        }
    }

    /// Begins anew, with a day, where the day with this number does: it is in `part`, the last window
    /// that there was, of which nothing before that day is wanted.
    pub(crate) fn skip_to(&mut self, part: TimeWindow, day: i64) {
        let rest = self.rest.unwrap_or(part);
        let mut whole = TimeWindow::new(part.first.min(rest.first), part.last.max(rest.last));
        match self.descending {
            true => whole.last = part.last.min((day + 1) * DAY - 1),
            false => whole.first = part.first.max(first_of(day)),
        }
        *self = Self::new(whole, self.descending);
    }

    /// Makes the next window as long as `wanted` rows are likely to take, after the last one had `found` of them.
    pub(crate) fn found(&mut self, found: i64, wanted: i64) {
        let last = self.length / GROWTH;
        if found > 0 {
            let likely = last / found * wanted / 2 * 3;
            self.length = likely.clamp(DAY, self.length);
        }
        let (time, rows) = (self.seen.0.saturating_add(last), self.seen.1 + found);
        self.seen = (time, rows);
        let rest = self
            .rest
            .map_or(0, |rest| rest.last.saturating_sub(rest.first));
        let likely = (rest / time.max(1)).saturating_mul(rows);
        self.has_few = rows > 0 && time >= TYPICAL && likely < 2 * wanted + FEW;
    }
}

impl Iterator for Windows {
    type Item = TimeWindow;

    /// The next one, which is sixteen times as long as the last unless told otherwise.
    fn next(&mut self) -> Option<TimeWindow> {
        let TimeWindow { first, last, .. } = self.rest?;
        if self.has_few {
            let whole = self.rest.take()?;
            return Some(TimeWindow {
                has_few: true,
                ..whole
            });
        }
        let (part, rest) = if self.descending {
            let from = last.saturating_sub(self.length - 1).max(first);
            let rest = from.checked_sub(1).map(|last| TimeWindow::new(first, last));
            (TimeWindow::new(from, last), rest)
        } else {
            let to = first.saturating_add(self.length - 1).min(last);
            let rest = to.checked_add(1).map(|first| TimeWindow::new(first, last));
            (TimeWindow::new(first, to), rest)
        };
        self.rest = rest.filter(|rest| rest.first <= rest.last);
        self.length = self.length.saturating_mul(GROWTH);
        Some(part)
    }
}

/// When a day began at the earliest; PostgreSQL divides towards zero.
fn first_of(day: i64) -> i64 {
    (if day > 0 { day } else { day - 1 }) * DAY
}

impl TimeWindow {
    /// The numbers of its days, in this order; none if there are too many to ask for each of them.
    pub(crate) fn days(self, descending: bool) -> Option<Vec<i64>> {
        let (first, last) = (self.first / DAY, self.last / DAY);
        let mut days = match !self.has_few && last - first < MOST_DAYS {
            true => (first..=last).collect::<Vec<_>>(),
            false => return None,
        };
        if descending {
            days.reverse();
        }
        Some(days)
    }

    /// The numbers of its whole weeks, and of the days before and after them; none if these are
    /// too many, or the rows too few. As PostgreSQL divides, which is towards zero.
    pub(super) fn keys(self) -> Option<Vec<i64>> {
        let (mut day, last) = (self.first / DAY, self.last / DAY);
        if self.has_few || last - day >= MOST_KEYS * DAYS {
            return None;
        }
        let mut keys = Vec::new();
        while day <= last {
            // The first week has twice as many days, of both sides of zero.
            let is_whole = day > 0 && day % DAYS == 0 && day + DAYS - 1 <= last;
            keys.push(if is_whole { day / DAYS } else { day });
            day += if is_whole { DAYS } else { 1 };
        }
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![-40 * DAYS * DAY..400 * DAYS * DAY, any::<i64>()]
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_in_order(a in time(), b in time(), descending: bool) {
            let whole = TimeWindow::new(a.min(b), a.max(b));
            let mut parts: Vec<_> = Windows::new(whole, descending).collect();
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
    fn the_next_part_is_as_long_as_the_page_is_likely_to_take() {
        let whole = TimeWindow::new(0, 400 * DAY - 1);
        let mut windows = Windows::new(whole, true);
        let mut days = |found: i64, wanted: i64| {
            let part = windows.next().unwrap();
            windows.found(found, wanted);
            (part.last - part.first + 1) / DAY
        };
        assert_eq!(days(30, 40), 1);
        assert_eq!(days(0, 30), 2);
        assert_eq!(days(1, 29), 32, "nothing was found");
        assert_eq!(days(1_000, 1), 365, "to the end");
        let mut windows = Windows::new(whole, false);
        windows.next();
        windows.found(1_000, 1);
        let second = windows.next().unwrap();
        assert_eq!(second.last - second.first + 1, DAY, "a day at least");
    }

    #[test]
    fn windows_go_on_where_the_first_rows_are() {
        let whole = TimeWindow::new(0, 400 * DAY - 1);
        for (descending, day, first) in [(true, 390, (390, 390)), (false, 10, (10, 10))] {
            let mut windows = Windows::new(whole, descending);
            windows.next();
            windows.found(0, 50);
            let second = windows.next().unwrap();
            windows.skip_to(second, day);
            let parts: Vec<_> = windows.collect();
            assert_eq!((parts[0].first / DAY, parts[0].last / DAY), first);
            let (least, most) = match descending {
                true => (0, 391 * DAY - 1),
                false => (10 * DAY, whole.last),
            };
            let ends = parts.iter().map(|part| (part.first, part.last));
            assert_eq!(ends.clone().map(|(first, _)| first).min(), Some(least));
            assert_eq!(ends.map(|(_, last)| last).max(), Some(most));
        }
        assert_eq!(TimeWindow::new(-1, DAY).days(true), Some(vec![1, 0]));
        assert_eq!(whole.days(true), None);
    }

    #[test]
    fn keys_are_whole_weeks_and_the_days_around_them() {
        let of_days = |first: i64, last: i64| TimeWindow::new(first * DAY, last * DAY + 5).keys();
        assert_eq!(of_days(1, 3), Some(vec![1, 2, 3]));
        assert_eq!(of_days(12, 29), Some(vec![12, 13, 2, 3, 28, 29]));
        assert_eq!(of_days(14, 27), Some(vec![2, 3]));
        assert_eq!(of_days(-1, 1), Some(vec![-1, 0, 1]));
        assert_eq!(of_days(7, 7_000), None);
    }

    proptest! {
        #[test]
        fn keys_are_of_every_time_and_of_few_others(
            first in -30 * DAYS * DAY..200 * DAYS * DAY,
            length in 0..90 * DAYS * DAY,
            at in 0.0..1.0,
        ) {
            let last = first + length;
            let keys = TimeWindow::new(first, last).keys().unwrap();
            let knows = |time: i64| {
                keys.contains(&(time / DAY)) || keys.contains(&(time / (DAYS * DAY)))
            };
            let within = first + (length as f64 * at) as i64;
            for time in [first, within, last] {
                prop_assert!(knows(time), "{time} of {first} to {last}: {keys:?}");
            }
            // Nothing was stored before 1970, so those days are not gathered.
            let before = (DAYS - first / DAY).max(0);
            let most = before + 2 * DAYS + length / (DAYS * DAY);
            prop_assert!(keys.len() as i64 <= most, "{} of {most}: {keys:?}", keys.len());
        }
    }

    #[test]
    fn the_rest_is_one_part_where_few_rows_are_likely_in_it() {
        let whole = TimeWindow::new(0, 400 * DAY - 1);
        let mut windows = Windows::new(whole, true);
        for (days, found) in [(1, 0), (16, 5)] {
            let part = windows.next().unwrap();
            assert_eq!((part.last - part.first + 1) / DAY, days);
            assert!(part.keys().is_some());
            windows.found(found, 51 - found);
        }
        let rest = windows.next().unwrap();
        assert_eq!((rest.first, rest.last), (0, 383 * DAY - 1));
        assert_eq!(rest.keys(), None, "110 rows are likely");
        assert_eq!(windows.next(), None);
    }

    #[test]
    fn no_time_has_no_parts() {
        let nothing = TimeWindow::new(1, 0);
        assert_eq!(Windows::new(nothing, true).count(), 0);
    }
}
