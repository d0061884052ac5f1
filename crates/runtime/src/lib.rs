//! What every program of Hindsight stands on: kinds of errors, the clock, telemetry and its pages, traces,
//! signals to end, and threads of low priority.

pub mod admin;
pub mod clock;
pub mod cores;
pub mod error;
pub mod low_priority;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod traces;
