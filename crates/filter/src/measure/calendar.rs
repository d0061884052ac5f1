//! Cutting time into buckets of the calendar, where people live.
//!
//! A bucket begins at one instant and ends where the next begins; no instant is in two of them.
//! Days begin when their date does, which is not always midnight, and weeks on Monday. Where
//! clocks are set back, the hour that comes twice is two buckets.

use jiff::{SignedDuration, Timestamp, ToSpan as _, Unit as JiffUnit, civil::Date, tz::TimeZone};

/// How long the buckets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// From one full minute of the clock to the next.
    Minute,
    /// From one full hour of the clock to the next.
    Hour,
    /// From the beginning of a date to that of the next.
    Day,
    /// From a Monday to the next.
    Week,
    /// From the first day of a month to that of the next.
    Month,
    /// From the first of January to the next.
    Year,
}

impl Unit {
    /// Every unit, from the shortest to the longest.
    pub const ALL: [Self; 6] = [
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Year,
    ];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

/// Buckets of one length in one time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// How long they are.
    pub unit: Unit,
    /// Where the clock hangs.
    pub zone: TimeZone,
}

impl Calendar {
    /// Buckets of this length, by the clock of UTC.
    #[must_use]
    pub fn utc(unit: Unit) -> Self {
        Self {
            unit,
            zone: TimeZone::UTC,
        }
    }

    /// Where the bucket with the instant `at` begins and ends; both in microseconds since 1970.
    /// At the ends of what a calendar can say, buckets end with it.
    #[must_use]
    pub fn bucket(&self, at: i64) -> (i64, i64) {
        let time = clamped(at);
        let (start, end) = match self.unit {
            Unit::Minute => self.clock(time, JiffUnit::Minute),
            Unit::Hour => self.clock(time, JiffUnit::Hour),
            _ => self.dates(time),
        };
        (
            start.map_or(i64::MIN, Timestamp::as_microsecond),
            end.map_or(i64::MAX, Timestamp::as_microsecond),
        )
    }

    /// Where buckets begin, from the one with `first` to the one with `last`; nothing if there
    /// are more than `most`.
    #[must_use]
    pub fn starts(&self, first: i64, last: i64, most: usize) -> Option<Vec<i64>> {
        let mut starts = Vec::new();
        let mut at = first;
        loop {
            let (start, end) = self.bucket(at);
            starts.push(start);
            if end > last || end <= at {
                return Some(starts);
            }
            if starts.len() == most {
                return None;
            }
            at = end;
        }
    }

    /// A time, in microseconds, of which all buckets are multiples, counted from 1970. Only where the clock is
    /// never set.
    #[must_use]
    pub fn step(&self) -> Option<i64> {
        let offset = self.zone.to_fixed_offset().ok()?;
        let seconds = match self.unit {
            Unit::Minute => 60,
            Unit::Hour => 3_600,
            Unit::Day | Unit::Week | Unit::Month | Unit::Year => 86_400,
        };
        let step = common(seconds, u64::from(offset.seconds().unsigned_abs()));
        i64::try_from(step * 1_000_000).ok()
    }

    /// The longest time, in microseconds, of which buckets that begin at `starts` are multiples,
    /// counted from 1970.
    #[must_use]
    pub fn grid(starts: &[i64]) -> Option<i64> {
        let whole = starts
            .iter()
            .filter(|start| **start != i64::MIN)
            .fold(0_u64, |gcd, start| common(gcd, start.unsigned_abs()));
        i64::try_from(whole).ok().filter(|grid| *grid > 0)
    }

    fn clock(&self, time: Timestamp, unit: JiffUnit) -> (Option<Timestamp>, Option<Timestamp>) {
        let local = self.zone.to_datetime(time);
        let below = i64::from(local.subsec_nanosecond());
        let mut since =
            SignedDuration::new(i64::from(local.second()), 0) + SignedDuration::from_nanos(below);
        let mut length = SignedDuration::from_mins(1);
        if unit == JiffUnit::Hour {
            since += SignedDuration::from_mins(i64::from(local.minute()));
            length = SignedDuration::from_hours(1);
        }
        let start = time.checked_sub(since).ok();
        let end = start.and_then(|start| start.checked_add(length).ok());
        // A clock that is set, at full hours or not, begins a new bucket.
        let set = self.zone.preceding(just_after(time)).next();
        let next = self.zone.following(time).next();
        let set = set.map(|transition| transition.timestamp());
        let next = next.map(|transition| transition.timestamp());
        (
            start.max(set),
            match (end, next) {
                (Some(end), Some(next)) => Some(end.min(next)),
                (end, _) => end,
            },
        )
    }

    fn dates(&self, time: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let date = self.zone.to_datetime(time).date();
        let start = match self.unit {
            Unit::Week => {
                let back = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(back.days()).ok()
            }
            Unit::Month => Some(date.first_of_month()),
            Unit::Year => Some(date.first_of_year()),
            _ => Some(date),
        };
        let length = match self.unit {
            Unit::Week => 1.week(),
            Unit::Month => 1.month(),
            Unit::Year => 1.year(),
            _ => 1.day(),
        };
        let end = start.and_then(|start| start.checked_add(length).ok());
        (
            start.and_then(|start| self.begins(start)),
            end.and_then(|end| self.begins(end)),
        )
    }

    /// When a date begins. A date that the zone left out, as when it moved across the date
    /// line, begins with the next.
    fn begins(&self, date: Date) -> Option<Timestamp> {
        let midnight = date.to_zoned(self.zone.clone()).ok()?;
        Some(midnight.start_of_day().ok()?.timestamp())
    }
}

fn just_after(time: Timestamp) -> Timestamp {
    time.checked_add(SignedDuration::from_nanos(1))
        .unwrap_or(Timestamp::MAX)
}

fn clamped(at: i64) -> Timestamp {
    Timestamp::from_microsecond(at).unwrap_or(if at < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
