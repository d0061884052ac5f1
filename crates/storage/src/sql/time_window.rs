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

/// How many days are sought one by one, of which each takes 12 µs: more than a week, so that a week
/// that was found is.
const MOST_DAYS: i64 = 3 * DAYS;

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

    /// `part`, the last window that there was, and all that follows it, as one.
    pub(crate) fn with_rest(&self, part: TimeWindow) -> TimeWindow {
        let rest = self.rest.unwrap_or(part);
        TimeWindow::new(part.first.min(rest.first), part.last.max(rest.last))
    }

    /// Begins anew with `unit` of `part`, the last window that there was; nothing before that unit is wanted.
    pub(crate) fn skip_to(&mut self, part: TimeWindow, unit: Unit) {
        let mut whole = self.with_rest(part);
        match self.descending {
            true => whole.last = part.last.min(unit.last),
            false => whole.first = part.first.max(unit.first),
        }
        *self = Self::new(whole, self.descending);
        self.length = unit.last - unit.first + 1;
    }

    /// Makes the next window as long as `wanted` rows are likely to take, after `part` had `found` of them,
    /// the first of which was stored at `first`: before it there may be none at all.
    pub(crate) fn found(&mut self, part: TimeWindow, first: Option<i64>, found: i64, wanted: i64) {
        if let Some(first) = first {
            let time = match self.descending {
                true => first.saturating_sub(part.first),
                false => part.last.saturating_sub(first),
            };
            let likely = time.saturating_add(1) / found.max(1) * wanted / 2 * 3;
            self.length = likely.clamp(DAY, self.length);
        }
        let time = part.last.saturating_sub(part.first);
        self.seen = (self.seen.0.saturating_add(time), self.seen.1 + found);
        let (time, rows) = self.seen;
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

/// A day or a week, which has a number in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) number: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Unit {
    /// As PostgreSQL divides, which is towards zero.
    fn day(number: i64) -> Self {
        Self {
            number,
            first: (if number > 0 { number } else { number - 1 }) * DAY,
            last: (if number < 0 { number } else { number + 1 }) * DAY - 1,
        }
    }

    /// The week that begins on a day.
    fn week(day: i64) -> Self {
        Self {
            number: day / DAYS,
            first: day * DAY,
            last: (day + DAYS) * DAY - 1,
        }
    }

    pub(crate) fn is_day(self) -> bool {
        self.last - self.first < 2 * DAY
    }
}

impl TimeWindow {
    /// What to ask for, in this order, to learn where its first rows are: its days if they are few, and its
    /// weeks otherwise. None if these are too many.
    pub(crate) fn sought(self, descending: bool) -> Option<Vec<Unit>> {
        let is_long = self.last / DAY - self.first / DAY > MOST_DAYS;
        let mut units = self.units(is_long)?;
        if descending {
            units.reverse();
        }
        Some(units)
    }

    /// The numbers of its whole weeks, and of the days before and after them; none if these are
    /// too many, or the rows too few.
    pub(super) fn keys(self) -> Option<Vec<i64>> {
        let units = self.units(true)?;
        Some(units.iter().map(|unit| unit.number).collect())
    }

    /// Its days, or its whole weeks and the days before and after them.
    fn units(self, weeks: bool) -> Option<Vec<Unit>> {
        let (mut day, last) = (self.first / DAY, self.last / DAY);
        if self.has_few || last - day >= MOST_KEYS * DAYS {
            return None;
        }
        let mut units = Vec::new();
        while day <= last {
            // The first week has twice as many days, of both sides of zero.
            let is_whole = weeks && day > 0 && day % DAYS == 0 && day + DAYS - 1 <= last;
            units.push(if is_whole {
                Unit::week(day)
            } else {
                Unit::day(day)
            });
            day += if is_whole { DAYS } else { 1 };
        }
        Some(units)
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
            windows.found(part, (found > 0).then_some(part.last), found, wanted);
            (part.last - part.first + 1) / DAY
        };
        assert_eq!(days(30, 40), 1);
        assert_eq!(days(0, 30), 2);
        assert_eq!(days(1, 29), 32, "nothing was found");
        assert_eq!(days(1_000, 1), 365, "to the end");
        let mut windows = Windows::new(whole, false);
        let part = windows.next().unwrap();
        windows.found(part, Some(part.first), 1_000, 1);
        let second = windows.next().unwrap();
        assert_eq!(second.last - second.first + 1, DAY, "a day at least");
    }

    #[test]
    fn a_part_of_a_day_is_not_taken_for_a_day() {
        let mut windows = Windows::new(TimeWindow::new(0, 400 * DAY - 1), true);
        let part = windows.next().unwrap();
        windows.found(part, Some(part.first + DAY / 100), 5, 45);
        let second = windows.next().unwrap();
        assert_eq!(second.last - second.first + 1, DAY);
    }

    #[test]
    fn windows_go_on_where_the_first_rows_are() {
        let whole = TimeWindow::new(0, 400 * DAY - 1);
        // The weeks from days 385 and 7, and days of them.
        for (descending, weeks, day) in [(true, (385, 391), 390), (false, (7, 13), 10)] {
            let mut windows = Windows::new(whole, descending);
            windows.next();
            windows.found(whole, None, 0, 50);
            windows.next();
            windows.skip_to(whole, Unit::week(weeks.0));
            let week = windows.next().unwrap();
            assert_eq!((week.first / DAY, week.last / DAY), weeks);
            let sought = week.sought(descending).unwrap();
            assert_eq!(sought.len(), 7);
            let unit = sought.into_iter().find(|unit| unit.number == day).unwrap();
            windows.skip_to(week, unit);
            let parts: Vec<_> = windows.collect();
            assert_eq!((parts[0].first / DAY, parts[0].last / DAY), (day, day));
            let (least, most) = match descending {
                true => (0, 391 * DAY - 1),
                false => (10 * DAY, whole.last),
            };
            let ends = parts.iter().map(|part| (part.first, part.last));
            assert_eq!(ends.clone().map(|(first, _)| first).min(), Some(least));
            assert_eq!(ends.map(|(_, last)| last).max(), Some(most));
        }
        let days = TimeWindow::new(-1, DAY).sought(true).unwrap();
        assert_eq!(days, [Unit::day(1), Unit::day(0)]);
        assert_eq!(whole.sought(true).unwrap().len(), 7 + 56 + 1);
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
            windows.found(part, (found > 0).then_some(part.last), found, 51 - found);
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
