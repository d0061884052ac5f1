//! Ways to the server, made anew when the token in a file has changed.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hindsight_client as client;
use hindsight_client::{Batched, Client};
use tokio::time::Instant;

/// How long a token is used before its file is looked at again.
const TOKEN_AGE: Duration = Duration::from_secs(30);

/// The clients of one server.
#[derive(Debug, Clone)]
pub(super) struct Ways {
    pub(super) plain: Client,
    pub(super) batched: Batched,
}

impl From<Client> for Ways {
    fn from(plain: Client) -> Self {
        let batched = plain.batched();
        Self { plain, batched }
    }
}

/// Tokens of service accounts are replaced about every hour.
pub(super) struct Renewal {
    pub(super) client: Box<WithToken>,
    pub(super) path: PathBuf,
    pub(super) read: Mutex<(String, Instant)>,
}

/// Makes a client that uses a token.
type WithToken = dyn Fn(&str) -> Result<Client, client::Error> + Send + Sync;

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Renewal {
    /// A client with a newer token, if there is one. A file that cannot be read, or holds
    /// nonsense, leaves the token that is known; the server says if that is not enough.
    pub(super) fn newer(&self) -> Option<Client> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if known.1.elapsed() < TOKEN_AGE {
            return None;
        }
        known.1 = Instant::now();
        let token = read(&self.path).ok().filter(|token| *token != known.0)?;
        let client = (self.client)(&token).ok()?;
        known.0 = token;
        Some(client)
    }
}

pub(super) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}
