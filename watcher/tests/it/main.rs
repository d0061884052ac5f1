//! The watcher against a simulated cluster and a server in memory.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod batched;
mod binary;
mod calls;
mod collecting;
mod declared;
mod events;
mod faults;
mod finalizers;
mod kinds;
mod lease;
mod leaving;
mod logs;
mod outages;
mod policies;
mod progress;
mod reads;
mod real;
mod refusals;
mod release;
mod scale;
mod spool;
mod storing;
mod support;
mod weaknesses;
mod writes;
