//! What errors have in common: the text of a failure without what differs from run to run.
//!
//! A signature groups failures by cause. Names of steps, parameters, tools and files, codes of
//! exits, of HTTP and of compilers stay; names of runs, pods, namespaces and nodes, ids, hashes,
//! times, addresses, directories and other numbers become placeholders. The functions here read a
//! bounded part of what they are given, in time proportional to it, and fail for no text.

mod lines;
mod name;
mod template;
#[cfg(test)]
mod tests;
mod vague;
mod value;

use std::fmt;

use sha2::{Digest, Sha256};

/// The version of the rules. Keys of different versions do not compare; a change of the rules that
/// changes any key raises it.
pub const VERSION: u32 = 2;

/// Most characters of a template.
pub const MAX_TEMPLATE: usize = 300;

/// How much of a message is read from its beginning, and as much from its end.
const MESSAGE_BYTES: usize = 4 * 1024;

/// How many bytes of a log are read, from its end.
pub const LOG_BYTES: usize = 64 * 1024;

/// Most characters of the part of a template that a message makes if there is a log too.
const MESSAGE_SHARE: usize = 150;

/// Most exits of steps that are looked at.
const MAX_EXITS: usize = 256;

/// How often a template is read again until it is its own template.
const MAX_READINGS: usize = 16;

/// Reasons that any failure has.
const GENERAL_REASONS: &[&str] = &["", "Error", "Failed", "Failure"];

/// What is known of one failure. Each part may be empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The reason of the condition.
    pub reason: &'a str,
    /// The message of the condition.
    pub message: &'a str,
    /// How the steps or containers ended, in their order.
    pub exits: &'a [Exit<'a>],
    /// The end of the log of the step that failed. It is read if the rest [is vague](Self::is_vague).
    pub log_tail: &'a str,
}

/// How a step or container ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exit<'a> {
    /// The name of the step.
    pub step: &'a str,
    /// The exit code.
    pub code: i32,
    /// The reason of its end, `OOMKilled` for one.
    pub reason: &'a str,
}

impl Evidence<'_> {
    /// Whether reason, message and exits say no more than that a program failed, and how.
    #[must_use]
    pub fn is_vague(&self) -> bool {
        let is_exit_vague = |exit: &Exit<'_>| {
            exit.code == 0
                || matches!(exit.reason, "Skipped" | "Completed")
                || GENERAL_REASONS.contains(&exit.reason)
        };
        vague::reason(self.reason.trim())
            && vague::message(self.message)
            && self.exits.iter().take(MAX_EXITS).all(is_exit_vague)
    }
}

/// The signature of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    key: Key,
    template: String,
}

/// Identifies a signature: equal for equal causes, for one [`VERSION`].
///
/// It is 50 bits of a digest of the version and the template, in which `<id>`, `<hash>`, `<number>`,
/// `<duration>` and `<size>` count as one: seven digits may be a number or the beginning of a commit.
/// Of 100,000 causes two have the same key once in 200,000 times. As text it is the digit of the
/// version and ten characters of [`DIGITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// The digits of keys, in the order of their values and of their bytes.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// How many bits of a digest a key has.
const KEY_BITS: u32 = 50;

impl Key {
    /// The key of a failure of which nothing is known.
    #[must_use]
    pub fn of_nothing() -> Self {
        key("")
    }

    /// What the text of every key begins with that has the current [`VERSION`].
    #[must_use]
    pub const fn version() -> char {
        DIGITS[VERSION as usize] as char
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (0..KEY_BITS).step_by(5).rev();
        let digits = digits.map(|at| char::from(DIGITS[(self.0 >> at & 31) as usize]));
        let text: String = std::iter::once(Self::version()).chain(digits).collect();
        f.write_str(&text)
    }
}

