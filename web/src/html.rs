//! Text as it may stand in a page: characters that are not drawn, or that change how others are
//! drawn, become visible; long names lose their middle.

use askama::Template;
use askama::filters::HtmlSafe;

/// Whether a character is drawn as something else than itself, or hides or turns others.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => true,
        '\u{e0000}'..='\u{e007f}' | '\u{fff9}'..='\u{fffb}' => true,
        // No XML has them.
        '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_control(),
    }
}

/// A rendered page in which nothing is hidden: control and bidirectional characters are written
/// by their numbers. What templates write themselves has none.
pub(crate) fn visible(page: String) -> String {
    if !page.contains(is_hidden) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    for c in page.chars() {
        match is_hidden(c) {
            true => shown.push_str(&format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// How many bytes a text takes in a page.
pub(crate) fn weight(text: &str) -> usize {
    let weight = |c: char| match c {
        '<' | '>' | '&' | '"' | '\'' => 5,
        c if is_hidden(c) => 14,
        c => c.len_utf8(),
    };
    text.chars().map(weight).sum()
}

/// A text of at most `most` characters that keeps its beginning and its end.
pub(crate) fn middle_cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let tail = most.saturating_sub(1) * 2 / 5;
    let head = most.saturating_sub(1) - tail;
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

/// A text of at most `most` characters that keeps its beginning.
pub(crate) fn end_cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// A name, cut in its middle if it is long, with the whole as its title.
#[derive(Debug, Clone, Template)]
#[template(
    source = r#"{% if cut == whole %}{{ whole }}{% else %}<span title="{{ whole }}">{{ cut }}</span>{% endif %}"#,
    ext = "html"
)]
pub(crate) struct Name {
    cut: String,
    whole: String,
}

impl Name {
    pub(crate) fn new(text: &str, most: usize) -> Self {
        Self {
            cut: middle_cut(text, most),
            whole: end_cut(text, 1_000),
        }
    }
}

impl HtmlSafe for Name {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_turns_text_is_shown_by_its_number() {
        let odd = "a\u{202e}b\u{0}c\u{1b}[31m\u{200b}".to_owned();
        assert_eq!(visible(odd), "a⟨U+202E⟩b⟨U+0000⟩c⟨U+001B⟩[31m⟨U+200B⟩");
        let plain = "<p>\n\té 日本 👩‍🚀</p>".to_owned();
        assert_eq!(visible(plain.clone()), plain);
    }

    #[test]
    fn templates_and_scripts_have_no_way_around_escaping() {
        let files = |folder: &str| {
            let folder = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(folder).unwrap();
            files.map(|file| file.unwrap().path())
        };
        let is_ours = |name: &str| !name.contains("htmx");
        let mut read = 0;
        for path in files("templates").chain(files("static")) {
            if !is_ours(&path.display().to_string()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace(['\n', '\t'], " ");
            for bad in [
                "|safe",
                "| safe",
                "|escape",
                " style=",
                "<style",
                " onclick=",
                " onload=",
                "innerHTML",
                "outerHTML =",
                "insertAdjacentHTML",
                "eval(",
                "new Function",
                "document.write",
            ] {
                assert!(!text.contains(bad), "`{bad}` in {}", path.display());
            }
            read += 1;
        }
        assert!(read > 15, "{read}");
    }

    #[test]
    fn names_lose_their_middle_and_texts_their_end() {
        assert_eq!(
            middle_cut("release-of-the-shop-x7k2p", 16),
            "release-o…-x7k2p"
        );
        assert_eq!(middle_cut("short", 16), "short");
        assert_eq!(end_cut("日本語", 2), "日本…");
        let name = Name::new("<b>\"", 3).to_string();
        assert_eq!(name, "<span title=\"&#60;b&#62;&#34;\">&#60;b…</span>");
    }
}
