//! What every program of Hindsight stands on: kinds of errors, the clock, telemetry and its pages, traces, and
//! threads of low priority.

pub mod admin;
pub mod clock;
pub mod cores;
pub mod error;
pub mod low_priority;
pub mod telemetry;
pub mod traces;
