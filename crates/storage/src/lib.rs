//! Stores of results and records. Each layer enters only those before it.
//!
//! * `seam`: what a store can do, with no word of SQL.
//! * `codec`: how payloads are kept.
//! * `sql`: statements, and which way leads to the rows of a list. Pure.
//! * `driver`: what runs statements, on SQLite and on PostgreSQL.
//! * `store`: the store over a driver.
//! * `tiers`: a store whose old records are in files of an archive.
//! * `tools`: what operators do with whole databases.

mod codec;
#[cfg(test)]
mod conformance;
mod driver;
#[cfg(test)]
mod memory;
mod seam;
mod sql;
mod store;
mod tiers;
mod tools;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use codec::objects;
pub use seam::*;
pub use store::resolve;
pub use tiers::{Archive, Moving, Tiers, Unmovable};
pub use tools::{archive, backup, copy, fsck, snapshot, tekton};
