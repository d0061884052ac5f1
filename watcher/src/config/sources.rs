//! Where configuration comes from. The only file that reads the environment.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
};

use super::keys::PREFIX;

/// All that was said, before anybody looks at what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file, with its text.
    pub file: Option<(PathBuf, String)>,
    /// Variables that begin with `HINDSIGHT_WATCHER_`.
    pub env: BTreeMap<String, String>,
    /// Flags, by the name of their key.
    pub flags: BTreeMap<&'static str, String>,
    /// What stands before the name of its key in a flag.
    pub prefix: &'static str,
}

/// Why the file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the configuration file `{}` cannot be read", path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A name that no other process has: that of the host, and digits by chance.
pub(super) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "watcher",
        host => host,
    };
    // A new RandomState differs from all others; that is chance enough.
    let chance = RandomState::new().build_hasher().finish();
    format!("{host}_{chance:016x}")
}

impl Sources {
    /// Reads the environment, and the file if one was named, by `--config` or by
    /// `HINDSIGHT_WATCHER_CONFIG`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn gather(
        flags: BTreeMap<&'static str, String>,
        file: Option<&Path>,
    ) -> Result<Self, FileError> {
        let mut env: BTreeMap<String, String> = std::env::vars()
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        let from_env = env.remove(&format!("{PREFIX}CONFIG")).map(PathBuf::from);
        let path = file.map(Path::to_path_buf).or(from_env);
        let file = match path {
            None => None,
            Some(path) => match std::fs::read_to_string(&path) {
                Ok(text) => Some((path, text)),
                Err(source) => return Err(FileError { path, source }),
            },
        };
        Ok(Self {
            file,
            env,
            flags,
            prefix: "",
        })
    }
}
