//! What operators do with whole databases: check, copy, back up, import.

pub mod archive;
pub mod backup;
pub mod copy;
mod foreign;
pub mod fsck;
pub mod snapshot;
pub mod tekton;
