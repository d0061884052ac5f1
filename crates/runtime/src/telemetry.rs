//! What this program says about itself: log events and metrics.
//!
//! Metrics are values that are handed in, never globals, so that two servers in one test
//! share no counter. The one global is the log subscriber, set by [`init`] in `main`.

mod logging;
mod registry;
mod requests;

pub use self::{
    logging::{AlreadyLogging, BadFilter, BadFormat, LogFilter, LogFormat, LogLevel, init},
    registry::Registry,
    requests::{Ongoing, RequestMetrics},
};
