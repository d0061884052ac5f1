//! Times and lengths of time, as people write them.

use jiff::{SignedDuration, Timestamp, ToSpan as _, civil};

use super::Now;

/// Units of a length of time, in seconds.
const UNITS: [(&str, i64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("w", 604_800),
];

/// Longest length of time, 100 years.
const MAX_SECONDS: i64 = 36_525 * 86_400;

/// How lengths are written, for errors.
pub(super) const LENGTHS: &str = "write a length of time as `90s`, `10m`, `1h30m`, `2d` or `1w`";
/// How times are written, for errors.
pub(super) const TIMES: &str = "write how long ago, as `24h`, `90m` or `7d`, or a time, as `2026-03-02`, \
                                `2026-03-02T14:00`, `2026-03-02T14:00:00Z`, `today`, `yesterday` or `now`";

/// A length of time, of numbers with units.
pub(super) fn length(text: &str) -> Option<SignedDuration> {
    let mut seconds = 0_i64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, of) = UNITS.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        seconds = seconds.checked_add(number.checked_mul(of)?)?;
    }
    let is_length = !text.is_empty() && seconds <= MAX_SECONDS;
    is_length.then(|| SignedDuration::from_secs(seconds))
}

/// A time: a length of time ago, a day in the zone of `now`, or a moment.
pub(super) fn moment(text: &str, now: &Now) -> Option<Timestamp> {
    let time = match text {
        "now" => now.time,
        "today" => midnight(now.time.to_zoned(now.zone.clone()).date(), now)?,
        "yesterday" => {
            let today = now.time.to_zoned(now.zone.clone()).date();
            midnight(today.checked_sub(1.day()).ok()?, now)?
        }
        text => match length(text) {
            Some(ago) => now.time.checked_sub(ago).ok()?,
            None => written(text, now)?,
        },
    };
    // Beyond these years timestamps of filters do not go.
    let year = time.to_zoned(jiff::tz::TimeZone::UTC).year();
    (1..=9_999).contains(&year).then_some(time)
}

fn written(text: &str, now: &Now) -> Option<Timestamp> {
    if text.len() == "2026-03-02".len() {
        return midnight(text.parse().ok()?, now);
    }
    // Texts of jiff may name a zone or a calendar besides.
    if !text.starts_with(|c: char| c.is_ascii_digit()) || text.contains('[') {
        return None;
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let local: civil::DateTime = text.parse().ok()?;
    let zoned = now.zone.to_ambiguous_zoned(local).compatible().ok()?;
    Some(zoned.timestamp())
}

/// The beginning of a day; where clocks skip midnight the first moment after it.
fn midnight(day: civil::Date, now: &Now) -> Option<Timestamp> {
    let zoned = day.to_zoned(now.zone.clone()).ok()?;
    Some(zoned.timestamp())
}
