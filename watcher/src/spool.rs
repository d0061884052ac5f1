//! Last states of runs on disk, while the server is unavailable: what is deleted from the cluster is
//! then only known here, and must survive the end of the watcher. Lines of logs are beside them, in [`LineSpool`].
//!
//! One file for each run, named by the SHA-256 of its bytes, so that a damaged one is noticed.
//! A file counts once it and its directory are synced. Nothing here knows what a run is about;
//! all calls block.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use hindsight_run::View;
use hindsight_run::json;

use crate::{content::Digest, ledger::Uid};
use index::{Index, Inserted, Kept};
pub(crate) use lines::{FileId, LineSpool};

/// Where what cannot be read is put.
const ASIDE: &str = "corrupt";
/// Says that a watcher uses the directory.
const LOCK: &str = "lock";

/// Why nothing can be spooled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system does not let us.
    #[error("`{}` cannot be used to spool runs; --spool wants a directory that is writable", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file of a state cannot be read now. It may be a moment later.
    #[error("`{}` cannot be read", path.display())]
    Read {
        /// The file, in the directory that --spool names.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Another watcher uses the directory.
    #[error("`{}` is in use by another watcher; give each its own --spool", path.display())]
    InUse {
        /// The directory that --spool names.
        path: PathBuf,
    },
    /// It holds as much as it may.
    #[error("more than {limit} bytes would be spooled; raise --spool-bytes")]
    Full {
        /// The most bytes that the spool may hold, as --spool-bytes says.
        limit: u64,
    },
}

/// The directory, while it is in use.
#[derive(Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    limit: u64,
    index: Mutex<Index>,
    lines: LineSpool,
    /// A state was written.
    written: Condvar,
    /// Held for as long as this lives.
    _lock: File,
}

