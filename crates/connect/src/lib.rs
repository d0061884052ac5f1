//! The server that a command asks: named by a flag, a variable or a context, with what is shown to it.

pub mod contexts;
mod failure;

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use clap::{ArgMatches, Args};
use hindsight_client::{Client, Options};

use hindsight_runtime::error::report;

use crate::contexts::{Context, Contexts};

pub use failure::Failure;

/// The server of who names none.
const SERVER: &str = "http://127.0.0.1:8080";

/// What flags begin with, unless a program adds more.
pub const FLAGS: &str = "--";

/// Which server to ask.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Connect {
    /// The server to ask; by default that of the context, or http://127.0.0.1:8080
    #[arg(long, value_name = "URL", env = "HINDSIGHT_SERVER")]
    server: Option<String>,

    /// Context with server, credentials and namespace; the current one by default if no server is given
    #[arg(long, value_name = "NAME", env = "HINDSIGHT_CONTEXT")]
    context: Option<String>,

    /// The context, once it was looked up.
    #[arg(skip)]
    found: OnceLock<Context>,

    /// What the flags begin with, for messages.
    #[arg(skip = FLAGS)]
    flags: &'static str,

    #[command(flatten)]
    credentials: Credentials,

    /// Timeout of a call, such as `5s` or `2m`; a bare number is in seconds
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    timeout: Duration,
}

/// What is shown to a server, and what it has to show.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Credentials {
    /// Bearer token; other users of this machine can read it from the command line,
    /// so prefer a file
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

    /// Private key of the client certificate (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "HINDSIGHT_CLIENT_KEY",
        requires = "client_cert"
    )]
    client_key: Option<PathBuf>,
}

