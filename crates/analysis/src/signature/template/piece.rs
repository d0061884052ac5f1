//! One piece of a line: text without white space, quotes and brackets.

use super::{
    super::{
        name::{self, Segment},
        value,
    },
    INSTANCES, Scanner, is_delimiter,
};

/// Directories whose files are programs.
const PROGRAMS: &[&str] = &["bin", "sbin"];

/// Kinds of objects that a run refers to with their namespace: `Pipeline team/build`.
const REFERRED: &[&str] = &["clustertask", "pipeline", "task"];

/// Prefixes of refs of git.
const REFS: &[&str] = &[
    "refs/heads/",
    "refs/tags/",
    "refs/pull/",
    "refs/remotes/",
    "origin/",
];

/// What may stand behind a name without being a part of it.
const STOPS: &[char] = &['.', ':', '-', '~', '^', '@', '#', '%', '/', '+', '$', '_'];

/// What a path, a URL or an id ends at.
fn is_end(next: char) -> bool {
    next.is_whitespace() || next.is_control() || "\"'`<>()[]{},;|\\…".contains(next)
}

impl Scanner<'_> {
    /// Reads the piece that begins here.
    pub(super) fn piece(&mut self) {
        let rest = self.rest();
        let fresh = !self
            .out
            .ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if let Some(length) = value::time(rest.as_bytes()).filter(|_| fresh) {
            self.at += length;
            return self.value("<time>");
        }
        if rest.get(1..3) == Some(":\\") && rest.as_bytes()[0].is_ascii_alphabetic() {
            let end = rest.find(|next: char| next != '\\' && is_end(next));
            self.at += end.unwrap_or(rest.len());
            return self.value("<path>");
        }
        let end = rest.find(is_delimiter).unwrap_or(rest.len());
        if let Some(scheme) = rest[..end].find("://").filter(|at| *at > 0) {
            return self.url(rest, scheme);
        }
        if self.context.id && rest[..end].contains(char::is_alphanumeric) {
            let end = rest.find(is_end).unwrap_or(rest.len());
            self.at += rest[..end].trim_end_matches(['.', ':']).len().max(1);
            return self.value("<id>");
        }
        self.trimmed(&rest[..end]);
    }

    /// Reads `piece` without what stands around the name in it.
    fn trimmed(&mut self, piece: &str) {
        let core = piece.trim_end_matches(STOPS);
        let first = core.find(char::is_alphanumeric).unwrap_or(core.len());
        let slashed = core[..first].contains('/');
        let lead = core[..first]
            .find(['/', '.', '~'])
            .filter(|_| slashed)
            .unwrap_or(first);
        self.out.push_str(&core[..lead]);
        self.at += core.len();
        if lead < core.len() {
            self.core(&core[lead..]);
        }
        let stops = &piece[core.len()..];
        if stops.starts_with(['.', '/']) {
            self.context.instance = false;
        }
        self.out.push_str(stops);
        self.at += stops.len();
    }

    fn core(&mut self, core: &str) {
        let quoted = self.out.ends_with(['"', '\'', '`']);
        let named = core.contains(|next: char| next == '-' || next.is_ascii_digit());
        let joined = self.out.ends_with('>');
        if self.context.instance && (quoted || named) {
            self.value("<name>");
        } else if value::is_address(core) {
            self.value("<addr>");
        } else if let Some(hex) = core.strip_prefix("0x").filter(|hex| value::is_hex(hex)) {
            if self.context.code > 0 && hex.len() <= 8 {
                self.out.push_str(core);
                self.context = super::Context::default();
            } else {
                self.value("<addr>");
            }
        } else if let Some(account) = core.strip_prefix("system:serviceaccount:") {
            self.out.push_str("system:serviceaccount:<name>:");
            self.name(account.rsplit(':').next().unwrap_or_default());
        } else if is_protocol(core) {
            self.out.push_str("HTTP");
            self.context.word("http");
        } else if is_oracle(core) {
            self.out.push_str(core);
            self.context.word(core);
        } else if joined {
            self.name(core);
        } else if core.starts_with(['/', '.', '~']) {
            self.path(core);
        } else if let Some((before, after)) = core.split_once('@') {
            self.at_sign(before, after);
        } else if core.contains('/') {
            self.slashes(core);
        } else {
            self.name(core);
            // A kind with its group: `pods.metrics.k8s.io "x"`.
            let kind = core.split_once('.').map(|(kind, _)| kind);
            self.context.instance |=
                kind.is_some_and(|kind| INSTANCES.binary_search(&kind).is_ok());
        }
    }

    /// `image@digest`, `package@version` or `user@host`.
    fn at_sign(&mut self, before: &str, after: &str) {
        if after.starts_with("sha256:") || after.starts_with("sha512:") {
            self.slashes(before);
            self.out.push('@');
            self.value("<hash>");
        } else if after.starts_with(|next: char| !next.is_alphabetic()) {
            self.name(before);
            self.out.push('@');
            self.name(after);
        } else {
            self.value("<name>");
            self.out.push('@');
            self.slashes(after);
        }
    }

    /// A path. The name of a file with an extension, and that of a program, stays.
    fn path(&mut self, path: &str) {
        let (path, test) = match path.split_once("::") {
            Some((path, test)) => (path, Some(test)),
            None => (path, None),
        };
        self.value("<path>");
        let mut parts = without_position(path).rsplit('/');
        let file = parts.next().unwrap_or_default();
        let program = parts
            .next()
            .is_some_and(|parent| PROGRAMS.contains(&parent));
        if is_file(file) || (program && is_plain(file)) {
            self.out.push('/');
            self.name(file);
        }
        if let Some(test) = test {
            self.out.push_str("::");
            self.name(test);
        }
    }

    /// Names with slashes between them: a file, a reference to an image or a module, a ref of git.
    fn slashes(&mut self, core: &str) {
        if let Some(prefix) = REFS.iter().find(|prefix| core.starts_with(**prefix)) {
            self.out.push_str(prefix);
            return self.value("<name>");
        }
        let (first, rest) = core.split_once('/').unwrap_or((core, ""));
        let lower = first.to_ascii_lowercase();
        if !rest.is_empty() && INSTANCES.binary_search(&lower.as_str()).is_ok() {
            self.out.push_str(first);
            self.out.push('/');
            return self.value("<name>");
        }
        let one = !rest.is_empty() && !rest.contains('/');
        if one && REFERRED.contains(&self.context.last.as_str()) {
            return self.value("<name>");
        }
        let host = first.contains(['.', ':']);
        let path = core.split_once("::").map_or(core, |(path, _)| path);
        let last = without_position(path)
            .rsplit('/')
            .next()
            .unwrap_or_default();
        if !host && !rest.is_empty() && (is_file(last) || core.matches('/').count() >= 3) {
            return self.path(core);
        }
        if one && !host && is_namespaced(first, rest) {
            return self.value("<name>");
        }
        for (nth, part) in core.split('/').enumerate() {
            if nth > 0 {
                self.out.push('/');
            }
            self.component(part);
        }
    }

    /// A part of a reference, with the tag or the port behind it.
    fn component(&mut self, part: &str) {
        if value::is_address(part) {
            return self.value("<addr>");
        }
        let (name, tag) = part.split_once(':').unwrap_or((part, ""));
        self.name(name);
        if !tag.is_empty() {
            self.out.push(':');
            self.value("<number>");
        }
    }

    /// The scheme and the host of a URL stay.
    fn url(&mut self, rest: &str, scheme: usize) {
        let end = rest.find(is_end).unwrap_or(rest.len());
        let stops = ['.', ':', '!', '?', '/'];
        let end = rest[..end].trim_end_matches(stops).len().max(scheme + 3);
        self.at += end;
        let (scheme, after) = rest[..end].split_at(scheme + 3);
        self.out.push_str(scheme);
        let (authority, path) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        self.component(authority.rsplit('@').next().unwrap_or_default());
        // `unexpected status code https://...: 429`
        let code = self.context.code;
        self.context = super::Context {
            code,
            ..super::Context::default()
        };
        if !path.is_empty() {
            self.out.push_str("/<path>");
        }
    }
}

