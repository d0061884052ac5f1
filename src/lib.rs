//! The Hindsight server: stores results and records for years and answers filters over them.

pub mod admin;
pub mod clock;
pub mod config;
pub mod error;
pub mod telemetry;
