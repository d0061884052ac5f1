//! Where the values of an argument come from.

use clap::{Arg, Command, ValueHint};
use hindsight_proto::v1::suggest_request::Kind;

use super::line::{Last, Line};

/// Something that a word may go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    /// One line about it, or nothing.
    pub(super) help: String,
}

impl Candidate {
    pub(super) fn of(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            help: String::new(),
        }
    }

    fn with(value: impl Into<String>, help: Option<impl ToString>) -> Self {
        let help = help.map(|help| help.to_string()).unwrap_or_default();
        let value = value.into();
        let help = help.lines().next().unwrap_or_default().replace('\t', " ");
        Self { value, help }
    }
}

/// Where values come from.
#[derive(Debug)]
pub(super) enum Source {
    Fixed(Vec<Candidate>),
    Files,
    Contexts,
    /// A server, beside those that are always there.
    Server(Asked, Vec<Candidate>),
}

/// What a server is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) label_key: String,
    /// The namespace that the word names itself.
    pub(super) namespace: Option<String>,
    /// What follows each value.
    pub(super) after: &'static str,
}

/// Words of queries that take no value.
pub(super) const WORDS: [&str; 7] = [
    "failed",
    "succeeded",
    "timeout",
    "cancelled",
    "running",
    "waiting",
    "vanished",
];
/// Keys of queries, each with values that are known.
pub(super) const KEYS: [(&str, &[&str]); 13] = [
    ("status:", &WORDS),
    ("is:", &["top", "child"]),
    ("pipeline:", &[]),
    ("name:", &[]),
    ("namespace:", &[]),
    ("cluster:", &[]),
    ("label:", &[]),
    (
        "kind:",
        &["pipelinerun", "taskrun", "workflow", "job", "rayjob"],
    ),
    ("reason:", &[]),
    ("tier:", &["hot", "cold"]),
    ("uid:", &[]),
    ("since:", &["1h", "24h", "7d", "today"]),
    ("until:", &["today"]),
];
/// References to runs that need no server.
const REFERENCES: [&str; 2] = ["@last", "@last-failed"];

fn server(kind: Kind) -> Asked {
    Asked {
        kind,
        label_key: String::new(),
        namespace: None,
        after: "",
    }
}

fn fixed(values: &[&str]) -> Vec<Candidate> {
    values.iter().map(|value| Candidate::of(*value)).collect()
}

/// Where the last word of a line comes from, the part of it that stays, and the part that is completed.
pub(super) fn source(line: &Line<'_>) -> (Source, String, String) {
    match &line.last {
        Last::Flag(word) => {
            let flags = Source::Fixed(flags(line.command));
            (flags, String::new(), word.clone())
        }
        Last::Value {
            argument,
            before,
            value,
        } => {
            let (source, more, value) = of_argument(line, argument, value);
            (source, format!("{before}{more}"), value)
        }
        Last::Word { argument, word } => {
            let commands = match line.positional.is_empty() {
                true => commands(line.command),
                false => Vec::new(),
            };
            match argument {
                Some(argument) if !commands.iter().any(|it| it.value.starts_with(word)) => {
                    of_argument(line, argument, word)
                }
                _ => (Source::Fixed(commands), String::new(), word.clone()),
            }
        }
    }
}

fn commands(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let candidate = |it: &Command| Candidate::with(it.get_name(), it.get_about());
    shown.map(candidate).collect()
}

fn flags(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    let flag = |it: &Arg| {
        Some(Candidate::with(
            format!("--{}", it.get_long()?),
            it.get_help(),
        ))
    };
    shown.filter_map(flag).collect()
}

