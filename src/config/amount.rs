//! Whole numbers of things.

use std::num::NonZeroU32;

use super::{problem::BadValue, value::Value};

/// A whole number from 1 to a billion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(NonZeroU32);

/// The largest.
const MOST: u32 = 1_000_000_000;

impl Amount {
    /// This many; `None` if that is no amount.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number)
            .filter(|number| number.get() <= MOST)
            .map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl Value for Amount {
    fn read(text: &str) -> Result<Self, BadValue> {
        let number = text.replace('_', "").parse().ok();
        number.and_then(Self::new).ok_or_else(|| {
            BadValue::new(format!(
                "`{text}` is not an amount; want a whole number from 1 to {MOST}"
            ))
        })
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// So many of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// All of them.
    pub const ALL: Self = Self(100);

    /// As a part of 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl Value for Percent {
    fn read(text: &str) -> Result<Self, BadValue> {
        match text.parse() {
            Ok(number @ 0..=100) => Ok(Self(number)),
            _ => Err(BadValue::new(format!(
                "`{text}` is not so many of a hundred; want a whole number from 0 to 100"
            ))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}
