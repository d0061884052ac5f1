//! Keys as flags of the command line.

use clap::{Arg, ArgAction, Command};

use super::{key::Key, keys::KEYS};

/// Adds `--config` and one flag per key to `command`.
///
/// Flags carry text; [`super::Config::load`] checks it, together with everything else.
#[must_use]
pub fn flags(command: Command) -> Command {
    KEYS.iter()
        .fold(command.arg(config()), |command, key| command.arg(flag(key)))
}

/// Adds `--config` and the flags of these keys alone. The others may be in the file and in the
/// environment nevertheless, and are checked.
#[must_use]
pub fn flags_of(command: Command, names: &[&str]) -> Command {
    let keys = KEYS.iter().filter(|key| names.contains(&key.name));
    keys.fold(command.arg(config()), |command, key| command.arg(flag(key)))
}

fn config() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("PATH")
        .help("File of configuration, in TOML [env: HINDSIGHT_CONFIG]")
}

fn flag(key: &'static Key) -> Arg {
    let default = key
        .default
        .map(|text| format!(", default: {text}"))
        .unwrap_or_default();
    let arg = Arg::new(key.name)
        .long(key.flag)
        .value_name(key.value)
        .action(ArgAction::Set)
        .help(format!("{} [env: {}{default}]", key.help, key.env));
    if key.is_switch() {
        arg.num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
    } else {
        arg.allow_hyphen_values(false)
    }
}
