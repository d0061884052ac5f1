//! Which line of a log says what failed.
//!
//! Lines are sorted into classes by words that programs use for errors. The last line of the best
//! class is chosen: a tail loses its first lines, never its last, so the choice does not depend on
//! how much of the log is left. Of a stack trace the innermost own function is added.

use super::template;

/// Most bytes of one line that are read.
const LINE: usize = 1024;

/// How many lines before an exception its function is looked for.
const FRAMES: usize = 24;

/// How much a line says about why a program failed, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Progress, warnings, frames of a stack trace, hints where to read on.
    Noise,
    /// An error that says only that something else failed.
    Wrapper,
    Plain,
    /// Words that often belong to an error.
    Suspect,
    /// The line calls itself an error.
    Error,
    /// A panic, an exception that ended the program, the name of a test that failed.
    Fatal,
}

/// Levels below an error, as the first words of a line.
const LEVELS: &[&str] = &[
    "debug", "info", "notice", "note", "trace", "warn", "warning",
];

/// Marks of a level below an error anywhere in a line.
const LEVEL_MARKS: &[&str] = &[
    "level=info",
    "level=debug",
    "level=warn",
    "\"level\":\"info\"",
    "\"level\":\"debug\"",
    "\"level\":\"warn",
    "\"severity\":\"info\"",
    "\"severity\":\"warning\"",
    "npm warn",
];

/// Parts of lines that say where to read on, or that something else failed.
const WRAPPERS: &[&str] = &[
    "a complete log of this run",
    "aborting due to",
    "build failed",
    "command failed",
    "could not compile",
    "did not complete successfully",
    "elifecycle",
    "failed to execute goal",
    "fix the upstream dependency",
    "for more information about",
    "ld returned",
    "make: ***",
    "note that you",
    "process completed with exit code",
    "re-run maven",
    "returned a non-zero code",
    "returned non-zero exit",
    "script failed",
    "see the full stack trace",
    "to see the full",
    "[help 1]",
    "]: ***",
    "tarball, folder, http url",
    "this command with --",
];

/// The same, if the line says little else.
const SHORT_WRAPPERS: &[&str] = &["exit code", "exit status", "exited with", "terminated"];

/// Most bytes of a line that says little else.
const SHORT: usize = 50;

/// What lines count that sum up a failure.
const COUNTED: &[&str] = &[
    "error", "errors", "failed", "failing", "failure", "failures", "problem", "problems",
];

const FATAL: &[&str] = &[
    "panic:",
    "fatal error:",
    "caused by:",
    "exception in thread",
    "thread '",
    "--- fail:",
];

const ERRORS: &[&str] = &[
    "critical", "err!", "error", "fatal", "severe", "fail", "failed", "failure",
];

const SUSPECTS: &[&str] = &[
    "abort",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "denied",
    "exceeded",
    "exception",
    "expired",
    "fail",
    "fault",
    "forbidden",
    "invalid",
    "killed",
    "mismatch",
    "missing",
    "no such",
    "not found",
    "panicked",
    "refused",
    "rejected",
    "timed out",
    "timeout",
    "unable to",
    "unauthorized",
    "undefined",
    "unexpected",
    "unknown",
    "unreachable",
    "violat",
];

/// Words of an error line that say nothing of the error.
const EMPTY: &[&str] = &[
    "critical",
    "err",
    "error",
    "errors",
    "exception",
    "fail",
    "failed",
    "failure",
    "fatal",
    "log",
    "npm",
    "severe",
];

/// The template of the line that says best why the program failed; `worth` is whether it looks
/// like an error at all.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) template: String,
    pub(super) worth: bool,
}

/// Chooses a line of `text`; none if it has none that says anything.
pub(super) fn telling(text: &str) -> Option<Telling> {
    let bodies: Vec<&str> = text.lines().map(|line| body(cut(line, LINE))).collect();
    let classes: Vec<Class> = bodies.iter().map(|line| class(line)).collect();
    // The first line of a tail may have lost its beginning: it is the last choice.
    let whole = (1..bodies.len()).rev();
    let order = [
        Class::Fatal,
        Class::Error,
        Class::Suspect,
        Class::Plain,
        Class::Wrapper,
    ];
    let by_class = order
        .iter()
        .flat_map(|wanted| whole.clone().filter(|at| classes[*at] == *wanted));
    let first = (0..bodies.len().min(1)).filter(|at| classes[*at] != Class::Noise);
    by_class.chain(first).find_map(|at| {
        let template = template_of(&bodies, at, classes[at])?;
        let worth = classes[at] >= Class::Suspect;
        Some(Telling { template, worth })
    })
}

/// The template of line `at`, with the line after it if it ends in a colon, and the function that
/// failed; none if it says nothing.
fn template_of(lines: &[&str], at: usize, class: Class) -> Option<String> {
    let mut template = template::line(lines[at]);
    if template.ends_with(':')
        && let Some(next) = lines.get(at + 1)
    {
        template = template::line(&format!("{template} {next}"));
    }
    if !says_something(&template, class) {
        return None;
    }
    match frame(lines, at).filter(|_| class == Class::Fatal) {
        Some(frame) => Some(template::line(&format!("{template} at {frame}"))),
        None => Some(template),
    }
}

/// At most the first `most` bytes of `text`.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The line without the time and the frame that logs put before it.
fn body(line: &str) -> &str {
    let edge = |next: char| next.is_whitespace() || "│╷╵".contains(next);
    let mut rest = line.trim_matches(edge);
    let mut stamped = false;
    loop {
        let word = rest.split(' ').next().unwrap_or_default();
        let zone = stamped && ["UTC", "GMT"].contains(&word);
        if word.is_empty() || !(zone || is_stamp(word)) {
            return rest.trim_start_matches(edge);
        }
        stamped = true;
        rest = rest[word.len()..].trim_start();
    }
}

