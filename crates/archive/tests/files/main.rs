//! Files that are written and read.
#![expect(clippy::unwrap_used, reason = "a test stops at the unexpected")]

mod damaged;
mod evolution;
mod identity;
mod pruning;
mod support;
