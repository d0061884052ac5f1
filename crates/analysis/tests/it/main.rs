//! What the functions of this crate reach on seeded sets of failures and series.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and these print what they measure"
)]

mod corpus;
mod durations;
mod flaky;
mod random;
mod regression;
mod signatures;
