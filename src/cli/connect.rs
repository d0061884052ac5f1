//! Reaching the server that a command asks.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use hindsight_client::{Client, Options};

use super::failure::Failure;
use hindsight_runtime::error::report;

/// Which server to ask.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Connect {
    /// The server to ask
    #[arg(
        long,
        value_name = "URL",
        env = "HINDSIGHT_SERVER",
        default_value = "http://127.0.0.1:8080"
    )]
    pub(super) server: String,

    #[command(flatten)]
    credentials: Credentials,

    /// Timeout of a call, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    timeout: u64,
}

/// What is shown to a server, and what it has to show.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Credentials {
    /// Bearer token; other users of this machine can read it from the command line, so prefer
    /// --token-file
    #[arg(
        long,
        value_name = "TOKEN",
        env = "HINDSIGHT_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,

    /// File with the bearer token
    #[arg(
        long,
        value_name = "FILE",
        env = "HINDSIGHT_TOKEN_FILE",
        conflicts_with = "token"
    )]
    token_file: Option<PathBuf>,

    /// Extra CA certificates (PEM) to trust, besides those of the system
    #[arg(long, value_name = "FILE", env = "HINDSIGHT_SERVER_CA")]
    server_ca: Option<PathBuf>,

    /// Client certificate (PEM), for servers that want one
    #[arg(
        long,
        value_name = "FILE",
        env = "HINDSIGHT_CLIENT_CERT",
        requires = "client_key"
    )]
    client_cert: Option<PathBuf>,

    /// Private key of --client-cert (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "HINDSIGHT_CLIENT_KEY",
        requires = "client_cert"
    )]
    client_key: Option<PathBuf>,
}

impl Connect {
    /// How long one call may take.
    pub(super) fn deadline(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    pub(super) fn client(&self) -> Result<Client, Failure> {
        self.credentials.client(&self.server, self.deadline())
    }

    pub(super) fn failure(&self, status: &tonic::Status) -> Failure {
        Failure::status(&self.server, status)
    }
}

impl Credentials {
    /// Those in files: a bearer token, and authorities of the server.
    pub(super) fn of_files(token_file: Option<PathBuf>, server_ca: Option<PathBuf>) -> Self {
        Self {
            token: None,
            token_file,
            server_ca,
            client_cert: None,
            client_key: None,
        }
    }

    /// A client of `server` that shows these credentials.
    ///
    /// # Errors
    /// If a file cannot be read, or holds something else.
    pub(super) fn client(&self, server: &str, deadline: Duration) -> Result<Client, Failure> {
        let read = |path: &Option<PathBuf>, flag| {
            let read = |path: &PathBuf| contents(path, flag);
            path.as_ref().map(read).transpose()
        };
        let token = match read(&self.token_file, "--token-file")? {
            None => self.token.clone(),
            Some(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
        };
        let certificate = read(&self.client_cert, "--client-cert")?;
        let options = Options {
            server: server.to_owned(),
            token,
            deadline,
            authorities: read(&self.server_ca, "--server-ca")?,
            identity: certificate.zip(read(&self.client_key, "--client-key")?),
        };
        Client::new(&options).map_err(|error| Failure::usage(report(&error)))
    }
}

fn contents(path: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| {
        Failure::usage(format!(
            "`{}` cannot be read: {e}; see {flag}",
            path.display()
        ))
    })
}
