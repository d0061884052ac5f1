//! The Kubeflow pipelines store: pipelines and their versions, which say what is run. No run is started here.
//!
//! [`model`] is what is kept, [`store`] what each store of it can do, and [`query`] which items a list gives, the same
//! on every store. Messages of the API, rights and the audit log are not here.

pub mod content;
pub mod crds;
mod database;
pub mod download;
pub mod error;
pub mod history;
pub mod kubernetes;
pub mod model;
pub mod names;
pub mod package;
mod pipelines;
pub mod query;
pub mod spec;
pub mod store;
pub mod transfer;
pub mod webhooks;

pub use database::Database;
pub use error::Error;
pub use pipelines::{AskedPipeline, AskedVersion, Both, Pipelines};
