//! What a file says of modules: which it opens, and every path that it names, by `use` or in its
//! code. What exists for tests only is passed over.

use crate::source::Source;

/// Something that a file says, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    File(String),
    Opens(String),
    /// The end of what was opened last.
    Closes,
    Names(Named),
}

/// A path of more than one name, or what `use` brings in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The byte at which it is named.
    pub(crate) at: usize,
    pub(crate) path: Vec<String>,
    /// The name that it has from then on, if `use` gives it one; `*` for all that is there.
    pub(crate) brought_as: Option<String>,
}

/// What `file` says, without what is for tests only.
pub(crate) fn parts(file: &Source) -> Vec<Part> {
    let mut reader = Reader {
        file,
        tokens: tokens(&file.code),
        at: 0,
        parts: Vec::new(),
    };
    reader.body();
    reader.parts
}

struct Reader<'f> {
    file: &'f Source,
    /// Words, `::` and other characters, each with its byte.
    tokens: Vec<(usize, &'f str)>,
    at: usize,
    parts: Vec<Part>,
}

impl<'f> Reader<'f> {
    /// The token so many after the present one; empty after the last.
    fn ahead(&self, count: usize) -> &'f str {
        let token = self.tokens.get(self.at + count);
        token.map_or("", |(_, token)| token)
    }

    /// Where the present token stands.
    fn byte(&self) -> usize {
        let token = self.tokens.get(self.at);
        token.map_or(self.file.code.len(), |(byte, _)| *byte)
    }

    /// Reads until the end of a module.
    fn body(&mut self) {
        let mut depth = 0_usize;
        while let Some((_, token)) = self.tokens.get(self.at).copied() {
            match token {
                "#" if self.is_for_tests() => {
                    let of_all_around = self.ahead(1) == "!";
                    self.pass_brackets();
                    match of_all_around {
                        true => self.pass_rest(),
                        false => self.pass_item(),
                    }
                    continue;
                }
                "mod" if self.ahead(2) == ";" => {
                    self.parts.push(Part::File(self.ahead(1).to_owned()));
                }
                "mod" if self.ahead(2) == "{" => {
                    self.parts.push(Part::Opens(self.ahead(1).to_owned()));
                    self.at += 3;
                    self.body();
                    self.parts.push(Part::Closes);
                    continue;
                }
                "use" if self.ahead(1) != "<" => {
                    self.at += 1;
                    self.tree(&[]);
                    continue;
                }
                "{" => depth += 1,
                "}" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                "}" => depth -= 1,
                _ if is_word(token) && self.ahead(1) == "::" && is_word(self.ahead(2)) => {
                    self.inline();
                    continue;
                }
                // The rest of a path that begins otherwise, as in `<T>::a::b`.
                "::" if is_word(self.ahead(1)) => self.at += 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads a path in the code.
    fn inline(&mut self) {
        let (at, mut path) = (self.byte(), vec![self.ahead(0).to_owned()]);
        while self.ahead(1) == "::" && is_word(self.ahead(2)) {
            path.push(self.ahead(2).to_owned());
            self.at += 2;
        }
        self.at += 1;
        let brought_as = None;
        self.parts.push(Part::Names(Named {
            at,
            path,
            brought_as,
        }));
    }

    /// Reads what is brought in, below the names `before`.
    fn tree(&mut self, before: &[String]) {
        let (at, mut path) = (self.byte(), before.to_vec());
        let mut name;
        loop {
            match self.ahead(0) {
                "{" => {
                    self.at += 1;
                    while !["}", ""].contains(&self.ahead(0)) {
                        self.tree(&path);
                        self.at += usize::from(self.ahead(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "*" => name = Some("*".to_owned()),
                // `a::{self}` is `a`.
                "self" if !path.is_empty() => name = path.last().cloned(),
                word => {
                    path.push(word.to_owned());
                    name = Some(word.to_owned());
                }
            }
            self.at += 1;
            match self.ahead(0) {
                "::" => self.at += 1,
                "as" => {
                    name = Some(self.ahead(1).to_owned());
                    self.at += 2;
                    break;
                }
                _ => break,
            }
        }
        self.parts.push(Part::Names(Named {
            at,
            path,
            brought_as: name,
        }));
    }

    /// Whether the attribute here keeps what follows for tests.
    fn is_for_tests(&self) -> bool {
        let text = &self.file.code[self.byte()..];
        let text: String = text
            .chars()
            .filter(|c| !c.is_whitespace())
            .take(20)
            .collect();
        let condition = text.trim_start_matches(['#', '!']);
        ["[cfg(test)]", "[cfg(any(test,", "[cfg(all(test,"]
            .iter()
            .any(|known| condition.starts_with(known))
    }

    fn pass_brackets(&mut self) {
        while !["]", ""].contains(&self.ahead(0)) {
            self.at += 1;
        }
        self.at += 1;
    }

    /// Passes everything up to the end of the module, but not that end.
    fn pass_rest(&mut self) {
        let mut depth = 0_usize;
        while !self.ahead(0).is_empty() {
            match self.ahead(0) {
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Passes an item, a field or a statement, which its body, `;` or `,` ends.
    fn pass_item(&mut self) {
        let mut depth = 0_usize;
        let mut is_field = true;
        while !self.ahead(0).is_empty() {
            match self.ahead(0) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" if depth == 0 => return,
                token @ ("}" | ")" | "]") => {
                    depth -= 1;
                    if depth == 0 && token == "}" && self.ahead(1) != ";" {
                        self.at += 1;
                        return;
                    }
                }
                ";" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                "," if depth == 0 && is_field => return,
                "fn" | "impl" | "struct" | "enum" | "trait" | "type" => is_field = false,
                _ => {}
            }
            self.at += 1;
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The words of `code`, its `::`, and its other characters, each with its byte.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = match first {
            _ if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            tokens.push((at, &rest[..length]));
        }
        at += length;
    }
    tokens
}

/// The paths of a text, each with the name it is brought in as.
fn paths(text: &str) -> Vec<String> {
    let told = |part| match part {
        Part::File(name) => format!("mod {name}"),
        Part::Opens(name) => format!("{name} {{"),
        Part::Closes => "}".to_owned(),
        Part::Names(named) => match named.brought_as {
            Some(name) => format!("{} as {name}", named.path.join("::")),
            None => named.path.join("::"),
        },
    };
    parts(&Source::new("src/a.rs", text))
        .into_iter()
        .map(told)
        .collect()
}

#[test]
fn use_trees_are_told_apart_into_paths() {
    let cases: [(&str, &[&str]); 6] = [
        ("use super::a::B;", &["super::a::B as B"]),
        ("pub(crate) use a::B as C;", &["a::B as C"]),
        (
            "use crate::{a::{self, b::*}, c as d, E};",
            &[
                "crate::a as a",
                "crate::a::b as *",
                "crate::c as d",
                "crate::E as E",
            ],
        ),
        ("use {a::B, c};", &["a::B as B", "c as c"]),
        (
            "use self::a::{b::{C, D,},};",
            &["self::a::b::C as C", "self::a::b::D as D"],
        ),
        ("fn f() -> impl Fn() + use<'a> { x }", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(paths(text), expected, "{text}");
    }
}

#[test]
fn paths_in_code_are_found_and_others_are_not() {
    let text = "fn f(a: &crate::a::A) -> Vec<super::b::B> { c::d::<E>(); e.f(); x::y!(); }\n\
                #[error(\"{}\", super::g::H)]\n// crate::no\nfn g() { \"crate::no\"; <T>::a::b() }";
    assert_eq!(
        paths(text),
        ["crate::a::A", "super::b::B", "c::d", "x::y", "super::g::H"]
    );
}

#[test]
fn what_is_for_tests_is_passed_over() {
    let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(any(test, feature = \"testing\"))]\npub mod c;\n\
                #[cfg(test)]\nmod tests { use super::x; fn f() { a::b() } }\n\
                #[cfg(test)]\nuse super::{y, z};\n#[cfg(test)]\n#[track_caller]\nfn f<A, B>(a: [u8; 2]) { a::b() }\n\
                struct S { #[cfg(test)] a: a::B, b: c::D }\nmod d { use e::F; }\n#[cfg(feature = \"x\")]\nmod g;\n";
    let left = ["mod a", "c::D", "d {", "e::F as F", "}", "mod g"];
    assert_eq!(paths(text), left);
    assert_eq!(
        paths("mod a { #![cfg(test)] use b::C; } mod d;"),
        ["a {", "}", "mod d"]
    );
}
