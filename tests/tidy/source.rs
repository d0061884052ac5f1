//! The files of the tree, and their code without comments and texts.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) struct Source {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// `text` with comments, and what stands between quotes, blanked out; of the same length
    /// and with the same lines. Only for Rust.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            code_of(text)
        } else {
            String::new()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    /// A complaint about the line of this byte.
    pub(crate) fn complaint(&self, at: usize, text: &str) -> String {
        let line = 1 + self.text.as_bytes()[..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        format!("{}:{line}: {text}", self.path)
    }

    /// Where `word` stands in the code, not as a part of a longer word.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let part =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let code = self.code.as_bytes();
        self.code
            .match_indices(word)
            .map(|(at, _)| at)
            .filter(move |at| {
                let before = at.checked_sub(1).and_then(|before| code.get(before));
                !part(before) && (!part(code.get(at + word.len())) || word.ends_with([':', '_']))
            })
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The manifests below `crates`.
pub(crate) fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).expect("the tree can be read");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.expect("the tree can be read").file_name();
        format!("crates/{}/Cargo.toml", name.display())
    };
    folders.map(name).collect()
}

/// Every Rust file that is kept.
pub(crate) fn tree() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root(), &mut paths);
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let short = path
            .strip_prefix(root())
            .expect("the walk began at the root");
        let short = short.to_str().expect("paths are text").replace('\\', "/");
        if short.ends_with(".rs")
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(Source::new(&short, &text));
        }
    }
    files
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the tree can be read") {
        let path = entry.expect("the tree can be read").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let skipped = ["target", ".git", "node_modules"].contains(&name) || name.contains(".db");
        if skipped || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// `text` without comments and without what stands between quotes.
fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (from, to) = if rest.starts_with(b"//") {
            (at, at + find(rest, b"\n").unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            (at, at + comment_length(rest))
        } else if let Some((open, length)) = quoted(bytes, at) {
            (at + open, at + length)
        } else {
            at += 1;
            continue;
        };
        for byte in &mut code[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = to.max(at + 1);
    }
    String::from_utf8(code).expect("only whole comments and texts are blanked")
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The length of a comment that may hold others.
fn comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// How many bytes open a text or character that begins at `at`, and how many it has in all.
fn quoted(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest[0] {
        b'"' => Some((1, escaped_length(rest, b'"'))),
        b'\'' if rest.get(1) == Some(&b'\\') => Some((1, escaped_length(rest, b'\''))),
        b'\'' => {
            // A character, not a lifetime: one scalar and a closing quote.
            let text = std::str::from_utf8(&rest[1..]).ok()?;
            let width = text.chars().next()?.len_utf8();
            (rest.get(1 + width) == Some(&b'\'')).then_some((1, 2 + width))
        }
        b'r' if !inside_word || bytes[at - 1] == b'b' || bytes[at - 1] == b'c' => {
            let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            if rest.get(1 + hashes) != Some(&b'"') {
                return None;
            }
            let open = 2 + hashes;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = find(&rest[open..], close.as_bytes()).unwrap_or(rest.len() - open);
            Some((open, (open + length + close.len()).min(rest.len())))
        }
        _ => None,
    }
}

fn escaped_length(rest: &[u8], end: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == end => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[test]
fn code_is_what_is_neither_comment_nor_text() {
    let samples = [
        ("a // b\nc", "a \nc"),
        ("a /* b /* c */ \n d */ e", "a \n e"),
        (r#"f("a\"b", c)"#, r#"f(" , c)"#),
        (r##"f(r#"a"b"#, c)"##, r##"f(r#" , c)"##),
        ("let c = '\"'; 'x'", "let c = ' ; ' "),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        (r"'\'' + '\\' + '\u{1F600}'", "' + ' + ' "),
        ("\"\u{e9}\" x", "\" x"),
    ];
    for (text, expected) in samples {
        let code = code_of(text);
        assert_eq!(code.len(), text.len(), "{text}");
        let mut squeezed = code.clone();
        while squeezed.contains("  ") {
            squeezed = squeezed.replace("  ", " ");
        }
        assert_eq!(squeezed, expected, "{text}");
    }
}

#[test]
fn a_word_is_not_a_part_of_another() {
    let file = Source::new("a.rs", "sqlx my_sqlx sqlx2 (sqlx) \"sqlx\" sqlx::a");
    assert_eq!(file.words("sqlx").collect::<Vec<_>>(), [0, 20, 33]);
}
