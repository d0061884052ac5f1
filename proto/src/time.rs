//! Times of payloads and of the wire, to whole microseconds, which is the precision everywhere here.
//!
//! A [`Timestamp`] ends some hours before the year 9999 does, so that it has a local time in every
//! zone. The rest of that year, in which "for ever" is usually said, is its last moment.

use jiff::{SignedDuration, Timestamp, fmt::temporal::Pieces};

/// The last second of the year 9999, which is the last of Protobuf, since 1970.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// The last moment: the last second of which microseconds can be counted, without a fraction.
pub fn last() -> Timestamp {
    let seconds = Timestamp::MAX.as_second();
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// The time that an RFC 3339 text says, which begins with a year of four digits and has hyphens in
/// its date, so that the order of texts is that of local dates.
pub fn parse(text: &str) -> Option<Timestamp> {
    let date = text.as_bytes().get(..10)?;
    let is_date = date.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if !is_date {
        return None;
    }
    match text.parse() {
        Ok(time) => cut(time),
        Err(_not_before_the_last) => is_after_the_last(text).then(last),
    }
}

/// A time as messages have it.
pub fn to_wire(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.as_second(),
        nanos: at.subsec_nanosecond(),
    }
}

/// So many seconds and nanoseconds after 1970; nothing outside of what both know.
pub fn at(seconds: i64, nanos: i32) -> Option<Timestamp> {
    if !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    match Timestamp::new(seconds, nanos) {
        Ok(time) => cut(time),
        Err(_out_of_range) => (Timestamp::MAX.as_second()..=LAST_SECOND)
            .contains(&seconds)
            .then(last),
    }
}

fn cut(time: Timestamp) -> Option<Timestamp> {
    if time > last() {
        return Some(last());
    }
    Timestamp::from_microsecond(time.as_microsecond()).ok()
}

/// Whether a text that is no [`Timestamp`] is one of the last moments of the year 9999.
fn is_after_the_last(text: &str) -> bool {
    let utc = || {
        let pieces = Pieces::parse(text).ok()?;
        let local = pieces.date().to_datetime(pieces.time()?);
        let offset = i64::from(pieces.to_numeric_offset()?.seconds());
        local.checked_sub(SignedDuration::from_secs(offset)).ok()
    };
    // The year may be the next one in local time.
    text.len() > 4 && utc().is_some_and(|utc| utc.year() == 9999 && utc.month() == 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hours_of_the_year_9999_are_its_last_moment() {
        for text in [
            "9999-12-30T22:00:00.5Z",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999999999Z",
            "9999-12-31T23:00:00+01:00",
            "9999-12-31T23:59:59+00:00",
            "9999-12-31T10:00:00-05:00",
        ] {
            assert_eq!(parse(text), Some(last()), "{text}");
        }
        let stored = last().as_microsecond();
        assert_eq!(Timestamp::from_microsecond(stored).unwrap(), last());
        for text in [
            "9999-12-31T23:59:59-00:01",
            "9999-12-31T23:59:59",
            "9999-12-31",
            "9999-12-32T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "soon",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(at(LAST_SECOND, 999_999_999), Some(last()));
        assert_eq!(at(LAST_SECOND + 1, 0), None);
    }

    #[test]
    fn other_times_are_cut_to_microseconds() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let cut = time("2026-01-02T03:04:05.123456Z");
        assert_eq!(parse("2026-01-02T05:04:05.123456789+02:00"), Some(cut));
        assert_eq!(at(cut.as_second(), 123_456_789), Some(cut));
        assert_eq!(
            parse("9999-12-30T21:00:00Z"),
            Some(time("9999-12-30T21:00:00Z"))
        );
        for nanos in [-1, 1_000_000_000] {
            assert_eq!(at(0, nanos), None);
        }
        assert_eq!(at(i64::MIN, 0), None);
    }
}
