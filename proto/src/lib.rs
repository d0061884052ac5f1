//! What the Hindsight server and watcher say to each other: the generated messages, the
//! names of resources, what a run is, and a typed client.
//!
//! Nothing here opens a file, reads the environment or knows a database or a cluster.

pub mod client;
pub mod names;
pub mod run;

/// `tekton.results.v1alpha2`, generated from `proto/tekton/results/v1alpha2`.
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    clippy::too_many_lines,
    missing_docs,
    reason = "generated code"
)]
pub mod v1alpha2 {
    tonic::include_proto!("tekton.results.v1alpha2");
}

/// Every message and service, encoded, with the `google.api.http` options kept.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Largest message either side accepts unless told otherwise: 32 MiB.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

#[cfg(test)]
mod wire_tests;
