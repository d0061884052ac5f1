//! Clusters of Ray as RayCluster objects, and compute templates as config maps, of one Kubernetes cluster.
//!
//! Requests and answers are the messages of `proto` (version 1 of the API); [`alpha`] converts those of
//! `kuberay.v1alpha2`. Only objects with the labels that are written here are shown and deleted. No pod is made
//! here, and no operator needs to run.

pub mod alpha;
mod api;
mod autoscaler;
mod check;
mod clusters;
mod env;
mod error;
mod events;
mod groups;
mod json;
mod names;
mod object;
mod template;
mod templates;
mod volumes;

pub use clusters::{Clusters, Listed, Page, check_namespace};
pub use error::Error;
pub use hindsight_cluster::ConnectError;
