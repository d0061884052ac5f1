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
/// `google.rpc`, generated from `proto/google/rpc`.
pub use generated::google::rpc;
/// `hindsight.v1`, generated from `proto/hindsight/v1`.
pub use generated::hindsight::v1;
/// `kubeflow.pipelines.backend.api.v2beta1`, generated from `proto/kubeflow/v2beta1`.
pub use generated::kubeflow::pipelines::backend::api::v2beta1 as kubeflow_v2beta1;
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
        pub mod rpc {
            tonic::include_proto!("google.rpc");
        }
    }
    pub(crate) mod hindsight {
        pub mod v1 {
            tonic::include_proto!("hindsight.v1");
        }
    }
    pub(crate) mod kubeflow {
        pub(crate) mod pipelines {
            pub(crate) mod backend {
                pub(crate) mod api {
                    pub mod v2beta1 {
                        tonic::include_proto!("kubeflow.pipelines.backend.api.v2beta1");
                    }
                }
            }
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

/// Every message and service of Kubeflow pipelines, encoded likewise, and apart for the same reason.
pub const KUBEFLOW_FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/kubeflow.bin"));

/// Largest message either side accepts unless told otherwise: 32 MiB.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

#[cfg(test)]
mod wire_tests;
