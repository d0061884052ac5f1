//! Times and durations: their texts, their parts, and time zones.

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp, Zoned,
    tz::{Offset, TimeZone},
};

use hindsight_proto::time::{at, parse};

use crate::expr::TimePart;

/// Longest duration, 10,000 years, either way.
pub(crate) const MAX: Duration = Duration::from_secs(315_576_000_000);

/// The time that a text given to `timestamp` says: RFC 3339, the same with slashes in the date,
/// or a date alone, which is its first moment in UTC.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if let Some(time) = parse(text) {
        return Some(time);
    }
    let (date, rest) = text.split_at_checked(10)?;
    let date = date.replace('/', "-");
    if rest.is_empty() {
        parse(&format!("{date}T00:00:00Z"))
    } else {
        parse(&(date + rest))
    }
}

/// The time `seconds` after 1970.
pub(super) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    at(seconds, 0)
}

pub(super) fn cut(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_microsecond(time.as_microsecond()).ok()
}

/// A duration such as `1h30m`, `-2.5s` or `100ms`.
pub(crate) fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut nanos = 0_i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        rest = after;
    }
    let nanos = if negative { -nanos } else { nanos };
    let seconds = i64::try_from(nanos / 1_000_000_000).ok()?;
    let duration = SignedDuration::new(seconds, i32::try_from(nanos % 1_000_000_000).ok()?);
    in_range(duration)
}

pub(super) fn in_range(duration: SignedDuration) -> Option<SignedDuration> {
    (duration.unsigned_abs() <= MAX).then_some(duration)
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `number` units of so many nanoseconds; what is below a nanosecond is cut off.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    let mut nanos = i128::from(whole).checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos += i128::from(digit - b'0') * place;
    }
    Some(nanos)
}

/// A duration as `string` writes it: in seconds.
pub(crate) fn duration_text(duration: SignedDuration) -> String {
    let sign = if duration.is_negative() { "-" } else { "" };
    let size = duration.unsigned_abs();
    let fraction = match size.subsec_nanos() {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    format!("{sign}{}{fraction}s", size.as_secs())
}

/// A time zone by its IANA name or as an offset, `+02:00`; a missing sign means plus.
pub(crate) fn time_zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "" | "UTC" | "Z") {
        return Some(TimeZone::UTC);
    }
    let unsigned = name.strip_prefix(['+', '-']).unwrap_or(name);
    let Some((hours, minutes)) = unsigned.split_once(':') else {
        return TimeZone::get(name).ok();
    };
    let number = |text: &str| {
        (text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i32>())
    };
    let (hours, minutes) = (number(hours)?.ok()?, number(minutes)?.ok()?);
    if minutes > 59 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    let seconds = if name.starts_with('-') {
        -seconds
    } else {
        seconds
    };
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// A part of a time, as a clock in `zone` shows it.
pub(super) fn part(time: Timestamp, part: TimePart, zone: TimeZone) -> i64 {
    let local: Zoned = time.to_zoned(zone);
    i64::from(match part {
        TimePart::FullYear => local.year(),
        TimePart::Month => i16::from(local.month()) - 1,
        TimePart::Date => i16::from(local.day()),
        TimePart::DayOfMonth => i16::from(local.day()) - 1,
        TimePart::DayOfWeek => i16::from(local.weekday().to_sunday_zero_offset()),
        TimePart::DayOfYear => local.day_of_year() - 1,
        TimePart::Hours => i16::from(local.hour()),
        TimePart::Minutes => i16::from(local.minute()),
        TimePart::Seconds => i16::from(local.second()),
        TimePart::Milliseconds => local.millisecond(),
    })
}

/// A whole duration in a unit; milliseconds are those beyond the last second.
pub(super) fn duration_part(duration: SignedDuration, part: TimePart) -> Option<i64> {
    Some(match part {
        TimePart::Hours => duration.as_hours(),
        TimePart::Minutes => duration.as_mins(),
        TimePart::Seconds => duration.as_secs(),
        TimePart::Milliseconds => i64::from(duration.subsec_millis()),
        _ => return None,
    })
}
