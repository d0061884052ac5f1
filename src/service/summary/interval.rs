//! Durations in the text form of PostgreSQL intervals.
//!
//! PostgreSQL keeps days apart from the time of day: a difference of two times has as many whole
//! days as fit, sums add both parts without carrying, and a mean spreads the days that do not
//! divide evenly over the time.

use std::fmt;

const DAY: i64 = 86_400_000_000;

/// Days and microseconds, as PostgreSQL keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Interval {
    days: i64,
    micros: i64,
}

impl Interval {
    /// So many days and microseconds, which are not carried into days.
    pub(super) fn of(days: i64, micros: i128) -> Self {
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        Self { days, micros }
    }

    /// The interval between two times that are `micros` apart.
    pub(super) fn between(micros: i64) -> Self {
        Self {
            days: micros / DAY,
            micros: micros % DAY,
        }
    }

    /// One part of `count`, rounded to microseconds.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "PostgreSQL computes this in doubles too"
    )]
    pub(super) fn over(self, count: i64) -> Self {
        let days = self.days / count;
        let spread = (self.days as f64 / count as f64 - days as f64) * DAY as f64;
        let micros = (self.micros as f64 / count as f64 + spread).round() as i64;
        Self { days, micros }
    }

    /// The length that PostgreSQL compares and sorts by.
    pub(super) fn length(self) -> i64 {
        self.days.saturating_mul(DAY).saturating_add(self.micros)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days != 0 {
            let s = if self.days == 1 { "" } else { "s" };
            write!(f, "{} day{s}", self.days)?;
            if self.micros == 0 {
                return Ok(());
            }
            f.write_str(" ")?;
        }
        // After a negative part, PostgreSQL marks the positive one.
        let sign = match (self.micros < 0, self.days < 0) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let micros = self.micros.unsigned_abs();
        let seconds = micros / 1_000_000;
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{sign}{hours:02}:{minutes:02}:{rest:02}")?;
        let fraction = format!("{:06}", micros % 1_000_000);
        match fraction.trim_end_matches('0') {
            "" => Ok(()),
            digits => write!(f, ".{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(interval: Interval, text: &str) {
        assert_eq!(interval.to_string(), text);
    }

    #[test]
    fn intervals_read_as_postgresql_prints_them() {
        let seconds = |s: i64| Interval::between(s * 1_000_000);
        reads(seconds(342), "00:05:42");
        reads(Interval::between(89_461_538), "00:01:29.461538");
        reads(Interval::between(DAY + 52_200_500_000), "1 day 14:30:00.5");
        reads(seconds(-86_400), "-1 days");
        reads(seconds(-90_000), "-1 days -01:00:00");
        reads(seconds(0), "00:00:00");
        reads(
            Interval {
                days: -1,
                micros: 7_200_000_000,
            },
            "-1 days +02:00:00",
        );
    }

    #[test]
    fn a_sum_is_not_carried_into_days() {
        reads(Interval::of(1, 26 * 3_600_000_000), "1 day 26:00:00");
    }

    #[test]
    fn the_longest_sums_have_a_length() {
        let ages = Interval {
            days: i64::MAX / 2,
            micros: DAY,
        };
        assert_eq!(ages.length(), i64::MAX);
    }

    #[test]
    fn a_mean_spreads_odd_days_over_the_time() {
        reads(Interval::between(DAY).over(2), "12:00:00");
        reads(Interval::between(3 * DAY).over(2), "1 day 12:00:00");
        reads(Interval::between(10_000_000).over(3), "00:00:03.333333");
    }
}
