//! The controller on a simulated cluster that runs Jobs.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod chaos;
mod custom;
mod ends;
mod external;
mod pipelines;
mod plugin;
mod races;
mod rights;
mod running;
mod support;
mod webhook;
