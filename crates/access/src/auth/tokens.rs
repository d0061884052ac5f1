//! Access by a file of users, for sites without a cluster. The file holds digests of tokens,
//! never tokens; it is read again when it changes.

mod file;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use self::file::Table;
use super::{Access, Authorizer, Caller, Credentials, Error, Grant};
use hindsight_runtime::error::report;

/// Why a file of users cannot be used. No text repeats what the file says of tokens.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not there, or not ours to read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// Configured path of the file of users.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It says something that makes no sense.
    #[error("`{}`: {why}", path.display())]
    Wrong {
        /// Configured path of the file of users.
        path: PathBuf,
        /// The mistake, with its line or the user that it concerns.
        why: String,
    },
}

/// Access by the users of a file.
pub struct Tokens {
    path: PathBuf,
    table: RwLock<Arc<Table>>,
    /// What was read last, or why nothing was; so that it is judged, and told, once.
    seen: Mutex<Result<String, String>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Reads the users of `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or any part of it makes no sense.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let text = read(path)?;
        let table = parse(path, &text)?;
        Ok(Self {
            path: path.to_owned(),
            table: RwLock::new(Arc::new(table)),
            seen: Mutex::new(Ok(text)),
        })
    }

    /// Reads the file again. What changed counts for the next call; a file that cannot be used
    /// is logged, and the users of before stay.
    pub fn reload(&self) {
        let read = read(&self.path);
        let now = match &read {
            Ok(text) => Ok(text.clone()),
            Err(error) => Err(report(error)),
        };
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return;
            }
            *seen = now;
        }
        match read.and_then(|text| parse(&self.path, &text)) {
            Ok(table) => {
                let users = table.users();
                let mut current = self.table.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(table);
                tracing::info!(path = %self.path.display(), users, "users reloaded");
            }
            Err(error) => {
                let error = report(&error);
                tracing::error!(error, "invalid users file; keeping the previous users");
            }
        }
    }

    fn decide(&self, credentials: &Credentials, access: &Access) -> Result<Arc<Caller>, Error> {
        if !credentials.acting_for.is_empty() {
            // To answer as the caller itself would give away what only the caller may see.
            return Err(Error::Impersonation("this server does not take them"));
        }
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        let mut refusal = Error::NoToken;
        for token in credentials.tried() {
            let answer = match table.user(&digest(token)) {
                None => Error::BadToken,
                Some(user) if user.may(access) => return Ok(Arc::clone(user.caller())),
                Some(user) => Error::Denied {
                    caller: Arc::clone(user.caller()),
                },
            };
            refusal = refusal.or(answer);
        }
        Err(refusal)
    }
}

#[async_trait]
impl Authorizer for Tokens {
    async fn identify(&self, credentials: &Credentials) -> Result<Arc<Caller>, Error> {
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        let known = |token: &str| {
            table
                .user(&digest(token))
                .map(|user| Arc::clone(user.caller()))
        };
        let found = credentials.tried().find_map(known);
        found.ok_or_else(|| credentials.unknown())
    }

    async fn authorize(&self, credentials: &Credentials, access: Access) -> Result<Grant, Error> {
        let caller = self.decide(credentials, &access)?;
        Ok(Grant::new(access, caller))
    }
}

/// What stands for `token` in a file of users: SHA-256, in hexadecimal digits.
#[must_use]
pub fn token_hash(token: &str) -> String {
    digest(token).iter().map(|b| format!("{b:02x}")).collect()
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn parse(path: &Path, text: &str) -> Result<Table, FileError> {
    Table::parse(text).map_err(|why| FileError::Wrong {
        path: path.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests;
