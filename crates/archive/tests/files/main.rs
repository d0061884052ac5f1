//! Files that are written and read.
#![expect(clippy::unwrap_used, reason = "a test stops at the unexpected")]

#[path = "../../../../tests/bench/storage/corpus.rs"]
#[expect(dead_code, reason = "the bench of the store shares it")]
mod corpus;
mod damaged;
mod evolution;
mod identity;
mod pruning;
#[path = "../../../../tests/bench/archive/rows.rs"]
mod rows;
mod sizes;
mod support;
