//! Keys as flags of the command line.

use clap::{Arg, ArgAction, Command};

use crate::{Key, Kind, Program};

impl Program {
    /// Adds `--config` and a flag for each key that is `wanted` and may have one. The others may be in
    /// the file and in the environment nevertheless, and are checked.
    ///
    /// Flags carry text; [`Reader`](crate::Reader) checks it, together with everything else.
    #[must_use]
    pub fn add_flags(&self, command: Command, wanted: impl Fn(&Key) -> bool) -> Command {
        let config = self.argument("config", "PATH", self.heading).help(format!(
            "File of configuration, in TOML [env: {}]",
            self.variable("config")
        ));
        let may = |key: &&Key| !self.without_flags.contains(&key.name) && wanted(key);
        let keys = self.keys.iter().filter(may);
        command.arg(config).args(keys.map(|key| self.of_key(key)))
    }

    fn argument(&self, name: &str, value: &'static str, heading: Option<&'static str>) -> Arg {
        let flag = self.flag(name);
        Arg::new(flag.clone())
            .long(flag)
            .value_name(value)
            .action(ArgAction::Set)
            .help_heading(heading)
    }

    fn of_key(&self, key: &Key) -> Arg {
        let default = key
            .default
            .map(|text| format!(", default: {text}"))
            .unwrap_or_default();
        let heading = self.heading.unwrap_or(key.section);
        let arg = self
            .argument(key.name, key.value, Some(heading))
            .help(format!(
                "{} [env: {}{default}]",
                key.help,
                self.variable(key.name)
            ));
        match key.kind {
            Kind::Switch => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            Kind::Signed | Kind::Secret => arg.allow_hyphen_values(true),
            Kind::Text | Kind::List => arg,
        }
    }
}
