//! The resources as the server holds them: results, records, and their etags.
//!
//! Types only: nothing here knows protobuf, SQL or CEL. Every time is cut to microseconds, so
//! that what a write returns equals what the next read returns.

mod etag;
mod memo;
mod record;
mod result;
mod tier;
mod uid;

pub use etag::Etag;
pub use hindsight_proto::names::{
    LogName, Parent, ParentPattern, ParseNameError, RecordName, Resource, ResultName, ResultPattern,
};
pub use record::{Payload, Record};
pub use result::{RunResult, Summary};
pub use tier::Tier;
pub use uid::following_uid;
