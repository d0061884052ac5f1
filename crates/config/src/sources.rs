//! Where configuration comes from. The only file that reads the environment and the file
//! of configuration; it judges nothing, so that everything else is a function of a value.

use std::collections::BTreeMap;

use clap::ArgMatches;

use crate::Program;

/// The text of every source, before any of it is judged. Empty means defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file of configuration, if one was named.
    pub file: Option<File>,
    /// Environment variables; those that do not begin as the program says are ignored.
    pub env: BTreeMap<String, String>,
    /// Texts of flags by the name of their key.
    pub flags: BTreeMap<String, String>,
}

/// A file of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path, as it was given.
    pub path: String,
    /// Its text, or why it could not be read.
    pub text: Result<String, String>,
}

impl Sources {
    /// Reads the environment of this process and the file that `--config` or its variable names,
    /// and takes the flags that [`Program::add_flags`] made.
    ///
    /// Never fails: what could not be read is a problem that [`Reader`](crate::Reader) reports
    /// together with everything else.
    #[must_use]
    pub fn gather(program: &Program, matches: &ArgMatches) -> Self {
        let ours = |name: &String| {
            let mut starts = program.passed.iter().chain([&program.variables]);
            starts.any(|start| name.starts_with(start))
        };
        let env: BTreeMap<_, _> = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .filter(|(name, _)| ours(name))
            .collect();
        // `None` also for a command that has no such flag.
        let flag = |name| {
            let text = matches.try_get_one::<String>(&program.flag(name));
            text.ok().flatten().cloned()
        };
        let flags = program
            .keys
            .iter()
            .filter_map(|key| Some((key.name.to_owned(), flag(key.name)?)))
            .collect();
        let path = flag("config").or_else(|| env.get(&program.variable("config")).cloned());
        Self {
            file: path.map(File::read),
            env,
            flags,
        }
    }
}

/// A variable of the environment that is no key of a program, such as `HOME`; none if it is empty.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "this is the file that reads the environment"
)]
pub fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

impl File {
    fn read(path: String) -> Self {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        Self { path, text }
    }
}