/// `path` without the line and the column behind it.
fn without_position(mut path: &str) -> &str {
    while let Some((before, number)) = path.rsplit_once(':') {
        if !value::is_digits(number) {
            break;
        }
        path = before;
    }
    path
}

/// A name with an extension that is not drawn for each run.
fn is_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        let letter = extension.starts_with(|next: char| next.is_ascii_alphabetic());
        let plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
        letter && plain && extension.len() <= 5 && is_plain(stem)
    })
}

fn is_plain(name: &str) -> bool {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || b"-_.".contains(&byte));
    plain && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The version before a status: `HTTP/1.1 404`.
fn is_protocol(core: &str) -> bool {
    let names = ["http/1.0", "http/1.1", "http/2", "http/2.0", "http/3"];
    names.iter().any(|name| core.eq_ignore_ascii_case(name))
}

/// A code of Oracle's: `ORA-12541`.
fn is_oracle(core: &str) -> bool {
    core.split_once('-').is_some_and(|(letters, digits)| {
        let upper = letters.bytes().all(|byte| byte.is_ascii_uppercase());
        letters.len() == 3 && upper && digits.len() == 5 && value::is_digits(digits)
    })
}

/// Whether `namespace/name` is an object that was made for one run, by the end of its name.
fn is_namespaced(namespace: &str, name: &str) -> bool {
    let letters = namespace.contains(|next: char| next.is_ascii_alphabetic());
    let drawn = name.rsplit_once('-').is_some_and(|(_, end)| {
        let judged = name::segment(end, true);
        value::is_digits(end) || matches!(judged, Segment::Id | Segment::Hash)
    });
    letters && drawn && !name.contains([':', '.'])
}