impl Signature {
    /// The signature of a failure, or none if nothing is known of it.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let tail = match evidence.log_tail {
            "" => "",
            tail if evidence.is_vague() => end(tail, LOG_BYTES),
            _ => "",
        };
        let log = lines::telling(tail).filter(|line| line.worth);
        let mut parts = Vec::new();
        let message = message(evidence.message);
        let exit = exit(evidence.exits, &message);
        let room = if log.is_some() {
            MESSAGE_SHARE
        } else {
            MAX_TEMPLATE
        };
        let reason = Some(evidence.reason.trim()).filter(|it| !GENERAL_REASONS.contains(it));
        let reason = reason.map(|reason| template::line(lines::cut(reason, 256)));
        parts.extend(reason.map(|reason| shortened(&reason, 64)));
        parts.push(shortened(&message, room));
        parts.extend(exit);
        parts.extend(log.map(|line| line.template));
        parts.retain(|part| !part.is_empty());
        Self::of_template(&parts.join(" | "))
    }

    /// The signature of a text of one or more lines.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        Self::of(&Evidence {
            message: text,
            ..Evidence::default()
        })
    }

    fn of_template(text: &str) -> Option<Self> {
        // A cut may take away the word that kept a number, and a name may read as a time once the
        // value beside it is gone.
        let mut template = shortened(&template::line(text), MAX_TEMPLATE);
        for _ in 0..MAX_READINGS {
            let again = shortened(&template::line(&template), MAX_TEMPLATE);
            if again == template {
                break;
            }
            template = again;
        }
        let key = key(&template);
        (!template.is_empty()).then_some(Self { key, template })
    }

    /// What identifies it.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// The text without what differs from run to run, of at most [`MAX_TEMPLATE`] characters, for
    /// people. It has no line breaks.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.template
    }
}

/// The template of a message: of its first line, and of the line that says most.
fn message(text: &str) -> String {
    let start = lines::cut(text, MESSAGE_BYTES);
    let mut rest = start.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = template::line(without_hints(rest.next().unwrap_or_default()));
    let more = &text[text.find(char::is_alphanumeric).unwrap_or(0)..];
    let Some((_, more)) = more.split_once('\n') else {
        return head;
    };
    match lines::telling(end(more, MESSAGE_BYTES)).filter(|line| line.worth) {
        Some(line) if line.template != head => {
            format!("{} | {}", shortened(&head, MESSAGE_SHARE), line.template)
        }
        _ => head,
    }
}

/// The line without the image and the command that Tekton adds to the exit of a step.
fn without_hints(line: &str) -> &str {
    let Some(at) = line
        .find(" exited with code ")
        .or_else(|| line.find(" exited because "))
    else {
        return line;
    };
    let rest = &line[at..];
    let ends = [" (image: ", "; for logs run: ", ": Error"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    end.map_or(line, |end| &line[..at + end])
}

/// What the first step that failed says, unless the message says it.
fn exit(exits: &[Exit<'_>], message: &str) -> Option<String> {
    let failed = |exit: &&Exit<'_>| exit.code != 0 && exit.reason != "Skipped";
    let exit = exits.iter().take(MAX_EXITS).find(failed)?;
    let step = template::line(lines::cut(exit.step, 128));
    let reason = Some(exit.reason).filter(|reason| !GENERAL_REASONS.contains(reason));
    let said = message.contains(&format!("{step}\" exited with code {}", exit.code));
    match reason {
        None if said => None,
        None => Some(format!("step {step}: exit code {}", exit.code)),
        Some(reason) => Some(format!(
            "step {step}: exit code {} ({})",
            exit.code,
            template::line(lines::cut(reason, 64))
        )),
    }
}

/// At most the last `most` bytes of `text`.
fn end(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// At most `most` characters of `text`: a third from its beginning, and its end, which names the
/// first cause where errors wrap each other. It is cut between words if there are any.
fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let at = |nth: usize| {
        text.char_indices()
            .nth(nth)
            .map_or(text.len(), |(at, _)| at)
    };
    let head = &text[..at(most / 3)];
    let head = head.rfind(' ').map_or(head, |end| &head[..end]);
    let tail = &text[at(count + most / 3 + 3 - most)..];
    let tail = tail.find(' ').map_or(tail, |start| &tail[start + 1..]);
    format!("{head} … {}", tail.trim_start_matches("… "))
}

/// The digest of what is the same for every failure of a cause.
fn key(template: &str) -> Key {
    let mut folded = template.to_owned();
    for same in ["<hash>", "<number>", "<duration>", "<size>"] {
        folded = folded.replace(same, "<id>");
    }
    let mut digest = Sha256::new();
    digest.update(VERSION.to_le_bytes());
    let mut counted = false;
    for word in folded.split(' ') {
        // `1 error` and `2 errors`.
        let word = if counted {
            word.strip_suffix('s').unwrap_or(word)
        } else {
            word
        };
        counted = word.ends_with("<id>");
        digest.update(word.as_bytes());
        digest.update(b" ");
    }
    let digest = digest.finalize();
    let first = digest.iter().take(8);
    let first = first.fold(0_u64, |key, byte| key << 8 | u64::from(*byte));
    Key(first >> (u64::BITS - KEY_BITS))
}
