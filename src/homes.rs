//! Systems that keep logs which are not stored here: Loki, and objects that a collector of logs or Tekton Results
//! wrote. Each is asked for the log of one run at a time.

mod loki;
mod objects;

pub use loki::{Loki, LokiSettings};
pub use objects::{ObjectFormat, ObjectLogs};

use crate::service::{AskedLog, HomeError, LogHome, Spool};
