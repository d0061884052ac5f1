//! The Hindsight server: stores results and records for years and answers filters over them.
//!
//! The modules below are in reading order; `docs/ARCHITECTURE.md` is the map.

pub mod query;
pub mod service;

pub mod app;
pub mod cli;
pub mod events;
pub mod grpc;
pub mod homes;
pub mod import;
pub mod retention;

pub mod config;
mod outgoing;
