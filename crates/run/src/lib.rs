//! What a run is: which kinds of object are runs, when one is finished and how it ended,
//! which result it belongs to, and how it is summed up there.
//!
//! Everything here is a pure function over the object's JSON, shared by the watcher (which
//! sends runs), the importer (which pretends to be one) and the server (which indexes them).

mod claim;
mod closed;
mod engine;
mod fence;
mod finish;
pub mod grouping;
pub mod json;
pub mod keys;
mod kind;
mod kinds;
mod outcome;
pub mod reference;
pub mod selector;
mod summary;
mod view;

pub use claim::{Claim, Precedence, precedence};
pub use closed::Closed;
pub use engine::Engine;
pub use fence::is_earlier;
pub use finish::Finish;
pub use grouping::{Grouping, group};
pub use kind::{Completion, Kind, Lifetime, StatusReader};
pub use kinds::{DEFINITIONS, JOB, KINDS, Kinds};
pub use outcome::Outcome;
pub use summary::{SummaryPolicy, Upload, UploadError, upload};
pub use view::{Owner, View};

#[cfg(test)]
mod tests;
