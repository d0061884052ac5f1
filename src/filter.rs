//! Filters: what a text means, which half of it an engine can answer, and whether one row
//! matches.
//!
//! One meaning everywhere. A filter is evaluated in three-valued logic: *true*, *false*, or
//! *unknown*, which is what a missing field, a failed conversion, or a comparison of JSON values
//! of different types gives. Only *true* matches, so `x != "a"` and `!(x == "a")` both leave out
//! rows that have no `x`. Times are compared at microsecond precision.
//!
//! Nothing here reads a database; no text of a filter leaves this room except inside a
//! [`condition::Value`] or a [`condition::Column`], which stores bind.

pub mod columns;
pub mod condition;
