//! The keys of the configuration as flags, of this program or beside those of another one.

use std::{collections::BTreeMap, path::PathBuf, sync::LazyLock};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::NonEmptyStringValueParser};

use crate::config::{
    Launch,
    keys::{KEYS, Key},
    load::load,
    sources::Sources,
};
use hindsight_runtime::error::report;

/// What stands before flags that are beside those of another program.
const PREFIX: &str = "watcher-";

/// What a server in the same process makes pointless: its address is known, and it logs for both.
const POINTLESS: [&str; 7] = [
    "server",
    "server-ca",
    "client-cert",
    "client-key",
    "plain-calls",
    "log-level",
    "log-format",
];

/// The names of the flags that are beside others, in the order of [`KEYS`].
static BESIDE: LazyLock<Vec<String>> =
    LazyLock::new(|| KEYS.iter().map(|key| named(key.name)).collect());

static CONFIG_BESIDE: LazyLock<String> = LazyLock::new(|| named("config"));

fn named(key: &str) -> String {
    format!("{PREFIX}{key}")
}

/// How the flags of a watcher are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// As their keys.
    Alone,
    /// With `watcher-` before their keys, because they stand beside those of a server in the same
    /// process. There are none for what that server makes pointless; what files and variables say
    /// about it does not count.
    Beside,
}

impl Flags {
    /// Adds `--config` and the flags of all keys to `command`.
    #[must_use]
    pub fn added_to(self, command: Command) -> Command {
        let id = self.config();
        let config = Arg::new(id)
            .long(id)
            .value_name("PATH")
            .value_parser(clap::value_parser!(PathBuf))
            .help(match self {
                Self::Alone => {
                    "TOML file with any of the other flags as keys [env: HINDSIGHT_WATCHER_CONFIG]"
                }
                Self::Beside => {
                    "TOML file of the watcher, with the same keys as for `hindsight-watcher` \
                     [env: HINDSIGHT_WATCHER_CONFIG]"
                }
            });
        let config = match self {
            Self::Alone => config,
            Self::Beside => config.help_heading("Watcher"),
        };
        let flags = self.names().map(|(name, key)| self.flag(name, key));
        command.arg(config).args(flags)
    }

    /// Reads the flags that were added, the environment and the file.
    ///
    /// # Errors
    /// Everything that is wrong, a text each.
    pub fn read(self, matches: &ArgMatches) -> Result<Launch, Vec<String>> {
        let given = |(name, key): (&'static str, &'static Key)| {
            Some((key.name, matches.get_one::<String>(name)?.clone()))
        };
        let flags: BTreeMap<&'static str, String> = self.names().filter_map(given).collect();
        let file = matches.get_one::<PathBuf>(self.config());
        let mut sources =
            Sources::gather(flags, file.map(PathBuf::as_path)).map_err(|e| vec![report(&e)])?;
        if self == Self::Beside {
            sources.prefix = PREFIX;
        }
        load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    fn config(self) -> &'static str {
        match self {
            Self::Alone => "config",
            Self::Beside => &CONFIG_BESIDE,
        }
    }

    /// The flags with their keys.
    fn names(self) -> impl Iterator<Item = (&'static str, &'static Key)> {
        let named = KEYS.iter().zip(BESIDE.iter());
        named.filter_map(move |(key, beside)| match self {
            Self::Alone => Some((key.name, key)),
            Self::Beside if POINTLESS.contains(&key.name) => None,
            Self::Beside => Some((beside.as_str(), key)),
        })
    }

    fn flag(self, name: &'static str, key: &'static Key) -> Arg {
        let mut help = key.help.to_owned();
        if key.value.is_some() && !key.default.is_empty() {
            help.push_str(&format!(" [default: {}]", key.default));
        }
        help.push_str(&format!(" [env: {}]", key.variable()));
        let arg = Arg::new(name)
            .long(name)
            .help(help)
            .help_heading(match self {
                Self::Alone => key.group,
                Self::Beside => "Watcher",
            })
            .allow_hyphen_values(true)
            .action(ArgAction::Set);
        match key.value {
            Some(value) => arg.value_name(value),
            None => arg
                .value_name("BOOL")
                .value_parser(NonEmptyStringValueParser::new())
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::Flags;

    #[test]
    fn beside_others_flags_have_a_name_of_their_own_also_in_complaints() {
        let command = Flags::Beside.added_to(Command::new("both"));
        let read = |args: &[&str]| {
            let matches = command
                .clone()
                .try_get_matches_from([&["both"], args].concat());
            Flags::Beside.read(&matches.unwrap())
        };
        let launch = read(&["--watcher-collect", "--watcher-grace=-1s"]).unwrap();
        assert!(launch.config.policy.collect.unwrap().grace.is_negative());
        let problems = read(&["--watcher-threadiness", "0"]).unwrap_err();
        assert!(
            problems[0].starts_with("--watcher-threadiness: "),
            "{problems:?}"
        );
        assert!(
            command
                .clone()
                .try_get_matches_from(["both", "--watcher-server=x"])
                .is_err()
        );
    }
}
