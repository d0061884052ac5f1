//! Sizes and durations with their units. A bare number of an unknown unit is not taken.

use std::{fmt, str::FromStr, time::Duration};

use super::problem::BadValue;

/// A number of bytes, written `32MiB`, `25MB` or plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// Largest first; binary before decimal.
const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl ByteSize {
    /// This many bytes.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

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

impl FromStr for ByteSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (number, unit) = number_and_unit(text);
        let scale = match unit {
            "" => Some(1),
            unit => SIZES
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                .map(|(_, scale)| *scale),
        };
        number
            .and_then(|number| number.checked_mul(scale?))
            .map(Self)
            .ok_or_else(|| {
                BadValue::new(format!(
                    "`{text}` is not a size; write `32MiB`, `25MB` or a number of bytes"
                ))
            })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZES
            .iter()
            .find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale))
        {
            Some((unit, scale)) if *scale > 1 => write!(f, "{}{unit}", self.0 / scale),
            _ => write!(f, "{}", self.0),
        }
    }
}

/// A length of time, written `500ms`, `30s`, `10m`, `1h`, `7d` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

/// Largest first, in milliseconds.
const SPANS: &[(&str, u64)] = &[
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl Span {
    /// This many whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// As the standard library counts it.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        span_millis(text)
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| {
                BadValue::new(format!(
                    "`{text}` is not a duration; write `30s`, `10m` or `1h`"
                ))
            })
    }
}

/// Sums parts such as `1h` and `30m`, each unit smaller than the one before it.
fn span_millis(text: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut rest = text;
    let mut smaller = SPANS;
    while !rest.is_empty() || total == 0 && std::ptr::eq(smaller, SPANS) {
        let (number, after) = number_and_unit(rest);
        let end = after
            .find(|next: char| next.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let position = smaller.iter().position(|(name, _)| *name == unit)?;
        total = total.checked_add(number?.checked_mul(smaller[position].1)?)?;
        smaller = &smaller[position + 1..];
        rest = after;
    }
    Some(total)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in SPANS {
            if rest >= *scale {
                write!(f, "{}{unit}", rest / scale)?;
                rest %= scale;
            }
        }
        Ok(())
    }
}

/// The digits that `text` begins with, and what follows them.
fn number_and_unit(text: &str) -> (Option<u64>, &str) {
    let end = text
        .find(|next: char| !next.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.parse().ok(), rest)
}

#[cfg(test)]
mod tests;
