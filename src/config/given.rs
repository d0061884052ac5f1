//! Reading of typed values out of the sources, collecting every problem on the way.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::{
    keys::{self, KEYS},
    problem::{Origin, Problem},
    sources::{CONFIG_VARIABLE, File, PREFIX, Sources},
    value::Value,
};

/// Variables that begin like ours and belong to others: the command line client, the
/// watcher, the tests. One that ends with `_` stands for all that begin so.
const ELSEWHERE: &[&str] = &[
    "HINDSIGHT_SERVER",
    "HINDSIGHT_TOKEN",
    "HINDSIGHT_WATCHER_",
    "HINDSIGHT_TEST_",
    "HINDSIGHT_FORBID_SKIP",
];

struct Given {
    origin: Origin,
    text: String,
}

/// The sources, by key, weakest first.
pub(super) struct Reader {
    given: BTreeMap<&'static str, Vec<Given>>,
    origins: BTreeMap<&'static str, Origin>,
    problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn over(sources: &Sources) -> Self {
        let mut reader = Self {
            given: BTreeMap::new(),
            origins: BTreeMap::new(),
            problems: Vec::new(),
        };
        if let Some(file) = &sources.file {
            reader.take_file(file);
        }
        reader.take_environment(&sources.env);
        reader.take_flags(&sources.flags);
        reader
    }

    /// The strongest well-formed text of `name`, else its default. Every text is checked.
    pub(super) fn read<T: Value>(&mut self, name: &'static str) -> T {
        self.read_optional(name).unwrap_or_else(|| {
            let default = keys::by_name(name).and_then(|key| key.default);
            T::read(default.expect("only keys with a default are read so"))
                .expect("defaults are well-formed")
        })
    }

    /// The strongest well-formed text of `name`, if there is one. Every text is checked.
    pub(super) fn read_optional<T: Value>(&mut self, name: &'static str) -> Option<T> {
        let mut strongest = None;
        for given in self.given.remove(name).unwrap_or_default() {
            match T::read(&given.text) {
                Ok(value) => {
                    strongest = Some(value);
                    self.origins.insert(name, given.origin);
                }
                Err(bad) => {
                    self.problems
                        .push(Problem::of_key(name, &given.origin, bad.to_string()));
                }
            }
        }
        strongest
    }

    pub(super) fn finish(self) -> (BTreeMap<&'static str, Origin>, Vec<Problem>) {
        debug_assert!(self.given.is_empty(), "a key of the table is never read");
        (self.origins, self.problems)
    }

    fn give(&mut self, name: &'static str, origin: Origin, text: String) {
        self.given
            .entry(name)
            .or_default()
            .push(Given { origin, text });
    }

    fn take_file(&mut self, file: &File) {
        let path = file.path.as_str();
        let text = match &file.text {
            Ok(text) => text,
            Err(why) => {
                self.problems
                    .push(Problem::at(path, format!("cannot be read: {why}")));
                return;
            }
        };
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let (table, broken) = DeTable::parse_recoverable(text);
        let mut broken_lines = Vec::new();
        for error in &broken {
            let place = match error.span() {
                Some(span) => {
                    broken_lines.push(line(span.start));
                    format!("{path} line {}", line(span.start))
                }
                None => path.to_owned(),
            };
            self.problems
                .push(Problem::at(place, format!("not TOML: {}", error.message())));
        }
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let line = line(name.span().start);
            if broken_lines.contains(&line) {
                continue; // What the parser made of it is a guess.
            }
            let origin = Origin::File {
                path: path.to_owned(),
                line,
            };
            self.take_entry(name.get_ref(), value.get_ref(), origin);
        }
    }

    fn take_entry(&mut self, name: &str, value: &DeValue<'_>, origin: Origin) {
        let Some(key) = keys::by_name(name) else {
            let known = KEYS.iter().map(|key| key.name);
            let text = format!("no such key{}", suggestion(name, known));
            self.problems.push(Problem::of_key(name, &origin, text));
            return;
        };
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Boolean(yes) => yes.to_string(),
            other => {
                let text = format!(
                    "is {} {}; want a text, a decimal number, true or false",
                    if other.type_str().starts_with(['a', 'i', 'o']) {
                        "an"
                    } else {
                        "a"
                    },
                    other.type_str()
                );
                self.problems.push(Problem::of_key(name, &origin, text));
                return;
            }
        };
        self.give(key.name, origin, text);
    }

    fn take_environment(&mut self, env: &BTreeMap<String, String>) {
        for (variable, text) in env {
            if !variable.starts_with(PREFIX) || variable == CONFIG_VARIABLE {
                continue;
            }
            let origin = Origin::Environment {
                variable: variable.clone(),
            };
            match KEYS.iter().find(|key| key.env == variable) {
                // The stand-in for bytes that are not UTF-8.
                Some(_) if text.contains(char::REPLACEMENT_CHARACTER) => {
                    self.problems.push(Problem::at(origin, "is not UTF-8 text"));
                }
                Some(key) => self.give(key.name, origin, text.clone()),
                None if belongs_elsewhere(variable, text) => {}
                None => {
                    let known = KEYS.iter().map(|key| key.env).chain([CONFIG_VARIABLE]);
                    let text = format!("no such variable{}", suggestion(variable, known));
                    self.problems.push(Problem::at(origin, text));
                }
            }
        }
    }

    fn take_flags(&mut self, flags: &BTreeMap<String, String>) {
        for (name, text) in flags {
            match keys::by_name(name) {
                Some(key) => {
                    let origin = Origin::Flag {
                        flag: key.flag.to_owned(),
                    };
                    self.give(key.name, origin, text.clone());
                }
                None => {
                    let origin = Origin::Flag {
                        flag: name.replace('_', "-"),
                    };
                    let known = KEYS.iter().map(|key| key.name);
                    let text = format!("no such flag{}", suggestion(name, known));
                    self.problems.push(Problem::at(origin, text));
                }
            }
        }
    }
}

fn belongs_elsewhere(variable: &str, text: &str) -> bool {
    is_service_link(variable, text)
        || ELSEWHERE
            .iter()
            .any(|known| variable == *known || known.ends_with('_') && variable.starts_with(known))
}

/// Whether Kubernetes may have set this variable, because a Service of the pod's namespace
/// is called `hindsight` or `hindsight-...`: `_SERVICE_HOST`, `_SERVICE_PORT[_name]`,
/// `_PORT=tcp://...` and `_PORT_8080_TCP[_ADDR|_PORT|_PROTO]`.
fn is_service_link(variable: &str, text: &str) -> bool {
    if variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_SERVICE_PORT")
        || variable.contains("_SERVICE_PORT_")
        || variable.ends_with("_PORT") && text.contains("://")
    {
        return true;
    }
    let Some((_, port)) = variable.split_once("_PORT_") else {
        return false;
    };
    let mut parts = port.split('_');
    let number = parts.next().is_some_and(|part| part.parse::<u16>().is_ok());
    number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
}

/// `; did you mean ...` with the name closest to `name`, if one is close; else all names.
fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let folded = |name: &str| {
        name.strip_prefix(PREFIX)
            .unwrap_or(name)
            .to_ascii_lowercase()
            .replace('-', "_")
    };
    let wanted = folded(name);
    let nearest = known
        .clone()
        .map(|known| (strsim::levenshtein(&wanted, &folded(known)), known))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, known)) if distance <= 1.max(wanted.len() / 3) => {
            format!("; did you mean `{known}`?")
        }
        _ => format!("; there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}
