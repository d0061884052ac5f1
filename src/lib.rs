//! The Hindsight server: stores results and records for years and answers filters over them.
//!
//! The modules below are in reading order; `docs/ARCHITECTURE.md` is the map.

/// The allocator of every program with this library, also of SQLite in it: rows are allocated on one thread and freed on
/// another, for which that of glibc waits for a lock. See docs/adr/0065.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
