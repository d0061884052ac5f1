//! Logs of runs: what is known about the containers of each run, and how far their logs are stored.
//!
//! Nothing here waits for the cluster or the server. The [`Board`] is the memory: which run has
//! which pods, which starts of containers wait to be read, are read, or are sealed. What reads and
//! sends is in `log_tasks`.

mod board;
mod lines;
mod outbox;
mod overlap;
mod pod;
mod queues;
mod run;
mod source;

pub(crate) use board::{Board, Slots};
pub(crate) use lines::{Line, Numbered, Splitter, numbered};
pub(crate) use outbox::{Batch, Written};
pub(crate) use overlap::Overlap;
pub(crate) use pod::Pod;
pub(crate) use run::{Facts, label};
pub(crate) use source::{Access, Sight, Source};
