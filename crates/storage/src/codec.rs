//! How payloads are kept: compressed, by themselves or against a dictionary, in the database or in
//! an object store; and what a row is made of before a transaction begins.

pub(crate) mod body;
pub(crate) mod dictionaries;
pub(crate) mod dictionary;
pub(crate) mod digest;
pub(crate) mod frame;
pub(crate) mod id;
pub(crate) mod known;
pub mod objects;
pub(crate) mod parallel;
pub(crate) mod prepare;
pub(crate) mod record;
pub(crate) mod row;
pub(crate) mod short;
pub(crate) mod text;
pub(crate) mod uid;
