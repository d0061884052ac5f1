//! SQL over the history: tables over records of a server's database and over Parquet files of its archive, for one
//! statement, a shell, or clients of Arrow Flight SQL (docs/sql.md).
//!
//! Nothing here decides who may read what: rows of the database, and the list of files of the archive, come from the
//! server, for the caller's own token (docs/adr/0063).

pub mod args;
mod bounds;
pub mod cluster;
mod cold;
mod columns;
pub mod command;
mod error;
mod flight;
mod functions;
mod hot;
mod output;
mod provider;
mod repl;
mod scope;
mod session;
mod source;

pub use error::Error;
pub use flight::{Listening, serve};
pub use output::Format;
pub use repl::{Runner, shell};
pub use scope::Scope;
pub use session::{Engine, Limits};
pub use source::{Files, Source};
