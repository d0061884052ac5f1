//! What a run is: which kinds of object are runs, when one is finished and how it ended,
//! which result it belongs to, and how it is summed up there.
//!
//! Everything here is a pure function over the object's JSON, shared by the watcher (which
//! sends runs), the importer (which pretends to be one) and the server (which indexes them).

mod claim;
mod fence;
pub mod grouping;
pub mod json;
pub mod keys;
mod kind;
mod outcome;
mod summary;
mod view;

pub use claim::{Claim, Verdict, verdict};
pub use fence::is_earlier;
pub use grouping::{Grouping, group};
pub use kind::{Completion, DEFINITIONS, JOB, Judge, KINDS, Kind};
pub use outcome::{Finish, Outcome};
pub use summary::{SummaryPolicy, Upload, UploadError, upload};
pub use view::{Owner, View};

#[cfg(test)]
mod tests;