/// A time in seconds or minutes, above zero, as `--timeout` takes it.
///
/// # Errors
/// If it is none, with what is wanted.
pub fn timeout(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds = number.parse().ok().and_then(|n: u64| n.checked_mul(unit));
    match seconds {
        Some(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err("want seconds or minutes above zero, such as `5s` or `2m`".to_owned()),
    }
}

impl Connect {
    /// The same for a program that has renamed the flags to begin with `flags`.
    #[must_use]
    pub fn with_flags(self, flags: &'static str) -> Self {
        Self { flags, ..self }
    }

    /// How long one call may take.
    pub fn deadline(&self) -> Duration {
        self.timeout
    }

    /// A client of the server. It fails if there is no such context, or if a file cannot be read or
    /// does not hold what it is for.
    pub fn client(&self) -> Result<Client, Failure> {
        let credentials = self.credentials.or_of(self.context()?);
        credentials.client(self.server(), self.deadline(), self.flags)
    }

    /// A client of the same server that shows this token, or none, in the place of its own. It fails as
    /// [`Connect::client`] does.
    pub fn client_for(&self, token: Option<String>) -> Result<Client, Failure> {
        let credentials = Credentials {
            token,
            token_file: None,
            ..self.credentials.or_of(self.context()?)
        };
        credentials.client(self.server(), self.deadline(), self.flags)
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> Result<Option<&str>, Failure> {
        Ok(self.context()?.namespace.as_deref())
    }

    fn context(&self) -> Result<&Context, Failure> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let (server, name) = (self.given(), self.context.as_deref());
        let context = in_effect(server.is_some(), name)?.unwrap_or_default();
        same_server(server, name, &context)?;
        Ok(self.found.get_or_init(|| context))
    }

    /// The address of the server, once a client was made.
    pub fn server(&self) -> &str {
        let of_context = || self.found.get()?.server.as_deref();
        self.given().or_else(of_context).unwrap_or(SERVER)
    }

    /// The server that is named. A variable without a value names none.
    fn given(&self) -> Option<&str> {
        self.server.as_deref().filter(|server| !server.is_empty())
    }

    /// What the server answered.
    pub fn failure(&self, status: &tonic::Status) -> Failure {
        Failure::status(self.server(), status, self.flags)
    }
}

/// The context of this name, or the current one. A server that is given by itself is asked without a
/// context, so that no server gets the credentials of another.
fn in_effect(has_server: bool, name: Option<&str>) -> Result<Option<Context>, Failure> {
    if has_server && name.is_none() {
        return Ok(None);
    }
    Ok(Contexts::load()?.get(name)?.cloned())
}

/// Fails if a server is given that is not that of the context, which has credentials for its own.
fn same_server(given: Option<&str>, name: Option<&str>, context: &Context) -> Result<(), Failure> {
    let of_context = context.server.as_deref();
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    match (given, name, of_context) {
        (Some(given), Some(name), Some(own)) if plain(given) != plain(own) => {
            Err(Failure::usage(format!(
                "context `{name}` is of {own}, not of {given}; name a server or a context, not both"
            )))
        }
        _ => Ok(()),
    }
}

/// The namespace of the context that a command line means, for commands that have one.
pub fn namespace(matches: &ArgMatches) -> Result<Option<String>, Failure> {
    let mut command = matches;
    while let Some((_, below)) = command.subcommand() {
        command = below;
    }
    let text = |id| command.try_get_one::<String>(id).ok().flatten();
    if text("namespace").is_none() || command.try_contains_id("context").is_err() {
        return Ok(None);
    }
    let context = text("context").map(String::as_str);
    let context = in_effect(text("server").is_some(), context)?;
    Ok(context.and_then(|context| context.namespace))
}

impl Credentials {
    /// Those in files: a bearer token, and authorities of the server.
    pub fn of_files(token_file: Option<PathBuf>, server_ca: Option<PathBuf>) -> Self {
        Self {
            token: None,
            token_file,
            server_ca,
            client_cert: None,
            client_key: None,
        }
    }

    /// Those of a context.
    pub fn of(context: &Context) -> Self {
        Self {
            token: context.token.as_ref().map(|token| token.0.clone()),
            token_file: context.token_file.clone(),
            server_ca: context.server_ca.clone(),
            client_cert: context.client_cert.clone(),
            client_key: context.client_key.clone(),
        }
    }

    /// These, and those of a context where there are none.
    fn or_of(&self, context: &Context) -> Self {
        let more = Self::of(context);
        let has_token = self.token.is_some() || self.token_file.is_some();
        let has_certificate = self.client_cert.is_some();
        let token = if has_token { self } else { &more };
        let certificate = if has_certificate { self } else { &more };
        Self {
            token: token.token.clone(),
            token_file: token.token_file.clone(),
            server_ca: self.server_ca.clone().or(more.server_ca.clone()),
            client_cert: certificate.client_cert.clone(),
            client_key: certificate.client_key.clone(),
        }
    }

    /// A client of `server` that shows these credentials, which flags that begin with `flags` named. It fails
    /// if a file cannot be read or does not hold what it is for.
    pub fn client(&self, server: &str, deadline: Duration, flags: &str) -> Result<Client, Failure> {
        let read = |path: &Option<PathBuf>, flag| {
            let read = |path: &PathBuf| contents(path, &format!("{flags}{flag}"));
            path.as_ref().map(read).transpose()
        };
        let token = match read(&self.token_file, "token-file")? {
            None => self.token.clone(),
            Some(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
        };
        let certificate = read(&self.client_cert, "client-cert")?;
        let options = Options {
            server: server.to_owned(),
            token,
            deadline,
            authorities: read(&self.server_ca, "server-ca")?,
            identity: certificate.zip(read(&self.client_key, "client-key")?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_in_seconds_or_minutes() {
        for (text, seconds) in [("5", 5), ("5s", 5), ("2m", 120)] {
            assert_eq!(timeout(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in [
            "0",
            "0s",
            "",
            "m",
            "-1",
            "1h",
            "99999999999999999999",
            "999999999999999999m",
        ] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }
}
