//! The Kubeflow pipelines store.

pub mod download;
pub mod package;
pub mod spec;
