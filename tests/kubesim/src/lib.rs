//! A stateful simulator of the Kubernetes API, for tests and demos.
//!
//! [`Sim`] is a cluster: [`Sim::client`] reaches it in process, [`Sim::listen`] on a socket.
//! It keeps state and enforces the server's rules; it knows nothing of the programs tested on it.

mod access;
mod answers;
mod apply;
mod calls;
mod chores;
mod clock;
pub mod contract;
mod controllers;
mod deletion;
mod discovery;
mod events;
mod faults;
mod fields;
mod history;
mod job_runner;
mod jobs;
mod kinds;
mod lifecycle;
mod limits;
mod list;
mod listen;
mod load;
mod log_reader;
mod logs;
mod objects;
mod patch;
mod pipeline_runner;
mod play;
mod policy;
mod rbac;
mod refusal;
mod requests;
mod reviews;
mod route;
mod rules;
mod select;
mod service;
mod shared;
mod sim;
mod snapshot;
mod steps;
mod task_runner;
mod tls;
mod watch;
mod webhook;
mod world;

pub use answers::SimBody;
pub use calls::{Call, Calls};
pub use clock::{Clock, ManualClock, SystemClock};
pub use faults::{Fault, Faults};
pub use job_runner::{JobRunner, Jobs};
pub use kinds::Crd;
pub use listen::Listening;
pub use load::LoadError;
pub use pipeline_runner::PipelineRunner;
pub use play::{Finished, Mix, Outcome, Plan, Player, Playing, Progress};
pub use policy::Policy;
pub use refusal::Refusal;
pub use service::SimService;
pub use shared::{KUBE_SYSTEM_UID, Settings};
pub use sim::Sim;
pub use task_runner::TaskRunner;
