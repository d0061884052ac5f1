//! What the Hindsight server and its clients say to each other: the generated messages, the names of
//! resources, and times.
//!
//! Nothing here opens a file, reads the environment or knows a database or a cluster.

pub mod metadata;
pub mod names;
pub mod time;

/// What every message can do; its size, above all.
pub use prost::Message;

/// `google.api`, generated from `proto/google/api`.
pub use generated::google::api;
/// `hindsight.v1`, generated from `proto/hindsight/v1`.
pub use generated::hindsight::v1;
/// `kuberay.v1alpha2`, generated from `proto/ray/v1alpha2`.
pub use generated::kuberay::v1alpha2 as ray_v1alpha2;
/// `proto`, the package of KubeRay, generated from `proto/ray/v1`.
pub use generated::proto as ray_v1;
/// `tekton.results.v1alpha2`, generated from `proto/tekton/results/v1alpha2`.
pub use generated::tekton::results::v1alpha2;
/// `tekton.results.v1alpha3`, generated from `proto/tekton/results/v1alpha3`.
pub use generated::tekton::results::v1alpha3;

/// One module for each part of a package's name, which is how generated code finds other packages.
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    clippy::too_many_lines,
    missing_docs,
    reason = "generated code"
)]
mod generated {
    pub(crate) mod google {
        pub mod api {
            tonic::include_proto!("google.api");
        }
    }
    pub(crate) mod hindsight {
        pub mod v1 {
            tonic::include_proto!("hindsight.v1");
        }
    }
    pub(crate) mod kuberay {
        pub mod v1alpha2 {
            tonic::include_proto!("kuberay.v1alpha2");
        }
    }
    pub mod proto {
        tonic::include_proto!("proto");
    }
    pub(crate) mod tekton {
        pub(crate) mod results {
            pub mod v1alpha2 {
                tonic::include_proto!("tekton.results.v1alpha2");
            }
            pub mod v1alpha3 {
                tonic::include_proto!("tekton.results.v1alpha3");
            }
        }
    }
}

/// Every message and service, encoded, with the `google.api.http` options kept.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Every message and service for clusters of Ray, encoded likewise. They are apart so that a server without them has
/// no memory of them.
pub const RAY_FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ray.bin"));

/// Largest message either side accepts unless told otherwise: 32 MiB.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

#[cfg(test)]
mod wire_tests;
