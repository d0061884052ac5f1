//! Reaching the server that a command asks.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use hindsight_proto::client::{Client, Options};

use super::failure::Failure;
use crate::error::report;

/// Which server to ask.
#[derive(Debug, Args)]
pub(super) struct Connect {
    /// The server to ask
    #[arg(
        long,
        value_name = "URL",
        env = "HINDSIGHT_SERVER",
        default_value = "http://127.0.0.1:8080",
        help_heading = "Server"
    )]
    pub(super) server: String,

    /// Bearer token to show to the server
    #[arg(
        long,
        value_name = "TOKEN",
        env = "HINDSIGHT_TOKEN",
        hide_env_values = true,
        help_heading = "Server"
    )]
    token: Option<String>,

    /// PEM file of authorities that may have signed the server's certificate, besides the system's
    #[arg(
        long,
        value_name = "FILE",
        env = "HINDSIGHT_SERVER_CA",
        help_heading = "Server"
    )]
    server_ca: Option<PathBuf>,

    /// Seconds that one call may take
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "Server"
    )]
    timeout: u64,
}

impl Connect {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let authorities = self.server_ca.as_ref().map(|path| {
            let why = |error| {
                format!(
                    "`{}` cannot be read: {error}; see --server-ca",
                    path.display()
                )
            };
            std::fs::read(path).map_err(|error| Failure::usage(why(error)))
        });
        let options = Options {
            server: self.server.clone(),
            token: self.token.clone(),
            deadline: Duration::from_secs(self.timeout),
            authorities: authorities.transpose()?,
        };
        Client::new(&options).map_err(|error| Failure::usage(report(&error)))
    }

    pub(super) fn failure(&self, status: &tonic::Status) -> Failure {
        Failure::status(&self.server, status)
    }
}
