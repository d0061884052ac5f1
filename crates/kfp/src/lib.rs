//! The Kubeflow pipelines store.

pub mod spec;
