//! Words and flags as one filter in CEL.

use hindsight_filter::words::{self, Now};
use hindsight_filter::{Filter, model::Resource};

use crate::cli::{
    caret::{wrong_filter, wrong_word},
    failure::Failure,
};

/// Texts that must all hold, each with what stands before it on the command line.
#[derive(Debug)]
pub(in crate::cli) struct Words<'a> {
    texts: Vec<Text<'a>>,
    /// A filter in CEL.
    filter: &'a str,
}

#[derive(Debug)]
struct Text<'a> {
    /// What an error shows before the text.
    flag: &'a str,
    /// The key of a word that the flag stands for.
    word: &'a str,
    text: String,
}

impl<'a> Words<'a> {
    /// The words themselves, which are one text however the shell divides them.
    pub(in crate::cli) fn of(words: &[String]) -> Self {
        let text = Text {
            flag: "",
            word: "",
            text: words.join(" "),
        };
        Self {
            texts: vec![text],
            filter: "",
        }
    }

    /// Adds a flag that stands for the word `word`, with the value after it.
    pub(in crate::cli) fn flag(&mut self, flag: &'a str, word: &'a str, value: &str) {
        self.texts.push(Text {
            flag,
            word,
            text: words::values(value),
        });
    }

    /// Adds a filter in CEL.
    pub(in crate::cli) fn and(self, filter: &'a str) -> Self {
        Self { filter, ..self }
    }

    /// All of it in CEL. It fails with a caret under what is wrong.
    pub(in crate::cli) fn filter(&self, now: &Now) -> Result<String, Failure> {
        let mut parts = Vec::new();
        for Text { flag, word, text } in &self.texts {
            let query = words::read(&format!("{word}{text}"), now).map_err(|mut error| {
                // What the flag stands for was not typed.
                let before = error.at.min(word.len());
                error.at -= before;
                if before < word.len() {
                    error.word.clear();
                }
                wrong_word(flag, text, &error)
            })?;
            if query.mark.is_some() {
                parts.push(checked(flag, &query.cel)?);
            } else if !query.cel.is_empty() {
                parts.push(query.cel);
            }
        }
        if !self.filter.trim().is_empty() {
            parts.push(checked("--filter ", self.filter)?);
        }
        Ok(parts.join(" && "))
    }
}

/// A filter in brackets, out of which nothing in it reaches.
fn checked(flag: &str, filter: &str) -> Result<String, Failure> {
    Filter::compile(filter, Resource::Records)
        .map_err(|error| wrong_filter(flag, filter, &error))?;
    Ok(format!("({filter}\n)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Now {
        Now {
            time: "2026-03-02T17:00:00Z".parse().unwrap(),
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    fn words(words: &[&str]) -> Words<'static> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        Words::of(&words)
    }

    #[test]
    fn words_flags_and_filters_must_all_hold() {
        let mut asked = words(&["failed", "is:top"]);
        asked.flag("--pipeline ", "pipeline:", "a,b*");
        asked.flag("--kind ", "kind:", "x && true || (\"");
        assert_eq!(
            asked.and("data.x == 1 // all").filter(&now()).unwrap(),
            "run.outcome in [FAILURE, TIMEOUT] && !has(run.labels[\"tekton.dev/pipelineRun\"]) && \
             (run.pipeline == \"a\" || run.pipeline.startsWith(\"b\")) && \
             data.kind == \"x && true || (\\\"\" && (data.x == 1 // all\n)"
        );
        assert_eq!(words(&[]).filter(&now()).unwrap(), "");
        let cel = words(&["run.outcome == FAILURE || run.task == 'x'"]);
        let brackets = "(run.outcome == FAILURE || run.task == 'x'\n)";
        assert_eq!(cel.filter(&now()).unwrap(), brackets);
    }

    #[test]
    fn a_caret_is_under_what_was_typed() {
        let said = |words: &Words<'_>| words.filter(&now()).unwrap_err().to_string();
        assert!(
            said(&words(&["failed", "stauts:x"])).ends_with("\n  failed stauts:x\n         ^^^^^^")
        );
        let mut flag = words(&["failed"]);
        flag.flag("--since ", "since:", "soon");
        assert!(said(&flag).ends_with("\n  --since soon\n          ^^^^"));
        let filter = words(&[]).and("data.kind = 'x'");
        assert!(said(&filter).ends_with("\n  --filter data.kind = 'x'\n                     ^"));
        let mut empty = words(&[]);
        empty.flag("--pipeline ", "pipeline:", "");
        assert!(said(&empty).contains("wants a value"));
    }
}
