//! What the SQL stores share: tables, statements and how conditions become SQL.
//!
//! Pure: nothing here connects or runs anything. Every value is a bind; every column comes from
//! a constant; [`statement::Statement`] is the only thing whose text reaches a driver.

pub(crate) mod access_path;
pub(crate) mod aggregate;
pub(crate) mod archive;
pub(crate) mod candidate;
pub(crate) mod columns;
pub(crate) mod condition;
pub(crate) mod cost;
pub(crate) mod cursors;
pub(crate) mod dialect;
pub(crate) mod dictionaries;
pub(crate) mod etag;
pub(crate) mod expire;
pub(crate) mod explain;
pub(crate) mod feed;
pub(crate) mod holds;
pub(crate) mod index_build;
pub(crate) mod indexed;
pub(crate) mod labels;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod many;
pub(crate) mod objects;
pub(crate) mod pipelines;
pub(crate) mod purge;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod signatures;
pub(crate) mod statement;
pub(crate) mod stored_time;
pub(crate) mod thin;
pub(crate) mod time_window;
mod trigrams;
pub(crate) mod walk;
pub(crate) mod write;