impl Spool {
    /// Opens a directory, and makes it if need be. What is damaged in it is moved aside and said. States
    /// are read one at a time, because those of a long outage may be more than fits into memory.
    ///
    /// # Errors
    /// If it cannot be read or written, or another watcher uses it.
    pub(crate) fn open(dir: PathBuf, limit: u64) -> Result<Self, Error> {
        let refuse = |source| Error::Io {
            path: dir.clone(),
            source,
        };
        fs::create_dir_all(&dir).map_err(refuse)?;
        let lock = File::create(dir.join(LOCK)).map_err(refuse)?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => Error::InUse { path: dir.clone() },
            fs::TryLockError::Error(source) => refuse(source),
        })?;
        let mut index = Index::default();
        for file in fs::read_dir(&dir).map_err(refuse)? {
            let path = file.map_err(refuse)?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if [LOCK, ASIDE, lines::DIR].contains(&&*name) {
                continue;
            }
            if name.starts_with('.') {
                // It was being written at the end of the last watcher.
                fs::remove_file(&path).map_err(refuse)?;
                continue;
            }
            let bytes = fs::read(&path).map_err(refuse)?;
            let Some((uid, state)) = read(&name, &bytes) else {
                set_aside(&dir, &path).map_err(refuse)?;
                continue;
            };
            let kept = Kept {
                name,
                size: bytes.len() as u64,
                version: version(&state),
                digest: Digest::of(&state),
            };
            match index.insert(uid, kept) {
                Inserted::Outdated => fs::remove_file(&path).map_err(refuse)?,
                Inserted::Newest(Some(old)) => {
                    fs::remove_file(dir.join(old.name)).map_err(refuse)?;
                }
                Inserted::Newest(None) => {}
            }
        }
        let lines = LineSpool::open(&dir, limit).map_err(refuse)?;
        Ok(Self {
            dir,
            limit,
            index: Mutex::new(index),
            lines,
            written: Condvar::new(),
            _lock: lock,
        })
    }

    /// Keeps the state of a run, in place of an older one. When it returns, that is durable.
    ///
    /// # Errors
    /// If there is no room, or the system does not let us.
    pub(crate) fn put(&self, uid: &Uid, state: &Value, bytes: &[u8]) -> Result<(), Error> {
        let kept = Kept {
            name: name(bytes),
            size: bytes.len() as u64,
            version: version(state),
            digest: Digest::of(state),
        };
        let mut index = self.lock();
        while index.writing.contains(uid) {
            index = self
                .written
                .wait(index)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let known = index.files.get(uid);
        if known.is_some_and(|known| known.version >= kept.version) {
            return Ok(());
        }
        let wanted = index.bytes.saturating_add(kept.size);
        if wanted > self.limit {
            return Err(Error::Full { limit: self.limit });
        }
        index.bytes = wanted;
        index.writing.insert(uid.clone());
        drop(index);
        let written = self.write(&kept.name, bytes);
        let mut index = self.lock();
        index.bytes -= kept.size;
        index.writing.remove(uid);
        self.written.notify_all();
        written.map_err(|source| Error::Io {
            path: self.dir.clone(),
            source,
        })?;
        let name = kept.name.clone();
        let outdated = match index.insert(uid.clone(), kept) {
            Inserted::Newest(old) => old.map(|old| old.name),
            Inserted::Outdated => Some(name),
        };
        drop(index);
        outdated.iter().for_each(|name| self.unlink(name));
        Ok(())
    }

    /// The state that is kept of a run; none if its file is damaged, or somebody took it away.
    ///
    /// # Errors
    /// If the system does not let us read it. It may a moment later.
    pub(crate) fn get(&self, uid: &Uid) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.kept(uid)?.map(|(bytes, _)| bytes))
    }

    /// What [`Self::get`] gives, as an object.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn state(&self, uid: &Uid) -> Result<Option<Value>, Error> {
        Ok(self.kept(uid)?.map(|(_, state)| state))
    }

    fn kept(&self, uid: &Uid) -> Result<Option<(Vec<u8>, Value)>, Error> {
        let Some(name) = self.lock().files.get(uid).map(|kept| kept.name.clone()) else {
            return Ok(None);
        };
        let path = self.dir.join(&name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                warn!("`{}` is not there any more", path.display());
                return Ok(None);
            }
            Err(source) => return Err(Error::Read { path, source }),
        };
        match read(&name, &bytes) {
            Some((_, state)) => Ok(Some((bytes, state))),
            None => {
                if let Err(error) = set_aside(&self.dir, &path) {
                    warn!("`{}` cannot be moved aside: {error}", path.display());
                }
                self.lock().remove(uid);
                Ok(None)
            }
        }
    }

    /// Whether a state of a run is kept.
    pub(crate) fn has(&self, uid: &Uid) -> bool {
        self.lock().files.contains_key(uid)
    }

    /// The runs whose states are kept.
    pub(crate) fn uids(&self) -> Vec<Uid> {
        self.lock().files.keys().cloned().collect()
    }

    /// A run is stored, or given up. That its file is gone need not be durable: storing it
    /// again changes nothing.
    pub(crate) fn remove(&self, uid: &Uid) {
        let removed = self.lock().remove(uid);
        if let Some(kept) = removed {
            self.unlink(&kept.name);
        }
    }

    /// The server holds a run in a state of this digest and version. What is kept of it is removed,
    /// unless that is a later state.
    pub(crate) fn remove_stored(&self, uid: &Uid, digest: Digest, version: u64) {
        let mut index = self.lock();
        let known = index.files.get(uid);
        if !known.is_some_and(|known| known.is_stored(digest, version)) {
            return;
        }
        let removed = index.remove(uid);
        drop(index);
        if let Some(kept) = removed {
            self.unlink(&kept.name);
        }
    }

    /// Lines of logs in the same directory.
    pub(crate) fn lines(&self) -> &LineSpool {
        &self.lines
    }

    /// How many runs are kept, and how many bytes that takes.
    pub(crate) fn size(&self) -> (usize, u64) {
        let index = self.lock();
        (index.files.len(), index.bytes)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.dir.join(format!(".{name}"));
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&unfinished, self.dir.join(name))?;
        File::open(&self.dir)?.sync_all()
    }

    fn unlink(&self, name: &str) {
        let path = self.dir.join(name);
        if let Err(error) = fs::remove_file(&path) {
            warn!("`{}` cannot be removed: {error}", path.display());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(69);
    for byte in Sha256::digest(bytes) {
        write!(name, "{byte:02x}").expect("a string can be written to");
    }
    name + ".json"
}

/// The state in a file, unless it is damaged.
fn read(file: &str, bytes: &[u8]) -> Option<(Uid, Value)> {
    if name(bytes) != file {
        return None;
    }
    let state = json::parse(bytes).ok()?;
    let uid = Uid::from(View::new(&state).uid()?);
    Some((uid, state))
}

/// Versions of one cluster are numbers that grow. One that is none is older than all.
pub(crate) fn version(state: &Value) -> u64 {
    let version = View::new(state).resource_version();
    version.and_then(|v| v.parse().ok()).unwrap_or_default()
}

fn set_aside(dir: &Path, path: &Path) -> io::Result<()> {
    let aside = dir.join(ASIDE);
    fs::create_dir_all(&aside)?;
    let to = aside.join(path.file_name().unwrap_or_default());
    fs::rename(path, &to)?;
    warn!(
        "`{}` is damaged and is not stored; it is now `{}`",
        path.display(),
        to.display()
    );
    Ok(())
}

mod index;
mod lines;
#[cfg(test)]
mod tests;
