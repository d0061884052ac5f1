//! What follows from stored runs: the tree of a run, what differs between two, what errors have in
//! common, and which pipelines are flaky or become slower. Pure functions: no I/O, no clock.

pub mod diff;
pub mod flaky;
pub mod regression;
pub mod series;
pub mod signature;
pub mod tree;
