//! One line of text without what differs from run to run.
//!
//! The line is cut at white space and punctuation, and each piece is judged by its form and by the
//! word before it: the number in `exit code 137` stays, that in `after 137 ms` goes. Each byte is
//! looked at a bounded number of times.

mod piece;
mod polish;

use super::{
    name::{self, Segment},
    value::{self, Unit},
};

/// What is put in the place of a value.
const PLACEHOLDERS: &[&str] = &[
    "<addr>",
    "<duration>",
    "<hash>",
    "<id>",
    "<name>",
    "<number>",
    "<path>",
    "<size>",
    "<time>",
];

/// Words that a number after them makes a different error.
const CODES: &[&str] = &[
    "code",
    "codes",
    "curl",
    "errno",
    "exit",
    "exited",
    "exitcode",
    "exitstatus",
    "http",
    "https",
    "rc",
    "returncode",
    "signal",
    "sqlstate",
    "status",
    "statuscode",
];

/// The first words of phrases of HTTP (RFC 9110), which tell a status from another number.
const PHRASES: &[&str] = &[
    "Bad",
    "Client",
    "Conflict",
    "Forbidden",
    "Gateway",
    "Gone",
    "Internal",
    "Locked",
    "Method",
    "Not",
    "Precondition",
    "Request",
    "Server",
    "Service",
    "Too",
    "Unauthorized",
    "Unprocessable",
];

/// How many other words may stand between such a word and its number.
const CODE_REACH: u8 = 2;

/// Most digits of such a number.
const CODE_DIGITS: usize = 5;

/// Kinds of objects that exist for one run: their names go.
const INSTANCES: &[&str] = &[
    "customrun",
    "customruns",
    "job",
    "jobs",
    "namespace",
    "namespaces",
    "node",
    "nodes",
    "persistentvolumeclaim",
    "persistentvolumeclaims",
    "pipelinerun",
    "pipelineruns",
    "pod",
    "pods",
    "raycluster",
    "rayjob",
    "replicaset",
    "replicasets",
    "taskrun",
    "taskruns",
    "workflow",
    "workflows",
];

/// Words before `run` that make it a kind of [`INSTANCES`].
const RUNS: &[&str] = &["custom", "pipeline", "task"];

/// Words before an id that only one request has.
const ID_WORDS: &[&str] = &[
    "correlationid",
    "hostid",
    "reqid",
    "requestid",
    "sessionid",
    "spanid",
    "traceid",
    "transactionid",
];

/// Words that make such a word together with `id`.
const ID_PREFIXES: &[&str] = &[
    "correlation",
    "host",
    "request",
    "session",
    "span",
    "trace",
    "transaction",
];

/// What the words before a piece say about it.
#[derive(Debug, Default)]
struct Context {
    /// Over how many more words a number is a code.
    code: u8,
    /// The last word was `error`, after which a number is a code if nothing follows.
    error: bool,
    /// The next name is that of an object of one run.
    instance: bool,
    /// The next value is an id, whatever it looks like.
    id: bool,
    /// The last word, in small letters.
    last: String,
}

impl Context {
    fn word(&mut self, word: &str) {
        let lower = word.to_ascii_lowercase();
        let is = |words: &[&str]| words.binary_search(&lower.as_str()).is_ok();
        self.code = if is(CODES) {
            CODE_REACH + 1
        } else {
            self.code.saturating_sub(1)
        };
        self.error = lower == "error" || lower == "err";
        self.instance = is(INSTANCES) || (lower == "run" && RUNS.contains(&self.last.as_str()));
        self.id = is(ID_WORDS) || (lower == "id" && ID_PREFIXES.contains(&self.last.as_str()));
        self.last = lower;
    }

    /// After a value.
    fn value(&mut self) {
        *self = Self::default();
    }
}

/// Reads a line and writes its template.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    out: String,
    context: Context,
}

/// The template of one line. What it leaves may read as a value in its turn.
pub(super) fn line(text: &str) -> String {
    let mut scanner = Scanner {
        text,
        at: 0,
        out: String::with_capacity(text.len().min(1024)),
        context: Context::default(),
    };
    while let Some(next) = scanner.rest().chars().next() {
        scanner.step(next);
    }
    polish::polish(&scanner.out)
}

