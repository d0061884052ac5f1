//! Numbers with bounds, and sizes and durations with their units.

use std::{num::NonZeroU32, time::Duration};

use jiff::SignedDuration;

use crate::{BadValue, Kind, Value};

/// A whole number between two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>(u64);

impl<const LEAST: u64, const MOST: u64> Number<LEAST, MOST> {
    /// This number, or the nearest that is between the bounds.
    #[must_use]
    pub const fn nearest(number: u64) -> Self {
        Self(if number < LEAST {
            LEAST
        } else if number > MOST {
            MOST
        } else {
            number
        })
    }

    /// The number itself, from `LEAST` to `MOST`.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number, as lengths in memory are counted.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number, or the largest of this type.
    #[must_use]
    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The number, or the nearest of that type.
    #[must_use]
    pub fn as_nonzero_u32(self) -> NonZeroU32 {
        NonZeroU32::new(self.as_u32()).unwrap_or(NonZeroU32::MIN)
    }
}

impl<const LEAST: u64, const MOST: u64> Value for Number<LEAST, MOST> {
    const WORD: &'static str = "NUMBER";

    fn read(text: &str) -> Result<Self, BadValue> {
        let number = text.replace('_', "").parse().ok();
        let number = number.filter(|number| (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| {
            let most = match MOST {
                u64::MAX => String::new(),
                most => format!(" to {most}"),
            };
            let want = format!("a whole number from {LEAST}{most}");
            BadValue::not_valid(text, "number", want)
        })
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A number of bytes between two others, written `32MiB`, `25MB` or plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>(u64);

/// Largest first; binary before decimal, and long names before short ones.
const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("Ti", 1 << 40),
    ("GiB", 1 << 30),
    ("Gi", 1 << 30),
    ("MiB", 1 << 20),
    ("Mi", 1 << 20),
    ("KiB", 1 << 10),
    ("Ki", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl<const LEAST: u64, const MOST: u64> ByteSize<LEAST, MOST> {
    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes, as lengths in memory are counted.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const LEAST: u64, const MOST: u64> Value for ByteSize<LEAST, MOST> {
    const WORD: &'static str = "SIZE";

    fn read(text: &str) -> Result<Self, BadValue> {
        let (number, unit) = match text.find(|next: char| !next.is_ascii_digit()) {
            Some(end) => text.split_at(end),
            None => (text, "B"),
        };
        let scale = SIZES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let bytes = number.parse::<u64>().ok().zip(scale);
        let bytes = bytes.and_then(|(number, (_, scale))| number.checked_mul(*scale));
        let Some(bytes) = bytes else {
            let want = "for example `32MiB`, `25MB` or a number of bytes";
            return Err(BadValue::not_valid(text, "size", want));
        };
        if !(LEAST..=MOST).contains(&bytes) {
            return Err(BadValue::new(format!(
                "`{text}` is out of range; want {} to {}",
                written(LEAST),
                written(MOST)
            )));
        }
        Ok(Self(bytes))
    }

    fn show(&self) -> String {
        written(self.0)
    }
}

/// In the largest unit that divides them.
fn written(bytes: u64) -> String {
    let mut units = SIZES.iter();
    match units.find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale)) {
        Some((unit, scale)) if *scale > 1 => format!("{}{unit}", bytes / scale),
        _ => bytes.to_string(),
    }
}

/// A length of time of at least so many milliseconds, written `500ms`, `30s`, `1h30m`,
/// `1.5h` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span<const LEAST: u64 = 0>(Duration);

/// Largest first, in nanoseconds.
const SPANS: &[(&str, i128)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

const WANT_SPAN: &str = "for example `30s`, `1h30m`, `1.5h` or `7d`";

impl<const LEAST: u64> Span<LEAST> {
    /// The length, as the standard library counts it.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The length as one of those that may be negative.
    #[must_use]
    pub fn signed(self) -> SignedDuration {
        SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX)
    }
}

impl<const LEAST: u64> Value for Span<LEAST> {
    const WORD: &'static str = "DURATION";

    fn read(text: &str) -> Result<Self, BadValue> {
        let nanoseconds = nanoseconds(text).and_then(|number| u64::try_from(number).ok());
        let Some(nanoseconds) = nanoseconds else {
            return Err(BadValue::not_valid(text, "duration", WANT_SPAN));
        };
        let (span, least) = (
            Duration::from_nanos(nanoseconds),
            Duration::from_millis(LEAST),
        );
        if span < least {
            let least = Self(least).show();
            return Err(BadValue::new(format!(
                "`{text}` is too short; want at least `{least}`"
            )));
        }
        Ok(Self(span))
    }

    fn show(&self) -> String {
        let mut rest = i128::try_from(self.0.as_nanos()).unwrap_or(i128::MAX);
        if rest == 0 {
            return "0s".to_owned();
        }
        let mut text = String::new();
        for (unit, scale) in SPANS.iter().filter(|(unit, _)| *unit != "µs") {
            if rest >= *scale {
                text.push_str(&format!("{}{unit}", rest / scale));
                rest %= scale;
            }
        }
        text
    }
}

/// A length of time that may be negative.
impl Value for SignedDuration {
    const WORD: &'static str = "DURATION";
    const KIND: Kind = Kind::Signed;

    fn read(text: &str) -> Result<Self, BadValue> {
        signed_duration(text)
    }

    fn show(&self) -> String {
        let sign = if self.is_negative() { "-" } else { "" };
        format!("{sign}{}", Span::<0>(self.unsigned_abs()).show())
    }
}

/// Reads a length of time that may be negative.
///
/// # Errors
/// If it is none.
pub fn signed_duration(text: &str) -> Result<SignedDuration, BadValue> {
    let nanoseconds = nanoseconds(text).and_then(|number| i64::try_from(number).ok());
    nanoseconds
        .map(SignedDuration::from_nanos)
        .ok_or_else(|| BadValue::not_valid(text, "duration", WANT_SPAN))
}

/// Sums parts such as `1h` and `30m`, each unit smaller than the one before it. Zero needs no unit.
fn nanoseconds(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    if rest.is_empty() || rest == "0" {
        return (!rest.is_empty()).then_some(0);
    }
    let mut total = 0_i128;
    let mut smaller = SPANS;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|next: char| next.is_alphabetic())?);
        let end = after.find(|next: char| next.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let position = smaller.iter().position(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, smaller[position].1)?)?;
        smaller = &smaller[position + 1..];
        rest = after;
    }
    Some(sign * total)
}

/// A decimal number times `scale`, without what is less than one.
fn scaled(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let part =
        fraction.parse::<i128>().ok()? * scale / 10_i128.pow(fraction.len().try_into().ok()?);
    Some(i128::from(whole.parse::<u64>().ok()?) * scale + part)
}

#[cfg(test)]
mod tests;
