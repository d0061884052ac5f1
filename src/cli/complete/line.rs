//! A command line that is being typed: its words, and what its last word is.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, Command};

/// The words of a line as a shell takes them apart, the last of which may be open or empty.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut is_quoted) = (None, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let empty = words.last().is_none_or(String::is_empty);
        match (quote, c) {
            (Some('\''), c) if c != '\'' => push(&mut words, c),
            (_, '\\') => push(&mut words, chars.next().unwrap_or('\\')),
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                is_quoted = true;
            }
            (None, c) if c.is_whitespace() => {
                if !empty || is_quoted {
                    words.push(String::new());
                }
                is_quoted = false;
            }
            (_, c) => push(&mut words, c),
        }
    }
    words
}

fn push(words: &mut [String], c: char) {
    if let Some(word) = words.last_mut() {
        word.push(c);
    }
}

/// What the last word of a line is.
#[derive(Debug)]
pub(super) struct Line<'c> {
    /// The command that the words before lead to.
    pub(super) command: &'c Command,
    /// The names of commands that lead to it.
    pub(super) path: Vec<&'c str>,
    /// Values of flags that were given before, by the names of the flags.
    pub(super) given: BTreeMap<&'c str, String>,
    /// Positional words that were given to the command.
    pub(super) positional: Vec<String>,
    pub(super) last: Last<'c>,
}

/// The last word.
#[derive(Debug)]
pub(super) enum Last<'c> {
    /// A flag, as far as it is written.
    Flag(String),
    /// The value of an argument, behind a part of the word that stays.
    Value {
        argument: &'c Arg,
        before: String,
        value: String,
    },
    /// The name of a command, or a positional argument, if there is one.
    Word {
        argument: Option<&'c Arg>,
        word: String,
    },
}

impl<'c> Line<'c> {
    /// Reads the words after the name of the program.
    pub(super) fn of(root: &'c Command, words: &[String]) -> Self {
        let (last, before) = match words.split_last() {
            Some((last, before)) => (last.clone(), before),
            None => (String::new(), words),
        };
        let mut line = Self {
            command: root,
            path: Vec::new(),
            given: BTreeMap::new(),
            positional: Vec::new(),
            last: Last::Flag(String::new()),
        };
        let mut pending = None;
        let mut only_words = false;
        for word in before {
            if let Some(argument) = pending.take() {
                line.give(argument, word);
            } else if only_words {
                line.positional.push(word.clone());
            } else if word == "--" {
                only_words = true;
            } else if word.starts_with('-') && word.len() > 1 {
                pending = line.flag(word);
            } else {
                line.word(word);
            }
        }
        line.last = match pending {
            Some(argument) => Last::Value {
                argument,
                before: String::new(),
                value: last,
            },
            None if !only_words && last.starts_with('-') => line.open_flag(last),
            None => Last::Word {
                argument: line.next_positional(),
                word: last,
            },
        };
        line
    }

    /// Notes a flag that is whole; the argument, if its value is the next word.
    fn flag(&mut self, word: &str) -> Option<&'c Arg> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let Some(long) = name.strip_prefix("--") {
            let argument = self.long(long)?;
            match (takes_value(argument), value) {
                (true, Some(value)) => self.give(argument, value),
                (true, None) => return Some(argument),
                (false, _) => self.give(argument, "true"),
            }
            return None;
        }
        let (argument, value) = self.short(word)?;
        match value {
            _ if !takes_value(argument) => self.give(argument, "true"),
            "" => return Some(argument),
            value => self.give(argument, value.strip_prefix('=').unwrap_or(value)),
        }
        None
    }

    /// What a word is that begins with a dash and is being typed.
    fn open_flag(&self, word: String) -> Last<'c> {
        let split = word.split_once('=').filter(|(name, _)| name.len() > 2);
        if let Some((name, value)) = split.filter(|(name, _)| name.starts_with("--")) {
            let argument = self.long(name.trim_start_matches('-'));
            if let Some(argument) = argument.filter(|argument| takes_value(argument)) {
                return Last::Value {
                    argument,
                    before: format!("{name}="),
                    value: value.to_owned(),
                };
            }
        }
        Last::Flag(word)
    }

    /// Descends into a command, or takes a positional word.
    fn word(&mut self, word: &str) {
        let is_called = |command: &&Command| {
            command.get_name() == word || command.get_all_aliases().any(|alias| alias == word)
        };
        let found = self.command.get_subcommands().find(is_called);
        match found.filter(|_| self.positional.is_empty()) {
            Some(command) => {
                self.command = command;
                self.path.push(command.get_name());
            }
            None => self.positional.push(word.to_owned()),
        }
    }

    fn give(&mut self, argument: &'c Arg, value: &str) {
        self.given
            .insert(argument.get_id().as_str(), value.to_owned());
    }

    fn long(&self, name: &str) -> Option<&'c Arg> {
        let mut arguments = self.command.get_arguments();
        arguments.find(|argument| argument.get_long() == Some(name))
    }

    /// The argument of the last short flag in a word, with what stands behind it.
    fn short<'w>(&self, word: &'w str) -> Option<(&'c Arg, &'w str)> {
        let letters = word.strip_prefix('-')?;
        let mut last = None;
        for (at, letter) in letters.char_indices() {
            let mut arguments = self.command.get_arguments();
            let argument = arguments.find(|argument| argument.get_short() == Some(letter))?;
            let rest = letters.get(at + letter.len_utf8()..)?;
            if takes_value(argument) {
                return Some((argument, rest));
            }
            last = Some((argument, ""));
        }
        last
    }

    /// The positional argument that is next.
    fn next_positional(&self) -> Option<&'c Arg> {
        let positionals: Vec<_> = self.command.get_positionals().collect();
        let last = positionals.last().copied();
        let next = positionals.get(self.positional.len()).copied();
        next.or_else(|| last.filter(|argument| is_many(argument)))
    }
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Whether an argument takes several words.
fn is_many(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
        || argument
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_apart_as_by_a_shell() {
        for (line, found) in [
            ("", vec![""]),
            ("a ", vec!["a", ""]),
            ("a  b", vec!["a", "b"]),
            ("a 'b c' \"d ", vec!["a", "b c", "d "]),
            (r"a b\ c 'd\e'", vec!["a", "b c", r"d\e"]),
            ("a '' ", vec!["a", "", ""]),
        ] {
            assert_eq!(words(line), found, "{line}");
        }
    }
}
