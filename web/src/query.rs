//! The text of the filter box: its words, where it is wrong, and what adding or taking away a word
//! makes of it.

use hindsight_filter::model::Resource;
use hindsight_filter::words::{self, Now};
use hindsight_filter::{CostBudget, Filter, Selection};

/// A text with the part that is wrong set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) before: String,
    pub(crate) part: String,
    pub(crate) after: String,
}

impl Wrong {
    /// What is wrong somewhere.
    pub(crate) fn saying(message: String) -> Self {
        Self::new(message, "", 0, 0)
    }

    fn new(message: String, text: &str, at: usize, length: usize) -> Self {
        let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        Self {
            message,
            before: before.to_owned(),
            part: part.to_owned(),
            after: after.to_owned(),
        }
    }
}

/// The word of `text` that has no meaning, if it is words and one has none.
pub(crate) fn wrong_word(text: &str, now: &Now) -> Option<Wrong> {
    let error = words::read(text, now).err()?;
    let (at, length) = (error.at, error.word.len());
    Some(Wrong::new(error.to_string(), text, at, length))
}

/// Where a text of CEL is wrong that the server refused with `message`.
pub(crate) fn wrong_cel(text: &str, now: &Now, message: String) -> Wrong {
    let cel = words::read(text, now).map(|query| query.cel);
    let cel = cel.unwrap_or_else(|_wrong| text.to_owned());
    let selection = Selection {
        filter: &cel,
        ..Selection::default()
    };
    let refused =
        Filter::select_within(&selection, Resource::Records, &mut CostBudget::small()).err();
    let place = refused.and_then(|error| error.place());
    let (Some(place), Some(begin)) = (place, text.find(&cel)) else {
        return Wrong::new(message, text, text.len(), 0);
    };
    let line: usize = cel
        .split_inclusive('\n')
        .take(place.line - 1)
        .map(str::len)
        .sum();
    let column = cel[line..].char_indices().nth(place.column - 1);
    let at = begin + column.map_or(cel.len(), |(at, _)| line + at);
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    Wrong::new(message, text, at, length)
}

/// Whether a text is CEL and not words.
pub(crate) fn is_cel(text: &str, now: &Now) -> bool {
    words::read(text, now).is_ok_and(|query| query.mark.is_some())
}

/// The words of a text, divided at blanks outside of quotes.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut quote, mut escaped) = (None, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                words.extend(begin.take().map(|begin: usize| &text[begin..at]));
                continue;
            }
            _ => {}
        }
        begin.get_or_insert(at);
    }
    words.extend(begin.map(|begin| &text[begin..]));
    words
}

/// The text with `word`, or without it if it has it. What has the same key gives way.
pub(crate) fn toggled(text: &str, word: &str) -> String {
    let words = split(text);
    if words.contains(&word) {
        let left: Vec<_> = words.into_iter().filter(|other| *other != word).collect();
        return left.join(" ");
    }
    let mut left: Vec<_> = words
        .into_iter()
        .filter(|other| group(other) != group(word))
        .collect();
    left.push(word);
    left.join(" ")
}

/// What a word is about, of which a run has one.
fn group(word: &str) -> &str {
    match word {
        "failed" | "succeeded" | "timeout" | "cancelled" | "running" | "waiting" | "vanished" => {
            "status"
        }
        _ => match word.find([':', '>', '<']) {
            Some(at) if !word.starts_with("label:") => &word[..at],
            _ => word,
        },
    }
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

    #[test]
    fn a_chip_is_a_word_of_the_text() {
        assert_eq!(toggled("", "failed"), "failed");
        assert_eq!(toggled("failed since:24h", "failed"), "since:24h");
        assert_eq!(toggled("running since:24h", "failed"), "since:24h failed");
        assert_eq!(toggled("vanished shop", "running"), "shop running");
        assert_eq!(toggled("since:24h shop", "since:7d"), "shop since:7d");
        assert_eq!(toggled("label:a=b", "label:c=d"), "label:a=b label:c=d");
    }

    #[test]
    fn words_are_divided_outside_of_quotes() {
        assert_eq!(
            split(" pipeline:\"a b\\\" c\"  failed 'x y"),
            ["pipeline:\"a b\\\" c\"", "failed", "'x y"]
        );
    }

    #[test]
    fn the_part_that_is_wrong_is_set_apart() {
        let wrong = wrong_word("failed stauts:x shop", &now()).unwrap();
        assert_eq!(
            (
                wrong.before.as_str(),
                wrong.part.as_str(),
                wrong.after.as_str()
            ),
            ("failed ", "stauts", ":x shop")
        );
        assert!(wrong.message.contains("did you mean"), "{wrong:?}");
        assert_eq!(wrong_word("failed since:24h", &now()), None);
        let wrong = wrong_cel("  run.outcome == (é", &now(), "said".to_owned());
        assert_eq!(
            format!("{}{}{}", wrong.before, wrong.part, wrong.after),
            "  run.outcome == (é"
        );
        let wrong = wrong_cel("cel: data.kind = 'x'", &now(), "said".to_owned());
        assert_eq!(
            (wrong.before.as_str(), wrong.part.as_str()),
            ("cel: data.kind ", "=")
        );
    }
}
