//! Logs of containers: numbered lines with times, the chunks that they are kept in, and how those are read.
//!
//! Nothing here opens a file or knows a database: what holds chunks implements [`Chunks`].

mod chunk;
mod gather;
mod grep;
mod lines;
mod merge;
mod read;
mod redact;
mod template;
mod varint;

pub use chunk::{Chunk, Damaged, Effort, Head, decode, encode};
pub use gather::{Gathered, Gatherer};
pub use grep::{Hit, Pattern, PatternError, excerpt};
pub use lines::{Lines, MAX_LINE, Wrong, ends};
pub use merge::{MAX_CHUNK, MAX_PACKED, MAX_PACKED_LINES, chunks_of, first_merged};
pub use read::{Chunks, Reader, Selection, Window};
pub use redact::Redaction;
pub use template::{Template, TemplateError, Variable};
