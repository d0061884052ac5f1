//! Clusters of Ray as RayCluster objects, and compute templates as config maps, of one Kubernetes cluster.
//!
//! Requests and answers are the messages of `proto` (version 1 of the API); [`alpha`] converts those of
//! `kuberay.v1alpha2`, and [`history`] what is stored of a cluster. Only objects with the labels that are written here are
//! shown and deleted. Pods are made by the operator, which need not run.

pub mod alpha;
mod api;
mod autoscaler;
mod check;
mod clusters;
mod env;
mod error;
mod events;
mod groups;
pub mod history;
mod json;
mod names;
mod object;
mod template;
mod templates;
mod volumes;

pub use clusters::{Clusters, Listed, Page, check_namespace, is_name};
pub use error::Error;
pub use hindsight_cluster::ConnectError;
