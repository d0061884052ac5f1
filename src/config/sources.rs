//! Where configuration comes from. The only file that reads the environment and the file
//! of configuration; it judges nothing, so that everything else is a function of a value.

use std::collections::BTreeMap;

use clap::ArgMatches;

use super::{keys::KEYS, objects::is_about_clouds};

/// What the variables of this program begin with.
pub(super) const PREFIX: &str = "HINDSIGHT_";

/// The variable that names the file.
pub(super) const CONFIG_VARIABLE: &str = "HINDSIGHT_CONFIG";

/// Everything that was said, before any of it is judged. Empty means defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file of configuration, if one was named.
    pub file: Option<File>,
    /// Environment variables; those that do not begin with `HINDSIGHT_` are not looked at, but for
    /// those that say how a bucket is reached.
    pub env: BTreeMap<String, String>,
    /// Texts of flags by the name of their key.
    pub flags: BTreeMap<String, String>,
}

/// A file of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As it was given.
    pub path: String,
    /// Its text, or why it could not be read.
    pub text: Result<String, String>,
}

impl Sources {
    /// Reads the environment of this process and the file named by `--config` or
    /// `HINDSIGHT_CONFIG`, and takes the flags that [`super::flags`] made.
    ///
    /// Never fails: what could not be read is a value that [`super::Config::load`] reports
    /// together with everything else.
    #[must_use]
    pub fn gather(matches: &ArgMatches) -> Self {
        let env: BTreeMap<_, _> = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .filter(|(name, _)| name.starts_with(PREFIX) || is_about_clouds(name))
            .collect();
        let flags = KEYS
            .iter()
            .filter_map(|key| Some((key.name.to_owned(), text_of(matches, key.name)?)))
            .collect();
        let path = text_of(matches, "config").or_else(|| env.get(CONFIG_VARIABLE).cloned());
        Self {
            file: path.map(File::read),
            env,
            flags,
        }
    }
}

impl File {
    fn read(path: String) -> Self {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        Self { path, text }
    }
}

/// The text of an argument; `None` also for a command that has no such argument.
fn text_of(matches: &ArgMatches, id: &str) -> Option<String> {
    matches.try_get_one::<String>(id).ok().flatten().cloned()
}