/// What a piece ends at.
fn is_delimiter(next: char) -> bool {
    next.is_whitespace() || next.is_control() || "\"'`()[]{}<>,;=|*!?&\\…".contains(next)
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn step(&mut self, next: char) {
        let rest = self.rest();
        if next == '\u{1b}' {
            self.at += escape(rest);
        } else if next.is_whitespace() || next.is_control() {
            self.space();
            self.at += next.len_utf8();
        } else if next == '\\' {
            self.backslash(rest);
        } else if let Some(placeholder) = PLACEHOLDERS
            .iter()
            .find(|it| next == '<' && rest.starts_with(**it))
        {
            self.out.push_str(placeholder);
            self.context.value();
            self.at += placeholder.len();
        } else if let Some(length) = bracketed_address(rest) {
            self.value("<addr>");
            self.at += length;
        } else if is_delimiter(next) {
            let apostrophe = next == '\'' && self.out.ends_with(char::is_alphanumeric);
            if apostrophe || !"\"'`=".contains(next) {
                self.context.instance = false;
            }
            self.out.push(next);
            self.at += next.len_utf8();
        } else {
            self.piece();
        }
    }

    fn space(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    /// An escape of a text within a text.
    fn backslash(&mut self, rest: &str) {
        match rest.as_bytes().get(1) {
            Some(b'n' | b't' | b'r') => {
                self.space();
                self.at += 2;
            }
            Some(b'"' | b'\'' | b'\\') => self.at += 1,
            _ => {
                self.out.push('\\');
                self.at += 1;
            }
        }
    }

    /// Writes a placeholder.
    fn value(&mut self, placeholder: &str) {
        self.out.push_str(placeholder);
        self.context.value();
    }

    /// Writes the name in `text`, segment by segment.
    fn name(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let fresh = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
            if let Some(length) = fresh.then(|| value::uuid(&bytes[at..])).flatten() {
                self.value("<id>");
                at += length;
            } else if bytes[at].is_ascii_digit() && fresh && self.numeric(text, &mut at) {
            } else if bytes[at].is_ascii_alphanumeric() {
                let end = at
                    + bytes[at..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_alphanumeric())
                        .count();
                let goes_on = text[end..].chars().next().is_some_and(char::is_alphabetic);
                let suffix = at > 0 && bytes[at - 1] == b'-';
                at = self.segment(text, at, end, suffix && !goes_on);
            } else {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                self.out.push_str(&text[at..at + next]);
                at += next;
            }
        }
    }

    /// Writes the number that begins at `at`, unless it is the beginning of something longer.
    fn numeric(&mut self, text: &str, at: &mut usize) -> bool {
        let rest = &text[*at..];
        let follows = |length: usize| {
            rest[length..]
                .chars()
                .next()
                .is_some_and(|next| next.is_alphanumeric())
        };
        if let Some((length, unit)) = value::measure(rest).filter(|(length, _)| !follows(*length)) {
            self.measured(unit);
            *at += length;
            return true;
        }
        if let Some(hex) = rest.strip_prefix("0x") {
            let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
            let addr = length > 0 && !follows(2 + length);
            if addr {
                self.value("<addr>");
                *at += 2 + length;
            }
            return addr;
        }
        let length = value::number(rest.as_bytes());
        if follows(length) {
            return false;
        }
        let ends = *at + length == text.len();
        if ends {
            // Groups of thousands, cut apart at their commas.
            self.at += value::thousands(self.rest().as_bytes());
        }
        let spaced = ends.then(|| value::spaced_unit(self.rest())).flatten();
        if self.is_code(&rest[..length], ends) {
            self.out.push_str(&rest[..length]);
            self.context.value();
        } else if let Some((unit, measure)) = spaced {
            self.measured(measure);
            self.at += unit;
        } else {
            self.value("<number>");
        }
        *at += length;
        true
    }

    fn measured(&mut self, unit: Unit) {
        self.value(match unit {
            Unit::Time => "<duration>",
            Unit::Size => "<size>",
        });
    }

    fn is_code(&self, number: &str, ends: bool) -> bool {
        let alone = || {
            let mut rest = self.rest().trim_start_matches([':', ')', ']', ',']).chars();
            ends && !(rest.next() == Some(' ') && rest.next().is_some_and(char::is_alphabetic))
        };
        number.len() <= CODE_DIGITS
            && value::is_digits(number)
            && (self.context.code > 0
                || (self.context.error && alone())
                || (ends && is_status(number, self.rest())))
    }

    /// Writes the segment of ASCII letters and digits between `at` and `end`; where to go on.
    fn segment(&mut self, text: &str, at: usize, end: usize, suffix: bool) -> usize {
        let segment = &text[at..end];
        let judged = match segment.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Segment::Numbered(0),
            false => name::segment(segment, suffix),
        };
        match judged {
            Segment::Word => {
                self.out.push_str(segment);
                self.context.word(segment);
            }
            Segment::Id => self.value("<id>"),
            Segment::Hash => self.value("<hash>"),
            Segment::Numbered(letters) => {
                self.out.push_str(&segment[..letters]);
                self.value("<number>");
                return at + letters + value::number(&text.as_bytes()[at + letters..]);
            }
        }
        end
    }
}

/// Whether `number` is a status of HTTP, by the phrase behind it.
fn is_status(number: &str, rest: &str) -> bool {
    let phrase = rest
        .trim_start_matches([':', ' '])
        .split(' ')
        .next()
        .unwrap_or_default();
    number.len() == 3 && number.starts_with(['4', '5']) && PHRASES.binary_search(&phrase).is_ok()
}

/// The length of an address of IPv6 in brackets, with its port.
fn bracketed_address(rest: &str) -> Option<usize> {
    let (host, after) = rest
        .strip_prefix('[')?
        .get(..46.min(rest.len() - 1))?
        .split_once(']')?;
    host.parse::<std::net::Ipv6Addr>().ok()?;
    let digits = after.strip_prefix(':').map_or(0, |port| {
        port.bytes().take_while(u8::is_ascii_digit).count()
    });
    Some(host.len() + 2 + if digits > 0 { 1 + digits } else { 0 })
}

/// The length of an escape sequence of a terminal.
fn escape(rest: &str) -> usize {
    if !rest.starts_with("\u{1b}[") {
        return 1;
    }
    let parameters = rest
        .bytes()
        .skip(2)
        .take(16)
        .take_while(|byte| matches!(byte, 0x20..=0x3f))
        .count();
    let end = 2 + parameters;
    end + usize::from(
        rest.as_bytes()
            .get(end)
            .is_some_and(|byte| matches!(byte, 0x40..=0x7e)),
    )
}
