//! Whether a failure says anything of its cause, so that its log need not be read.

use super::{GENERAL_REASONS, MESSAGE_BYTES, lines, without_hints};

/// Reasons of engines that give up after a program failed.
const GAVE_UP: &str = "BackoffLimitExceeded";

/// Words of a message that says how a program ended, and nothing of why.
const WORDS: &[&str] = &[
    "a",
    "an",
    "and",
    "because",
    "code",
    "command",
    "completed",
    "container",
    "due",
    "ended",
    "error",
    "exit",
    "exited",
    "failed",
    "failure",
    "finished",
    "has",
    "in",
    "is",
    "it",
    "job",
    "main",
    "non-zero",
    "nonzero",
    "of",
    "pod",
    "process",
    "returned",
    "script",
    "status",
    "step",
    "task",
    "terminated",
    "the",
    "to",
    "was",
    "with",
];

/// Messages that name no cause and no exit.
const MESSAGES: &[&str] = &["job has reached the specified backoff limit"];

/// Whether a reason is one of any failure.
pub(super) fn reason(reason: &str) -> bool {
    GENERAL_REASONS.contains(&reason) || reason == GAVE_UP
}

/// Whether every line of a message is such a one as "exited with code 1".
pub(super) fn message(text: &str) -> bool {
    text.len() <= MESSAGE_BYTES && text.lines().all(|text| line(text.trim()))
}

fn line(text: &str) -> bool {
    let text = without_hints(lines::cut(text, 512)).to_lowercase();
    let text = text.trim_end_matches('.');
    text.is_empty() || MESSAGES.contains(&text) || says_exit_alone(text)
}

/// Whether a text has only such words, numbers, and one name of a step or a container, which is quoted
/// or stands before a colon.
fn says_exit_alone(text: &str) -> bool {
    let mut names = 0;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.is_empty() || WORDS.contains(&bare) || bare.bytes().all(|c| c.is_ascii_digit()) {
            continue;
        }
        if !(word.starts_with(['"', '\'', '`']) || word.ends_with(':')) {
            return false;
        }
        names += 1;
    }
    names <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_tell_an_exit_alone_are_vague() {
        for text in [
            "",
            "exited with code 1",
            "Error (exit code 1)",
            "main: Error (exit code 137)",
            "\"step-unit\" exited with code 2: Error",
            "\"step-unit\" exited with code 1 (image: \"docker.io/a/b@sha256:12\"); for logs run: kubectl -n a logs b -c c\n",
            "Job has reached the specified backoff limit",
            "command terminated with exit code 1.",
            "Process completed with non-zero exit status 3",
        ] {
            assert!(message(text), "{text}");
        }
        for text in [
            "cannot reach 10.0.0.1",
            "connection refused: exit code 7",
            "\"step-unit\" exited because it used too much memory",
            "exited with code 1\npull access denied for shop/api",
            "x: y: exit code 1",
            "Tasks Completed: 3 (Failed: 1, Cancelled 0), Skipped: 0",
        ] {
            assert!(!message(text), "{text}");
        }
        assert!(reason("Failed") && reason("BackoffLimitExceeded") && !reason("TaskRunTimeout"));
    }
}