/// A date, a time of day, or both.
fn is_stamp(word: &str) -> bool {
    let stamp = word.trim_matches(|next: char| "[](),:".contains(next));
    let digits = stamp.bytes().filter(u8::is_ascii_digit).count();
    let clock = stamp.contains(':') && digits >= 6;
    let date = stamp.len() == 10 && digits == 8;
    stamp.starts_with(|next: char| next.is_ascii_digit()) && (clock || date)
}

fn class(line: &str) -> Class {
    let lower = line.to_ascii_lowercase();
    if lower.is_empty() || is_frame(line) || is_low(&lower) {
        return Class::Noise;
    }
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let package = lower.starts_with("fail\t") || lower.trim() == "fail";
    if package
        || counts_failures(&lower)
        || has(WRAPPERS)
        || (lower.len() < SHORT && has(SHORT_WRAPPERS))
    {
        return Class::Wrapper;
    }
    let named_test = line.starts_with("FAILED ") && line.contains("::");
    if named_test || FATAL.iter().any(|start| lower.starts_with(start)) || is_exception(line) {
        return Class::Fatal;
    }
    let words = || lower.split(|next: char| !next.is_ascii_alphanumeric() && next != '!');
    let klog = line.starts_with(['E', 'F'])
        && line[1..].bytes().take(4).filter(u8::is_ascii_digit).count() == 4;
    let loud = words().take(12).any(|word| ERRORS.contains(&word));
    if klog || loud || lower.contains("level=error") {
        return if lower.contains("0 failed") {
            Class::Plain
        } else {
            Class::Error
        };
    }
    if has(SUSPECTS) {
        Class::Suspect
    } else {
        Class::Plain
    }
}

/// Whether the line says how many things failed, as in `Tests: 1 failed, 30 passed`: its first number counts them, and
/// a comma, a bracket or nothing follows.
fn counts_failures(lower: &str) -> bool {
    let mut words = lower
        .split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric));
    let is_number = |word: &&str| word.bytes().all(|c| c.is_ascii_digit());
    if words.by_ref().take(2).find(is_number).is_none() {
        return false;
    }
    words.take(2).any(|word| {
        let bare = word.trim_end_matches([',', ')', ';', '.']);
        let has_end = bare.len() < word.len() || lower.ends_with(bare);
        COUNTED.contains(&bare) && (has_end || lower.contains(&format!("{bare} (")))
    })
}

/// Whether the line calls itself less than an error.
fn is_low(lower: &str) -> bool {
    let bytes = lower.as_bytes();
    let klog = matches!(bytes[0], b'i' | b'w')
        && bytes.len() > 5
        && bytes[1..5].iter().all(u8::is_ascii_digit);
    let mut words = lower
        .split(|next: char| !next.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let level = words
        .by_ref()
        .take(3)
        .find(|word| LEVELS.contains(word) || ERRORS.contains(word));
    klog || level.is_some_and(|level| LEVELS.contains(&level))
        || LEVEL_MARKS.iter().any(|mark| lower.contains(mark))
}

/// A frame of a stack trace.
fn is_frame(line: &str) -> bool {
    let starts = [
        "at ",
        "File \"",
        "goroutine ",
        "created by ",
        "... ",
        "Traceback (",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// `ValueError: ...` or `com.acme.OrderException`.
fn is_exception(line: &str) -> bool {
    let name = line
        .split(|next: char| next == ':' || next.is_whitespace())
        .next()
        .unwrap_or_default();
    let rest = &line[name.len()..];
    let ends = ["Error", "Exception", "Exit", "Interrupt"]
        .iter()
        .any(|end| name.ends_with(end) && name.len() > end.len());
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._$".contains(&byte));
    ends && plain && (rest.is_empty() || rest.starts_with(':'))
}

/// Whether a template has words beside those that every error has.
fn says_something(template: &str, class: Class) -> bool {
    let mut inside = false;
    let words = template.split(|next: char| {
        inside = (inside && next != '>') || next == '<';
        inside || !next.is_alphanumeric()
    });
    let telling =
        |word: &&str| word.len() >= 3 && !EMPTY.contains(&word.to_ascii_lowercase().as_str());
    let needed = if class == Class::Fatal { 1 } else { 2 };
    words.filter(telling).take(needed).count() == needed
}

/// The innermost function of the program itself in the stack trace around line `at`.
fn frame<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let after = lines.iter().skip(at + 1).take(FRAMES);
    let go = after
        .clone()
        .skip_while(|line| !line.starts_with("goroutine "))
        .skip(1);
    let is_go = |line: &&&str| {
        line.contains('(') && !line.starts_with("runtime.") && !line.starts_with("panic(")
    };
    if let Some(line) = go.clone().find(is_go) {
        return line.rsplit_once('(').map(|(function, _)| function);
    }
    let java = after.map_while(|line| line.strip_prefix("at "));
    let library = ["java.", "jdk.", "sun.", "javax."];
    if let Some(line) = java
        .clone()
        .find(|line| !library.iter().any(|start| line.starts_with(start)))
    {
        return line.split('(').next();
    }
    let before = lines[..at].iter().rev().take(FRAMES);
    let python = before
        .take_while(|line| !line.starts_with("Traceback ("))
        .filter(|line| line.starts_with("File \""));
    let own = python
        .clone()
        .find(|line| !line.contains("site-packages") && !line.contains("/lib/python"));
    let line = own.or_else(|| python.clone().next())?;
    line.rsplit_once(" in ").map(|(_, function)| function)
}
