//! Runs workflows of Jobs on a Kubernetes cluster: the controller of `workflows.hindsight.dev`.
//!
//! What is to be done about a workflow is said by the crate `workflow`, which is pure; here it is done. The
//! controller knows no server and no database: the watcher stores workflows as it stores other runs. The plugin of
//! kubectl alone asks a server, for workflows that have left the cluster.

mod admin;
pub mod app;
mod caches;
pub mod cli;
mod cluster;
pub mod config;
mod custom;
mod events;
mod following;
mod interrupted;
mod kinds;
mod metrics;
mod object;
mod pipeline;
mod reconcile;
mod shared;
mod watch;
mod webhook;
