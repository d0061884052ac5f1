//! What programs that work on a Kubernetes cluster share: how they connect, what an answer to one call means,
//! who of several replicas works, how fast they write, and how admission webhooks are served. It knows no kind of run.

mod connect;
mod error;
mod lease;
mod pace;
mod retry_after;
pub mod webhook;

pub use connect::{ConnectError, choose_cryptography, connect, readable};
pub use error::{ClusterError, DEADLINE, call, classify};
pub use lease::{Lease, LeaseConfig, identity};
pub use pace::Pace;
pub use retry_after::kept;
