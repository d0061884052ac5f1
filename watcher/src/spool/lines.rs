//! Lines of logs on disk that were read and are not stored: a pod that goes takes its log with it, so that they are
//! nowhere else if the watcher ends at once.
//!
//! Calls to the server, one after the other, in files that are removed once the server has all of them. They are
//! not synced: they outlive the process, but not the failure of the node. All calls block.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use hindsight_proto::{Message as _, v1::AppendLogRequest};
use hindsight_runtime::error::report;
use tracing::{info, warn};

use super::Error;

/// The directory in that of the spool.
pub(super) const DIR: &str = "logs";

/// A file that has so many bytes is not appended to.
const FILE: u64 = 4 << 20;

/// The most bytes in all. Less than 16 MiB wait to be sent at once, but a line that waits keeps its file.
const MOST: u64 = 256 << 20;

/// Bytes before each call: how many it has, and their CRC-32.
const HEAD: usize = 8;

/// Which file has a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(u64);

#[derive(Debug)]
pub(crate) struct LineSpool {
    dir: PathBuf,
    most: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    files: BTreeMap<FileId, Held>,
    /// The file that is appended to.
    open: Option<(FileId, File)>,
    is_failing: bool,
}

#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    /// Calls that the server has not confirmed.
    calls: usize,
}

impl LineSpool {
    /// Opens the directory in that of the spool, and makes it if need be.
    pub(super) fn open(spool: &Path, most: u64) -> io::Result<Self> {
        let dir = spool.join(DIR);
        fs::create_dir_all(&dir)?;
        let mut state = State::default();
        for file in fs::read_dir(&dir)? {
            let file = file?;
            let Some(id) = id_of(&file.file_name().to_string_lossy()) else {
                continue;
            };
            state.next = state.next.max(id.0 + 1);
            let bytes = file.metadata()?.len();
            state.files.insert(id, Held { bytes, calls: 0 });
        }
        Ok(Self {
            dir,
            most: most.min(MOST),
            state: Mutex::new(state),
        })
    }

    /// Keeps a call that will be made. `None` if that does not work, which is said once.
    pub(crate) fn put(&self, call: &AppendLogRequest) -> Option<FileId> {
        let mut state = self.state();
        let written = self.write(&mut state, &framed(call));
        match &written {
            Ok(_) if std::mem::take(&mut state.is_failing) => {
                info!("lines of logs are spooled again");
            }
            Err(error) if !std::mem::replace(&mut state.is_failing, true) => {
                let error = report(error);
                warn!("lines of logs are in memory only until they are stored: {error}");
            }
            _ => {}
        }
        written.ok()
    }

    fn write(&self, state: &mut State, bytes: &[u8]) -> Result<FileId, Error> {
        if size(state).saturating_add(bytes.len() as u64) > self.most {
            return Err(Error::Full { limit: self.most });
        }
        let refuse = |source| Error::Io {
            path: self.dir.clone(),
            source,
        };
        let (id, mut file) = match state.open.take() {
            Some(open) => open,
            None => {
                let id = FileId(state.next);
                let file = File::options()
                    .append(true)
                    .create_new(true)
                    .open(self.path(id))
                    .map_err(refuse)?;
                state.next += 1;
                (id, file)
            }
        };
        let written = file.write_all(bytes);
        let held = state.files.entry(id).or_default();
        held.bytes += bytes.len() as u64;
        match written {
            Ok(()) => held.calls += 1,
            // After a part of a call nothing can be read: the next one begins a file.
            Err(source) => {
                if held.calls == 0 {
                    self.remove(state, id);
                }
                return Err(refuse(source));
            }
        }
        if held.bytes < FILE {
            state.open = Some((id, file));
        }
        Ok(id)
    }

    /// The server has what was kept in these files, once for each call, or it is given up.
    pub(crate) fn release(&self, ids: impl IntoIterator<Item = FileId>) {
        let mut state = self.state();
        for id in ids {
            let Some(held) = state.files.get_mut(&id) else {
                continue;
            };
            held.calls -= 1;
            if held.calls > 0 {
                continue;
            }
            match &state.open {
                Some((open, file)) if *open == id => match file.set_len(0) {
                    Ok(()) => {
                        state.files.remove(&id);
                    }
                    Err(error) => warn!("`{}`: {error}", self.path(id).display()),
                },
                _ => self.remove(&mut state, id),
            }
        }
    }

    /// The files there are, the oldest first. Nothing is appended to them any more.
    pub(crate) fn left(&self) -> Vec<FileId> {
        let mut state = self.state();
        if let Some((id, _)) = state.open.take() {
            // It may be empty, and was not counted then.
            state.files.entry(id).or_default();
        }
        state.files.keys().copied().collect()
    }

    /// The calls that a file has, up to the first that is not whole.
    pub(crate) fn read(&self, id: FileId) -> Vec<AppendLogRequest> {
        let path = self.path(id);
        let bytes = fs::read(&path).unwrap_or_else(|error| {
            warn!("`{}` cannot be read: {error}", path.display());
            Vec::new()
        });
        let mut rest = bytes.as_slice();
        std::iter::from_fn(|| next(&mut rest)).collect()
    }

    /// A file is not needed any more.
    pub(crate) fn drop_file(&self, id: FileId) {
        self.remove(&mut self.state(), id);
    }

    /// How many bytes are kept.
    pub(crate) fn size(&self) -> u64 {
        size(&self.state())
    }

    fn remove(&self, state: &mut State, id: FileId) {
        state.files.remove(&id);
        let path = self.path(id);
        if let Err(error) = fs::remove_file(&path) {
            warn!("`{}` cannot be removed: {error}", path.display());
        }
    }

    fn path(&self, id: FileId) -> PathBuf {
        self.dir.join(format!("{:016x}", id.0))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(state: &State) -> u64 {
    state.files.values().map(|held| held.bytes).sum()
}

fn id_of(name: &str) -> Option<FileId> {
    u64::from_str_radix(name, 16).ok().map(FileId)
}

fn framed(call: &AppendLogRequest) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    call.encode(&mut bytes).expect("a vector grows");
    let size = u32::try_from(bytes.len() - HEAD).unwrap_or(u32::MAX);
    let sum = crc32fast::hash(&bytes[HEAD..]);
    bytes[..4].copy_from_slice(&size.to_le_bytes());
    bytes[4..HEAD].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The next call, if it is whole; what follows it is left in `rest`.
fn next(rest: &mut &[u8]) -> Option<AppendLogRequest> {
    let (size, after) = rest.split_first_chunk()?;
    let (sum, after) = after.split_first_chunk()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    let (call, after) = after.split_at_checked(size)?;
    let is_whole = crc32fast::hash(call) == u32::from_le_bytes(*sum);
    let call = AppendLogRequest::decode(call).ok().filter(|_| is_whole)?;
    *rest = after;
    // Zeros are what a file may have that was not written to its end.
    (size > 0).then_some(call)
}

#[cfg(test)]
mod tests;
