//! The store of pipelines as objects of a simulated Kubernetes API: what requests do to objects, and what objects that
//! others make are in answers.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that meets the unexpected fails, and says what it skips"
)]

mod fixtures;
mod objects;
mod pages;
mod real;
mod trouble;
mod versions;