/// Where the values of an argument come from, as [`source`] tells it.
fn of_argument(line: &Line<'_>, argument: &Arg, word: &str) -> (Source, String, String) {
    let (list, rest) = match argument.get_value_delimiter() {
        Some(delimiter) => last_of(word, &[delimiter]),
        None => ("", word),
    };
    let known = argument.get_possible_values();
    if !known.is_empty() {
        let shown = known.iter().filter(|value| !value.is_hide_set());
        let values = shown.map(|value| Candidate::with(value.get_name(), value.get_help()));
        let values = Source::Fixed(values.collect());
        return (values, list.to_owned(), rest.to_owned());
    }
    let id = argument.get_id().as_str();
    let is_context = line.path.first() == Some(&"context");
    match id {
        "words" => of_query(word),
        "run" | "a" | "b" => of_run(word),
        "name" | "names" if line.positional.first().is_some_and(|what| what == "run") => {
            of_run(word)
        }
        "name" if is_context => (Source::Contexts, String::new(), word.to_owned()),
        "context" | "into" => (Source::Contexts, String::new(), word.to_owned()),
        "namespace" | "within" | "parent" => of_server(server(Kind::Namespace), "", word),
        "pipeline" => {
            let (list, rest) = last_of(word, &[',']);
            of_server(server(Kind::Pipeline), list, rest)
        }
        "selector" => {
            let (list, rest) = last_of(word, &[',']);
            of_label(list, rest)
        }
        _ if is_file(argument) => (Source::Files, String::new(), word.to_owned()),
        _ => (Source::Fixed(Vec::new()), String::new(), word.to_owned()),
    }
}

fn is_file(argument: &Arg) -> bool {
    !matches!(
        argument.get_value_hint(),
        ValueHint::Unknown | ValueHint::Other
    )
}

fn of_server(asked: Asked, before: &str, value: &str) -> (Source, String, String) {
    let source = Source::Server(asked, Vec::new());
    (source, before.to_owned(), value.to_owned())
}

/// The values of an argument that names a run.
fn of_run(word: &str) -> (Source, String, String) {
    if word.starts_with('@') {
        let references = Source::Fixed(fixed(&REFERENCES));
        return (references, String::new(), word.to_owned());
    }
    match word.rsplit_once('/') {
        Some((namespace, name)) => {
            let mut asked = server(Kind::Name);
            asked.namespace = Some(namespace.to_owned());
            of_server(asked, &format!("{namespace}/"), name)
        }
        None => {
            let names = Source::Server(server(Kind::Name), fixed(&REFERENCES));
            (names, String::new(), word.to_owned())
        }
    }
}

/// The words of a query.
fn of_query(word: &str) -> (Source, String, String) {
    if let Some(word) = word.strip_prefix("not:") {
        let (source, before, value) = of_query(word);
        return (source, format!("not:{before}"), value);
    }
    let Some((key, values)) = KEYS.iter().find(|(key, _)| word.starts_with(key)) else {
        let keys = KEYS.iter().map(|(key, _)| *key);
        let words: Vec<_> = WORDS.into_iter().chain(keys).chain(["not:"]).collect();
        let names = Source::Server(server(Kind::Name), fixed(&words));
        return (names, String::new(), word.to_owned());
    };
    let typed = word.strip_prefix(key).unwrap_or_default();
    let (list, rest) = last_of(typed, &[',']);
    let before = format!("{key}{list}");
    match *key {
        "pipeline:" => of_server(server(Kind::Pipeline), &before, rest),
        "name:" => of_server(server(Kind::Name), &before, rest),
        "namespace:" => of_server(server(Kind::Namespace), &before, rest),
        "label:" => of_label(key, typed),
        _ => (Source::Fixed(fixed(values)), before, rest.to_owned()),
    }
}

/// A label, as in `team=web`: its key, or its value behind the key.
fn of_label(before: &str, label: &str) -> (Source, String, String) {
    match label.split_once('=') {
        None => {
            let mut asked = server(Kind::LabelKey);
            asked.after = "=";
            of_server(asked, before, label)
        }
        Some((key, value)) => {
            let mut asked = server(Kind::LabelValue);
            asked.label_key = key.to_owned();
            of_server(asked, &format!("{before}{key}="), value)
        }
    }
}

/// A list up to its last value, and that.
fn last_of<'w>(word: &'w str, between: &[char]) -> (&'w str, &'w str) {
    let at = word.rfind(between).map_or(0, |at| at + 1);
    word.split_at(at)
}
