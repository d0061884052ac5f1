//! Errors of filters with a caret under the place that is wrong.

use hindsight_filter::{FilterError, words::WordsError};
use unicode_width::UnicodeWidthStr as _;

use super::{failure::Failure, output::plain};

/// Most characters that are shown before and after the place.
const AROUND: usize = 50;

/// A filter in CEL that is wrong, given after `flag`.
pub(super) fn wrong_filter(flag: &str, text: &str, error: &FilterError) -> Failure {
    let Some(place) = error.place() else {
        return Failure::usage(error.to_string());
    };
    let line = text.lines().nth(place.line - 1).unwrap_or_default();
    let at = line.char_indices().nth(place.column - 1);
    let at = at.map_or(line.len(), |(at, _)| at);
    Failure::usage(pointed(&error.to_string(), flag, line, at..at))
}

/// A word that is wrong, in a text that was given after `flag`.
pub(super) fn wrong_word(flag: &str, text: &str, error: &WordsError) -> Failure {
    let part = error.at..error.at + error.word.len();
    Failure::usage(pointed(&error.to_string(), flag, text, part))
}

/// The error, the text and carets under the part of it that is wrong.
fn pointed(error: &str, flag: &str, text: &str, part: std::ops::Range<usize>) -> String {
    let (before, rest) = text.split_at_checked(part.start).unwrap_or((text, ""));
    let (wrong, after) = rest.split_at_checked(part.len()).unwrap_or((rest, ""));
    let skipped = before.chars().count().saturating_sub(AROUND);
    let cut = if skipped > 0 { "…" } else { "" };
    let before: String = before.chars().skip(skipped).collect();
    let before = format!("{flag}{cut}{}", plain(&before, false));
    let wrong = plain(wrong, false);
    let after: String = after.chars().take(AROUND).collect();
    let after = plain(&after, false);
    let blanks = " ".repeat(before.width());
    let carets = "^".repeat(wrong.width().max(1));
    format!("{error}\n  {before}{wrong}{after}\n  {blanks}{carets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_under_what_is_wrong() {
        assert_eq!(
            pointed("bad", "-p ", "日本 stats:x now", 7..12),
            "bad\n  -p 日本 stats:x now\n          ^^^^^"
        );
        assert_eq!(
            pointed("bad", "", "a\u{1b}b c", 4..9),
            "bad\n  a\\u{1b}b c\n           ^"
        );
        let long = format!("{}x", "a ".repeat(200));
        let shown = pointed("bad", "", &long, 400..401);
        assert!(shown.lines().all(|line| line.width() < 60), "{shown}");
    }
}
