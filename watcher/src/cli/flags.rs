//! The keys of the configuration as flags, of this program or beside those of another one.

use clap::{ArgMatches, Command};
use hindsight_config::{Key, Problems, Program, Sources};

use crate::config::{Launch, PROGRAM};

/// What a server in the same process makes pointless: its address is known, and it logs for both.
const POINTLESS: [&str; 7] = [
    "server",
    "server_ca",
    "client_cert",
    "client_key",
    "plain_calls",
    "log_level",
    "log_format",
];

/// How the flags of a watcher are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// Each is called as its key, with dashes for underscores.
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
        let wanted = |key: &Key| self == Self::Alone || !POINTLESS.contains(&key.name);
        self.program().add_flags(command, wanted)
    }

    /// Reads the flags that were added, the environment and the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read(self, matches: &ArgMatches) -> Result<Launch, Problems> {
        let program = self.program();
        Launch::load_as(&program, &Sources::gather(&program, matches))
    }

    const fn program(self) -> Program {
        match self {
            Self::Alone => PROGRAM,
            Self::Beside => Program {
                flags: "watcher-",
                heading: Some("Watcher"),
                ..PROGRAM
            },
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
        let said = problems.to_string();
        assert!(said.starts_with("--watcher-threadiness: "), "{said}");
        assert!(
            command
                .clone()
                .try_get_matches_from(["both", "--watcher-server=x"])
                .is_err()
        );
    }
}
