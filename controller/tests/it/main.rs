//! The controller on simulated clusters, and on a real API server where one is named.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests may panic, and tell what they skip"
)]

mod custom;
mod delegated;
mod ends;
mod external;
mod pipelines;
mod plugin;
mod races;
mod real;
mod rights;
mod running;
mod support;
mod trouble;
mod webhook;
