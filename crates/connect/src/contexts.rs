//! The file of contexts: servers that a person asks, by name.
//!
//! It is `hindsight/contexts.toml` in `$XDG_CONFIG_HOME`, or else in `~/.config`.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use hindsight_config::variable;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Name of a context that is made without one.
pub const USUAL: &str = "default";
/// Mode of the file: its owner's alone, because it may hold tokens.
const MODE: u32 = 0o600;
/// What a mode has for others than the owner.
const OTHERS: u32 = 0o077;

/// All contexts, and which of them is used where none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// Name of the one that is used where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The contexts by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// A server, and how it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// Base URL of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Namespace of commands that are given none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Bearer token that `hindsight login` stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// File with the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// File of authorities to trust besides those of the system, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ca: Option<PathBuf>,
    /// File of the client certificate, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert: Option<PathBuf>,
    /// File of the key of `client_cert`, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<PathBuf>,
}

/// A token, which no message shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(
    /// The secret itself.
    pub String,
);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Contexts {
    /// Reads the file; without one there are no contexts. It fails if the file cannot be read, is no
    /// such file, or holds a token and others may read it.
    pub fn load() -> Result<Self, Failure> {
        match path() {
            Some(path) => Self::read(&path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let said = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("`{}` cannot be read: {why}", path.display()))
        };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(|error| said(&error))?,
        };
        let contexts: Self = toml::from_str(&text).map_err(|error| said(&error.message()))?;
        let mode = fs::metadata(path).map_err(|error| said(&error))?;
        let mode = mode.permissions().mode() & 0o777;
        let has_token = contexts.contexts.values().any(|it| it.token.is_some());
        match has_token && mode & OTHERS != 0 {
            true => Err(said(&format!(
                "it holds a token and others may read it (mode {mode:04o}); chmod it to 0600"
            ))),
            false => Ok(contexts),
        }
    }

    /// Writes the file, all of it or nothing. It fails if there is no place for it, or no room.
    pub fn save(&self) -> Result<(), Failure> {
        let path = path().ok_or_else(|| {
            Failure::usage("no folder for the file of contexts: set HOME or XDG_CONFIG_HOME")
        })?;
        let text = toml::to_string(self).map_err(|error| Failure::other(error.to_string()))?;
        write(&path, &text)
            .map_err(|error| Failure::other(format!("`{}`: {error}", path.display())))
    }

    /// The context of this name, or the current one. It fails if there is none of this name.
    pub fn get(&self, name: Option<&str>) -> Result<Option<&Context>, Failure> {
        let Some(name) = name.or(self.current.as_deref()) else {
            return Ok(None);
        };
        self.contexts
            .get(name)
            .map(Some)
            .ok_or_else(|| self.unknown(name))
    }

    /// Says that there is no context of this name, and which there are.
    pub fn unknown(&self, name: &str) -> Failure {
        let known: Vec<_> = self.contexts.keys().map(String::as_str).collect();
        Failure::missing(match known.as_slice() {
            [] => format!(
                "no context `{name}`; make one with `hindsight context set {name} --server URL`"
            ),
            known => format!("no context `{name}`; there are {}", known.join(", ")),
        })
    }
}

/// Where the file is; none where the user has no home.
fn path() -> Option<PathBuf> {
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    // The XDG specification has relative paths ignored.
    let own = own.filter(|path| path.is_absolute());
    let folder = own.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(folder.join("hindsight").join("contexts.toml"))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let next = path.with_extension(format!("toml.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&next)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        // The error of writing tells more than one of cleaning up.
        drop(fs::remove_file(&next));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_read_again_and_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hindsight").join("contexts.toml");
        assert_eq!(Contexts::read(&path).unwrap(), Contexts::default());
        let context = Context {
            server: Some("https://h.example".to_owned()),
            token: Some(Token("secret".to_owned())),
            ..Context::default()
        };
        let contexts = Contexts {
            current: Some("a b".to_owned()),
            contexts: BTreeMap::from([("a b".to_owned(), context)]),
        };
        for _ in 0..2 {
            write(&path, &toml::to_string(&contexts).unwrap()).unwrap();
            assert_eq!(mode(&path), 0o600);
            assert_eq!(Contexts::read(&path).unwrap(), contexts);
        }
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing else is left"
        );
        assert!(!format!("{contexts:?}").contains("secret"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let why = Contexts::read(&path).unwrap_err().to_string();
        assert!(why.contains("mode 0644"), "{why}");
    }

    #[test]
    fn a_file_with_other_keys_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        fs::write(&path, "[contexts.a]\nservre = 'x'\n").unwrap();
        let why = Contexts::read(&path).unwrap_err().to_string();
        assert!(why.contains("unknown field `servre`"), "{why}");
    }
}
