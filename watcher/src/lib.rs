//! Streams finished runs off a Kubernetes cluster into Hindsight, and collects what is stored.
//!
//! The pure half decides and never waits: [`plan`] turns what is known about one object into
//! steps, [`ledger`] is the memory it decides from. The doing half carries the steps out. The
//! watcher knows no database and serves no history.

// Pure: these decide.
pub mod content;
pub mod ledger;
pub mod plan;
pub mod policy;

// Doing: these act.
mod admin;
pub mod app;
pub mod backoff;
pub mod cli;
mod cluster;
pub mod config;
mod deadline;
mod declared;
mod gate;
mod health;
mod list_watch;
mod log_tasks;
mod logs;
pub mod metrics;
mod namespaces;
mod object;
mod presence;
pub mod progress;
mod queue;
mod refusals;
mod release;
mod shared;
pub mod sink;
pub mod spool;
mod uid_queue;
pub mod version;
mod watch;
mod work;
