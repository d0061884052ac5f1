//! Rules about words: texts of errors, and what is left to do.

use crate::source::Source;

pub(crate) fn error_texts(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (at, start) in file.code.match_indices("#[error(") {
            let Some(text) = literal(&file.text[at + start.len()..]) else {
                continue;
            };
            let first = text.chars().next().unwrap_or(' ');
            if !first.is_lowercase() && first != '`' && first != '{' {
                let text = format!(
                    "error text begins with `{first}`; begin with a small letter, a backtick or a \
                     brace"
                );
                complaints.push(file.complaint(at, &text));
            }
            if text.trim_end().ends_with('.') {
                complaints.push(file.complaint(at, "error text ends with a full stop"));
            }
            if text.to_lowercase().contains("failed to") {
                let text = "error text says it failed; it is an error already, say what was wrong";
                complaints.push(file.complaint(at, text));
            }
        }
    }
    complaints
}

/// The text that `rest` begins with, if it begins with one; escapes stay as they are.
fn literal(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let raw = rest
        .strip_prefix('r')
        .map(|rest| rest.trim_start_matches('#'));
    let body = raw.unwrap_or(rest).strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|next: char| {
        let ends = next == '"' && !escaped;
        escaped = next == '\\' && !escaped && raw.is_none();
        ends
    })?;
    Some(&body[..end])
}

pub(crate) fn loose_ends(files: &[Source]) -> Vec<String> {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let mut complaints = Vec::new();
    for file in files {
        for mark in marks {
            for (at, _) in file.text.match_indices(mark) {
                if !names_issue(&file.text[at + mark.len()..]) {
                    let text = format!("`{mark}` without an issue, as in `{mark}(#12)`");
                    complaints.push(file.complaint(at, &text));
                }
            }
        }
    }
    complaints
}

/// Whether `rest` begins with `(#` and a number.
fn names_issue(rest: &str) -> bool {
    let number = rest
        .strip_prefix("(#")
        .and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

pub(crate) fn unfinished(files: &[Source]) -> Vec<String> {
    let rules = [
        ("todo!", "`todo!` is not an answer"),
        ("unimplemented!", "`unimplemented!` is not an answer"),
        (
            "#[ignore",
            "a test that is switched off proves nothing; mend it or take it out",
        ),
        (
            "fn test_",
            "the name of a test is a true sentence, without `test_`",
        ),
    ];
    let mut complaints = Vec::new();
    for file in files {
        for (word, text) in rules {
            for (at, _) in file.code.match_indices(word) {
                complaints.push(file.complaint(at, text));
            }
        }
    }
    complaints
}
