//! What a filter may cost, in steps: one budget for the texts of a request before a row is read,
//! and one for each row.
//!
//! A step takes about a microsecond at most. What takes longer is charged as several, before it
//! is done, so that work ends soon after it is cancelled or its budget is spent.

use tokio_util::sync::CancellationToken;

use super::{
    error::{Miss, Problem},
    limits::{MAX_COMPILE_STEPS, MAX_CONSTANT_BYTES, MAX_PATTERN_STATES, MAX_STEPS},
    value::Value,
};

/// Steps of texts that are read where they arrive, beside calls that wait for nothing.
const SMALL_STEPS: u32 = 2_000;
/// What a part of a text that has a meaning of its own, such as a name or an operator, costs.
const TOKEN: usize = 5;
/// Bytes that are read, compared or copied in a step.
const BULK: usize = 1024;
/// Most bytes that are made for one row, together.
const MAX_MADE_BYTES: usize = 16 << 20;
/// What an element of a list takes beside its text.
const ELEMENT: usize = 64;
/// Steps after which it is asked again whether the work is cancelled.
const ASK_AFTER: u32 = 256;

/// Steps taken of those allowed.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    steps: u32,
    most: u32,
    made: usize,
    stop: CancellationToken,
}

impl Meter {
    /// The steps of one row, given up once `stop` is cancelled.
    pub(super) fn of_row(stop: &CancellationToken) -> Self {
        Self::new(MAX_STEPS, stop)
    }

    fn new(most: u32, stop: &CancellationToken) -> Self {
        Self {
            steps: 0,
            most,
            made: 0,
            stop: stop.clone(),
        }
    }

    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Miss> {
        let asked = self.steps / ASK_AFTER;
        self.steps = self
            .steps
            .saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        let cancelled = self.steps / ASK_AFTER > asked && self.stop.is_cancelled();
        if self.steps > self.most || cancelled {
            return Err(Miss::Budget);
        }
        Ok(())
    }

    /// Pays for reading `size` bytes or elements at once.
    pub(super) fn charge_bulk(&mut self, size: usize) -> Result<(), Miss> {
        self.charge(size / BULK)
    }

    /// Pays for making `size` bytes.
    pub(super) fn charge_made(&mut self, size: usize) -> Result<(), Miss> {
        self.made = self.made.saturating_add(size);
        if self.made > MAX_MADE_BYTES {
            return Err(Miss::Budget);
        }
        self.charge_bulk(size)
    }

    /// Pays for making a list of `elements`, without what they hold.
    pub(super) fn charge_list(&mut self, elements: usize) -> Result<(), Miss> {
        self.charge_made(elements.saturating_mul(ELEMENT))
    }

    /// Bytes that may still be read or made.
    pub(super) fn room(&self) -> usize {
        let steps = self.most.saturating_sub(self.steps) as usize;
        (steps * BULK).min(MAX_MADE_BYTES.saturating_sub(self.made))
    }

    /// Whether the work ended because it was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::of_row(&CancellationToken::new())
    }
}

/// What the texts of one request may still cost before a row is read. Each of them is charged to
/// the same one.
#[derive(Debug)]
pub struct CostBudget {
    pub(super) meter: Meter,
    constants: usize,
    states: usize,
}

impl CostBudget {
    /// All that a request may cost. The work is given up once `stop` is cancelled.
    #[must_use]
    pub fn of_request(stop: &CancellationToken) -> Self {
        Self::with(MAX_COMPILE_STEPS, stop)
    }

    /// What takes so little time that other calls may wait for it.
    #[must_use]
    pub fn small() -> Self {
        Self::with(SMALL_STEPS, &CancellationToken::new())
    }

    fn with(steps: u32, stop: &CancellationToken) -> Self {
        Self {
            meter: Meter::new(steps, stop),
            constants: 0,
            states: 0,
        }
    }

    /// How many steps were charged.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.meter.steps
    }

    /// Pays for reading a text of so many parts, which begins at the byte `at`.
    pub(super) fn read(&mut self, tokens: usize, at: usize) -> Result<(), Problem> {
        self.pay(tokens.saturating_mul(TOKEN), at)
    }

    pub(super) fn pay(&mut self, steps: usize, at: usize) -> Result<(), Problem> {
        self.meter.charge(steps).map_err(|_spent| self.refused(at))
    }

    /// The refusal of what would take too many steps.
    pub(super) fn refused(&self, at: usize) -> Problem {
        let most = self.meter.most;
        Problem::costly(
            at,
            format!(
                "reading the request up to here takes more than {most} steps; shorten its lists \
                 and patterns, or write long constants out"
            ),
        )
    }

    /// Pays for keeping a constant that was worked out.
    pub(super) fn keep(&mut self, value: &Value<'_>, at: usize) -> Result<(), Problem> {
        let size = size(value);
        self.constants = self.constants.saturating_add(size);
        if self.constants > MAX_CONSTANT_BYTES {
            let what = format!(
                "the constants of the request have more than {MAX_CONSTANT_BYTES} bytes when they \
                 are worked out; make fewer or shorter ones"
            );
            return Err(Problem::costly(at, what));
        }
        self.pay(size / BULK, at)
    }

    /// Pays for the states of a regular expression.
    pub(super) fn compiled(&mut self, states: usize, at: usize) -> Result<(), Problem> {
        self.states = self.states.saturating_add(states);
        if self.states > MAX_PATTERN_STATES {
            let what = format!(
                "the patterns of the request have more than {MAX_PATTERN_STATES} states when they \
                 are compiled; shorten them, or repeat less in them, as in `{{1,10}}`"
            );
            return Err(Problem::costly(at, what));
        }
        self.pay(states / 4, at)
    }
}

impl Default for CostBudget {
    fn default() -> Self {
        Self::of_request(&CancellationToken::new())
    }
}

/// What a constant takes, in bytes.
fn size(value: &Value<'_>) -> usize {
    let of_own = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|(k, v)| size(k) + size(v)).sum(),
        _ => 0,
    };
    of_own + ELEMENT
}
