//! Reading of typed values out of the sources, collecting every problem on the way.

mod foreign;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use crate::{File, Given, Key, Kind, Origin, Problem, Problems, Program, Secret, Slot, Sources};
use foreign::{is_foreign, suggestion};

struct Said {
    origin: Origin,
    text: String,
}

/// The sources of a program, by key, weakest first.
pub struct Reader<'a> {
    program: &'a Program,
    said: BTreeMap<&'static str, Vec<Said>>,
    tables: BTreeMap<String, Vec<(Origin, Spanned<DeValue<'a>>)>>,
    given: Given,
    problems: Vec<Problem>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Texts may be secret.
        f.debug_struct("Reader")
            .field("said", &self.said.keys())
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// Sorts what the sources say by key.
    #[must_use]
    pub fn over(program: &'a Program, sources: &'a Sources) -> Self {
        let mut reader = Self {
            program,
            said: BTreeMap::new(),
            tables: BTreeMap::new(),
            given: Given::default(),
            problems: Vec::new(),
        };
        if let Some(file) = &sources.file {
            reader.take_file(file);
        }
        reader.take_environment(&sources.env);
        reader.take_flags(&sources.flags);
        reader
    }

    /// The strongest well-formed text of `name`, else the default. Every text is checked, also one
    /// that a stronger source overrides.
    pub fn read<T: Slot>(&mut self, name: &'static str, default: Option<&'static str>) -> T {
        let mut strongest = None;
        for said in self.said.remove(name).unwrap_or_default() {
            match T::parse(said.text.trim(), default) {
                Ok(value) => {
                    strongest = Some(value);
                    self.given.origins.insert(name, said.origin);
                }
                Err(bad) => {
                    let problem = Problem::of_key(name, &said.origin, bad.to_string());
                    self.problems.push(problem);
                }
            }
        }
        strongest.unwrap_or_else(|| T::absent(default))
    }

    /// Where the values that were read came from.
    pub fn given(&mut self) -> Given {
        debug_assert!(self.said.is_empty(), "a key of the table is never read");
        std::mem::take(&mut self.given)
    }

    /// The tables `[[name]]` of the file, each as `make` takes it.
    pub fn tables<T: DeserializeOwned, U>(
        &mut self,
        name: &str,
        make: impl Fn(T) -> Result<U, String>,
    ) -> Vec<U> {
        let mut made = Vec::new();
        for (origin, table) in self.tables.remove(name).unwrap_or_default() {
            let read = T::deserialize(ValueDeserializer::from(table));
            match read
                .map_err(|error| error.message().to_owned())
                .and_then(&make)
            {
                Ok(table) => made.push(table),
                Err(why) => self.problems.push(Problem::of_key(name, &origin, why)),
            }
        }
        made
    }

    /// The settings, unless there is a problem or `check` finds one.
    ///
    /// # Errors
    /// All problems at once.
    pub fn finish<S>(
        mut self,
        settings: S,
        check: impl FnOnce(&S) -> Vec<Problem>,
    ) -> Result<S, Problems> {
        self.problems.extend(check(&settings));
        Problems::unless(self.problems, settings)
    }

    fn say(&mut self, name: &'static str, origin: Origin, text: String) {
        let said = Said { origin, text };
        self.said.entry(name).or_default().push(said);
    }

    fn refuse(&mut self, name: &str, origin: &Origin, why: impl Into<String>) {
        self.problems.push(Problem::of_key(name, origin, why));
    }

    fn take_file(&mut self, file: &'a File) {
        let path = file.path.as_str();
        let text = match &file.text {
            Ok(text) => text,
            Err(why) => {
                let problem = Problem::at(path, format!("cannot be read: {why}"));
                return self.problems.push(problem);
            }
        };
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let origin = |at: usize| Origin::File {
            path: path.to_owned(),
            line: line(at),
        };
        let (table, broken) = DeTable::parse_recoverable(text);
        let mut broken_lines = Vec::new();
        for error in &broken {
            let place = match error.span() {
                Some(span) => {
                    broken_lines.push(line(span.start));
                    origin(span.start).to_string()
                }
                None => path.to_owned(),
            };
            let problem = Problem::at(place, format!("not TOML: {}", error.message()));
            self.problems.push(problem);
        }
        let mut entries: Vec<_> = table.into_inner().into_iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let at = name.span().start;
            if broken_lines.contains(&line(at)) {
                continue; // What the parser made of it is a guess.
            }
            let name = name.into_inner();
            if self.program.tables.contains(&name.as_ref()) {
                self.take_tables(&name, value, origin);
            } else {
                self.take_entry(&name, value.get_ref(), &origin(at));
            }
        }
    }

    fn take_tables(
        &mut self,
        name: &str,
        value: Spanned<DeValue<'a>>,
        origin: impl Fn(usize) -> Origin,
    ) {
        let at = origin(value.span().start);
        match value.into_inner() {
            DeValue::Array(tables) => {
                let tables = tables.into_iter();
                let tables = tables.map(|table| (origin(table.span().start), table));
                self.tables.insert(name.to_owned(), tables.collect());
            }
            _ => self.refuse(name, &at, format!("is not a table; write `[[{name}]]`")),
        }
    }

    fn take_entry(&mut self, name: &str, value: &DeValue<'_>, origin: &Origin) {
        let Some(key) = self.program.key(name) else {
            let known = self.program.keys.iter().map(|key| key.name);
            let known = known.chain(self.program.tables.iter().copied());
            let known: Vec<_> = known.map(str::to_owned).collect();
            let why = format!("unknown key{}", suggestion(name, "", &known));
            return self.refuse(name, origin, why);
        };
        match text_of(key, value) {
            Some(text) => self.say(key.name, origin.clone(), text),
            None => {
                let kind = value.type_str();
                let article = if kind.starts_with(['a', 'i', 'o']) {
                    "an"
                } else {
                    "a"
                };
                let list = if key.kind == Kind::List {
                    ", a list of texts"
                } else {
                    ""
                };
                let why = format!(
                    "is {article} {kind}; want a text{list}, a decimal number, true or false"
                );
                self.refuse(name, origin, why);
            }
        }
    }

    fn take_environment(&mut self, env: &BTreeMap<String, String>) {
        let program = self.program;
        let config = program.variable("config");
        for (variable, text) in env {
            if program
                .passed
                .iter()
                .any(|start| variable.starts_with(start))
            {
                let text = Secret::new(text);
                self.given.passed.insert(variable.clone(), text);
            }
            if !variable.starts_with(program.variables) || *variable == config {
                continue;
            }
            let origin = Origin::Environment {
                variable: variable.clone(),
            };
            let key = program
                .keys
                .iter()
                .find(|key| program.variable(key.name) == *variable);
            match key {
                // The stand-in for bytes that are not UTF-8.
                Some(key) if text.contains(char::REPLACEMENT_CHARACTER) => {
                    self.refuse(key.name, &origin, "is not UTF-8 text");
                }
                Some(key) => self.say(key.name, origin, text.clone()),
                None if is_foreign(program, variable, text) => {}
                None => {
                    let known = program.keys.iter().map(|key| program.variable(key.name));
                    let known: Vec<_> = known.chain([config.clone()]).collect();
                    let why = format!(
                        "unknown variable{}",
                        suggestion(variable, program.variables, &known)
                    );
                    self.refuse(variable, &origin, why);
                }
            }
        }
    }

    fn take_flags(&mut self, flags: &BTreeMap<String, String>) {
        for (name, text) in flags {
            let origin = Origin::Flag {
                flag: self.program.flag(name),
            };
            match self.program.key(name) {
                Some(key) => self.say(key.name, origin, text.clone()),
                None => self.refuse(name, &origin, "unknown flag"),
            }
        }
    }
}

/// The value as the text that a flag would have; `None` if it has none.
fn text_of(key: &Key, value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Array(items) if key.kind == Kind::List => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item| item.get_ref().as_str()).collect();
            texts?.join(",")
        }
        _ => return None,
    })
}
