//! A line of a log as pieces of text: of what steers a terminal, colours of text and bold become classes, and all
//! else is dropped.

/// Classes of colours, and of these in bold. The first is the colour of text, which black and white are too.
const CLASSES: [[&str; 2]; 8] = [
    ["", "tb"],
    ["t1", "t1 tb"],
    ["t2", "t2 tb"],
    ["t3", "t3 tb"],
    ["t4", "t4 tb"],
    ["t5", "t5 tb"],
    ["t6", "t6 tb"],
    ["t7", "t7 tb"],
];
const GREY: usize = 7;

/// A part of a line in one colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its classes; empty if it is plain.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// How text is drawn from here on.
#[derive(Debug, Clone, Copy, Default)]
struct Style {
    colour: usize,
    bold: bool,
}

impl Style {
    fn class(self) -> &'static str {
        CLASSES[self.colour][usize::from(self.bold)]
    }

    /// Takes the numbers of a sequence that ends with `m`.
    fn take(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';');
        while let Some(number) = numbers.next() {
            match number
                .parse()
                .unwrap_or(if number.is_empty() { 0 } else { 999 })
            {
                0 => *self = Self::default(),
                1 => self.bold = true,
                22 => self.bold = false,
                30 | 37 | 39 | 97 => self.colour = 0,
                code @ 31..=36 => self.colour = code - 30,
                90 => self.colour = GREY,
                code @ 91..=96 => self.colour = code - 90,
                // Colours of larger palettes, with the numbers that name them.
                38 | 48 | 58 => match numbers.next() {
                    Some("5") => drop(numbers.next()),
                    Some("2") => drop(numbers.nth(2)),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// The pieces of a line. Each line begins in the colour of text, so that it looks alike wherever a page begins.
/// Bytes that are no UTF-8 become U+FFFD.
pub(crate) fn pieces(line: &[u8]) -> Vec<Piece> {
    let line = String::from_utf8_lossy(line);
    let (mut style, mut pieces) = (Style::default(), Vec::new());
    let mut reading = Reading { has_end: true };
    let (mut rest, mut text) = (&*line, String::new());
    while let Some(at) = rest.find('\u{1b}') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, numbers) = reading.sequence(rest);
        if length == 0 {
            text.push('\u{1b}');
            rest = &rest[1..];
            continue;
        }
        rest = &rest[length..];
        if let Some(numbers) = numbers {
            let before = style.class();
            style.take(numbers);
            if style.class() != before {
                push(&mut pieces, before, &mut text);
            }
        }
    }
    text.push_str(rest);
    push(&mut pieces, style.class(), &mut text);
    pieces
}

/// The text of a line in one colour.
pub(crate) fn plain(line: &[u8]) -> String {
    pieces(line).into_iter().map(|piece| piece.text).collect()
}

fn push(pieces: &mut Vec<Piece>, class: &'static str, text: &mut String) {
    if !text.is_empty() {
        let text = std::mem::take(text);
        pieces.push(Piece { class, text });
    }
}

/// What is known of the rest of a line.
struct Reading {
    /// Whether a string of a sequence may still end.
    has_end: bool,
}

impl Reading {
    /// The length of the sequence that a text begins with, 0 if that is none, and the numbers of one of colours.
    fn sequence<'a>(&mut self, text: &'a str) -> (usize, Option<&'a str>) {
        let bytes = text.as_bytes();
        let run = |from: usize, of: std::ops::RangeInclusive<u8>| {
            let rest = bytes.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|byte| of.contains(byte)).count()
        };
        let is_final = |at: usize, of: std::ops::RangeInclusive<u8>| {
            bytes.get(at).is_some_and(|byte| of.contains(byte))
        };
        match bytes.get(1) {
            Some(b'[') => {
                let numbers = run(2, 0x30..=0x3f);
                let at = run(numbers, 0x20..=0x2f);
                match is_final(at, 0x40..=0x7e) {
                    true => {
                        let is_style = at == numbers && bytes[at] == b'm';
                        (at + 1, is_style.then(|| &text[2..numbers]))
                    }
                    false => (0, None),
                }
            }
            // A string: a title, a link, an image.
            Some(b']' | b'P' | b'X' | b'^' | b'_') => match self.has_end {
                true => (self.string(text), None),
                false => (0, None),
            },
            Some(0x20..=0x2f) => {
                let at = run(1, 0x20..=0x2f);
                let length = if is_final(at, 0x30..=0x7e) { at + 1 } else { 0 };
                (length, None)
            }
            Some(0x30..=0x7e) => (2, None),
            _ => (0, None),
        }
    }

    /// The length of a sequence with a string; 0 if it does not end in this line.
    fn string(&mut self, text: &str) -> usize {
        let end = |(at, c): (usize, char)| match c {
            '\u{7}' => Some(at + 1),
            '\u{1b}' if text[at + 1..].starts_with('\\') => Some(at + 2),
            _ => None,
        };
        match text.char_indices().skip(1).find_map(end) {
            Some(length) => length,
            None => {
                self.has_end = false;
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8]) -> Vec<(&'static str, String)> {
        let pieces = pieces(line).into_iter();
        pieces.map(|piece| (piece.class, piece.text)).collect()
    }

    fn text(class: &'static str, text: &str) -> (&'static str, String) {
        (class, text.to_owned())
    }

    #[test]
    fn colours_become_classes() {
        assert_eq!(
            shown(b"a\x1b[31mred\x1b[1m bold\x1b[0m b\x1b[92mgreen\x1b[39mc\x1b[90mgrey\x1b[m."),
            [
                text("", "a"),
                text("t1", "red"),
                text("t1 tb", " bold"),
                text("", " b"),
                text("t2", "green"),
                text("", "c"),
                text("t7", "grey"),
                text("", "."),
            ]
        );
        // A number of a larger palette is none of the small one.
        assert_eq!(shown(b"\x1b[38;5;31;1ma"), [text("tb", "a")]);
        assert_eq!(shown(b"\x1b[38;2;31;32;33;36ma"), [text("t6", "a")]);
        assert_eq!(shown(b"\x1b[37;41ma"), [text("", "a")]);
    }

    #[test]
    fn what_steers_a_terminal_is_dropped() {
        for (line, kept) in [
            ("\u{1b}[2J\u{1b}[1;1Ha\u{1b}[?25lb", "ab"),
            (
                "\u{1b}]0;title\u{7}a\u{1b}]8;;http://evil.example\u{1b}\\b\u{1b}]8;;\u{1b}\\c",
                "abc",
            ),
            ("\u{1b}Pq#0\u{1b}\\a\u{1b}(Bb\u{1b}Mc", "abc"),
            // What has no end hides nothing.
            ("\u{1b}]0;a b\u{1b}]c", "\u{1b}]0;a b\u{1b}]c"),
            ("a\u{1b}[31", "a\u{1b}[31"),
            ("a\u{1b}", "a\u{1b}"),
            ("a\u{1b}é", "a\u{1b}é"),
        ] {
            assert_eq!(plain(line.as_bytes()), kept, "{line:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_marked() {
        assert_eq!(
            shown(b"a\xff\x1b[32m\xc3"),
            [text("", "a\u{fffd}"), text("t2", "\u{fffd}")]
        );
        assert!(pieces(b"").is_empty());
    }

    #[test]
    fn a_line_of_begun_sequences_is_read_once() {
        let line = "\u{1b}]".repeat(100_000);
        let began = std::time::Instant::now();
        assert_eq!(plain(line.as_bytes()).len(), line.len());
        assert!(began.elapsed().as_secs() < 2);
    }
}
