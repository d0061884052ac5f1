//! The configuration of a program, declared once and read from a file, the environment and flags.
//!
//! [`settings!`] makes a struct out of a list of keys: their types, defaults and help. From the
//! same list come the flags, the names of variables, the file, suggestions for misspelt names, the
//! printed configuration and the tables of `docs/config.md`. A flag overrides a variable, a
//! variable the file, and the file the default. Everything that is wrong is reported at once, each
//! problem with its place and a remedy.

mod choice;
mod endpoint;
mod entry;
mod flags;
mod given;
mod key;
mod print;
mod problem;
mod reader;
mod secret;
mod settings;
mod sources;
mod units;
mod value;

#[cfg(test)]
mod tests;

pub use self::{
    choice::one_of,
    endpoint::Endpoint,
    entry::entry_name,
    given::Given,
    key::{Key, Kind, Program},
    problem::{BadValue, Origin, Problem, Problems},
    reader::Reader,
    secret::{MASK, Secret},
    settings::Settings,
    sources::{File, Sources, variable},
    units::{ByteSize, Number, Span, signed_duration},
    value::{Slot, Value},
};
