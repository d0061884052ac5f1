//! What the SQL stores share: tables, statements and how conditions become SQL.
//!
//! Pure: nothing here connects or runs anything. Every value is a bind; every column comes from
//! a constant; [`statement::Statement`] is the only thing whose text reaches a driver.

pub(super) mod aggregate;
pub(super) mod cells;
pub(super) mod columns;
pub(super) mod condition;
pub(super) mod dialect;
pub(super) mod etag;
pub(super) mod explain;
pub(super) mod labels;
pub(super) mod lead;
pub(super) mod list;
pub(super) mod many;
pub(super) mod objects;
pub(super) mod pieces;
pub(super) mod promote;
pub(super) mod promoted;
pub(super) mod purge;
pub(super) mod read;
pub(super) mod statement;
pub(super) mod stretch;
pub(super) mod text;
pub(super) mod walk;
pub(super) mod way;
pub(super) mod write;
