//! The store of pipelines as objects of a simulated Kubernetes API: what requests do to objects, and what objects that
//! others make are in answers.

mod fixtures;
mod objects;
mod pages;
mod real;
mod trouble;
mod versions;
