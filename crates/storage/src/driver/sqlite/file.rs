//! The database's file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use crate::{driver::options::Synchronous, seam::Error};

/// How long a connection waits for another process to finish writing.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// How many rows the thread of a connection may be ahead of whoever reads them. Waking one
/// another for each row takes longer than reading it.
const ROWS_AHEAD: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct File {
    path: PathBuf,
    synchronous: SqliteSynchronous,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path.display())
    }
}

impl File {
    /// The file at `path`.
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            synchronous: SqliteSynchronous::Full,
        }
    }

    /// The same file, whose writes wait for something else.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if SQLite does not know it.
    pub(super) fn synchronous(mut self, wanted: Synchronous) -> Result<Self, Error> {
        self.synchronous = match wanted {
            Synchronous::Durable | Synchronous::Named("full") => SqliteSynchronous::Full,
            Synchronous::Named("extra") => SqliteSynchronous::Extra,
            Synchronous::Named("normal") => SqliteSynchronous::Normal,
            Synchronous::Named("off") => SqliteSynchronous::Off,
            Synchronous::Named(other) => {
                return Err(Error::Incompatible(format!(
                    "{self} knows no synchronous `{other}`; want extra, full, normal or off"
                )));
            }
        };
        Ok(self)
    }

    /// How acknowledged writes may be lost.
    pub(super) fn weak(&self) -> Vec<String> {
        match self.synchronous {
            SqliteSynchronous::Full | SqliteSynchronous::Extra => Vec::new(),
            SqliteSynchronous::Normal => vec![
                "synchronous is `normal`: writes that were acknowledged are lost if the machine \
                 crashes before the log is synced"
                    .to_owned(),
            ],
            SqliteSynchronous::Off => vec![
                "synchronous is `off`: if the machine crashes, writes that were acknowledged are \
                 lost, and the file may be damaged"
                    .to_owned(),
            ],
        }
    }

    /// The file that a user named.
    pub(super) fn named(path: &Path) -> Self {
        // SQLite reads a name that begins with `file:` as a URI, which would be another file.
        if path.as_os_str().as_encoded_bytes().starts_with(b"file:") {
            Self::at(&Path::new(".").join(path))
        } else {
            Self::at(path)
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that SQLite keeps beside it under this ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    /// Options that change nothing of the file by themselves.
    pub(super) fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .busy_timeout(BUSY)
            .synchronous(self.synchronous)
            .foreign_keys(true)
            .row_buffer_size(ROWS_AHEAD)
            .disable_statement_logging()
    }

    /// Whether there is anything in the file.
    ///
    /// # Errors
    /// If it cannot be a database that is written to.
    pub(super) fn has_content(&self) -> Result<bool, Error> {
        let unfit = |why: &str| Err(Error::Incompatible(format!("{self} {why}")));
        match std::fs::metadata(&self.path) {
            Ok(file) if file.is_dir() => unfit("is a directory; give a file, `sqlite:PATH`"),
            Ok(file) if file.permissions().readonly() => {
                unfit("is read-only; let hindsight write to it")
            }
            Ok(file) => Ok(file.len() > 0),
            Err(e) if e.kind() == io::ErrorKind::NotFound => match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                    unfit(&format!(
                        "cannot be made: there is no directory `{}`",
                        parent.display()
                    ))
                }
                _ => Ok(false),
            },
            Err(e) => unfit(&format!("cannot be read: {e}")),
        }
    }
}
