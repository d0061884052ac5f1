//! The Kubeflow pipelines store.

pub mod package;
pub mod spec;
