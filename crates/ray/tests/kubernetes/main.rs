//! Clusters and templates on a simulated Kubernetes API. Tests have the names of the requirements of the proposal.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test that meets the unexpected fails"
)]

mod fixtures;
mod objects;
mod refusals;
