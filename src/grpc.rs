//! The gRPC server: messages become types, answers become messages, errors become statuses.
//! Nothing is decided here.

mod archive;
mod call;
mod convert;
mod deadline;
mod explain;
mod fields;
mod holds;
mod ingest;
mod kfp;
mod lifetime;
mod logs;
mod queries;
mod ray;
mod reflection;
mod results;
mod runs;
mod selector;
mod status;
mod transport;

pub use call::{ResultsServer, credentials};
pub use deadline::Deadline;
pub use fields::Fields;
pub use kfp::{KfpServer, UploadedPipeline, UploadedVersion};
pub use ray::RayServer;
pub use reflection::Reflection;
pub use status::status as refusal;
pub use transport::TransportStatus;

/// The name under which the service is known to health checks.
pub const RESULTS_SERVICE: &str = "tekton.results.v1alpha2.Results";
