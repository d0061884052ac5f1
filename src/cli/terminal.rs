//! The terminal: how wide it is, which colours and shapes it shows, and tables that fit it.

use std::io::IsTerminal as _;

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use terminal_size::{Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Blanks between columns.
const GAP: &str = "  ";
/// A column is cut to no fewer cells than this, or than its title has where that is short.
const MIN_WIDTH: usize = 6;
const SHORT_TITLE: usize = 8;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    /// On terminals, unless NO_COLOR says otherwise
    Auto,
    /// Always, also into files
    Always,
    /// Never, also on terminals
    Never,
}

/// Where standard output goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Cells of a line, on a terminal.
    pub(super) width: Option<usize>,
    /// Whether words are coloured.
    pub(super) colour: bool,
    /// Whether shapes may be other than ASCII: on terminals of UTF-8.
    pub(super) unicode: bool,
}

impl Screen {
    /// That of this process.
    pub(super) fn of_stdout(when: ColorWhen) -> Self {
        let out = std::io::stdout();
        let colour = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => AutoStream::choice(&out) != ColorChoice::Never,
        };
        let width = out.is_terminal().then(|| {
            let size = terminal_size_of(&out);
            size.map_or(80, |(Width(width), _)| usize::from(width))
        });
        // The locale says nothing of a file or a pipe.
        let unicode = width.is_some() && supports_unicode::on(supports_unicode::Stream::Stdout);
        Self {
            width,
            colour,
            unicode,
        }
    }

    /// A status behind the shape that says the same, in its colour.
    pub(super) fn status(&self, word: &str) -> Cell {
        Cell {
            text: format!("{} {word}", self.shape(word)),
            colour: paint(word),
        }
    }

    /// The shape that says the same as a status.
    pub(super) fn shape(&self, word: &str) -> char {
        let (drawn, typed) = match word {
            "succeeded" => ('✓', 'v'),
            "failed" => ('✗', 'x'),
            "timeout" => ('◷', 'o'),
            "cancelled" => ('⊘', '-'),
            "running" => ('●', 'r'),
            "waiting" => ('◌', 'w'),
            "skipped" => ('↷', '>'),
            _ => ('?', '?'),
        };
        if self.unicode { drawn } else { typed }
    }

    /// A text of at most so many cells.
    pub(super) fn cut(&self, text: &str, width: usize, cut: Cut) -> String {
        let mark = if self.unicode { "…" } else { "..." };
        cut_to(text, width, cut, mark)
    }

    /// A line of text that loses its end where it is too wide for the terminal.
    pub(super) fn line(&self, text: &str) -> String {
        let width = self.width.unwrap_or(usize::MAX);
        self.cut(text.trim_end(), width, Cut::End)
    }
}

/// The colour of a status.
pub(super) fn paint(status: &str) -> Option<&'static str> {
    let word = status.split(['(', ' ']).next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "succeeded" | "success" => Some("32"),
        "failed" | "failure" | "timeout" => Some("31"),
        "cancelled" => Some("33"),
        "running" => Some("34"),
        _ => None,
    }
}

/// How a text that is too wide for its column is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Not at all.
    Never,
    /// Its middle is left out, because names differ at their ends.
    Middle,
    /// Its end is left out.
    End,
}

/// One cell of a table, of a text that steers no terminal.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The code of its colour.
    pub(super) colour: Option<&'static str>,
}

impl Cell {
    /// What stands where there is nothing to say.
    pub(super) fn none() -> Self {
        Self {
            text: "-".to_owned(),
            colour: None,
        }
    }
}

/// The widths of the columns of a table.
#[derive(Debug)]
pub(super) struct Layout {
    screen: Screen,
    columns: Vec<(usize, Cut)>,
    /// The width of the narrowest column of names that were cut.
    narrowest: Option<usize>,
}

impl Layout {
    /// A layout of columns with these titles, which fits the screen if cutting can do that. Of a list of many rows a
    /// column gives way whose long texts are few.
    pub(super) fn of(columns: &[(&str, Cut)], rows: &[Vec<Cell>], screen: Screen) -> Self {
        Self::new(columns, rows, screen, true)
    }

    /// The same for rows that are parts of one thing, each of which counts: the widest column gives way.
    pub(super) fn of_parts(columns: &[(&str, Cut)], rows: &[Vec<Cell>], screen: Screen) -> Self {
        Self::new(columns, rows, screen, false)
    }

    fn new(columns: &[(&str, Cut)], rows: &[Vec<Cell>], screen: Screen, is_list: bool) -> Self {
        let texts = columns.iter().enumerate().map(|(number, (title, _))| {
            let cells = rows.iter().filter_map(|row| row.get(number));
            let cells = cells.map(|cell| cell.text.width());
            let mut widths: Vec<_> = cells.chain([title.width()]).collect();
            widths.sort_unstable();
            // The widest text stands for all.
            let counted = if is_list { 0 } else { widths.len() - 1 };
            let widths = widths.split_off(counted);
            (widths, title.width().clamp(MIN_WIDTH, SHORT_TITLE))
        });
        let texts: Vec<_> = texts.collect();
        let widest = |((widths, _), (_, cut)): (&(Vec<usize>, usize), &(&str, Cut))| {
            (widths.last().copied().unwrap_or(0), *cut)
        };
        let mut layout = Self {
            screen,
            columns: texts.iter().zip(columns).map(widest).collect(),
            narrowest: None,
        };
        if let Some(width) = screen.width {
            layout.fit(width, &texts);
        }
        layout
    }

    /// Cells of a line.
    pub(super) fn width(&self) -> usize {
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        self.columns.iter().map(|(width, _)| width).sum::<usize>() + gaps
    }

    /// The width of the narrowest column of names that were cut, if any were.
    pub(super) fn narrowest(&self) -> Option<usize> {
        self.narrowest
    }

    /// Takes cells from the column in which the smallest part of texts is lost, until all fit: from the widest one,
    /// or from one that few rows fill. `texts` has the widths of the texts of each column, the smallest first, and the
    /// fewest cells that it may have. Sentences are cut to two thirds of names, because their beginning tells most.
    fn fit(&mut self, width: usize, texts: &[(Vec<usize>, usize)]) {
        let whole: Vec<_> = self.columns.iter().map(|(cells, _)| *cells).collect();
        for (cells, _) in self.columns.iter_mut().filter(|c| c.1 != Cut::Never) {
            *cells = (*cells).min(width.max(MIN_WIDTH));
        }
        while self.width() > width {
            let columns = self.columns.iter_mut().zip(texts);
            let least = columns
                .filter(|((width, cut), (_, fewest))| *cut != Cut::Never && width > fewest)
                .max_by_key(|((width, cut), (texts, _))| {
                    let full = texts.len() - texts.partition_point(|text| text < width);
                    *width * if *cut == Cut::End { 3 } else { 2 } * 1_000 / full.max(1)
                });
            let Some(((least, _), _)) = least else { break };
            *least -= 1;
        }
        let names = self.columns.iter().zip(whole);
        let cut = names.filter(|((cells, cut), whole)| *cut == Cut::Middle && cells < whole);
        self.narrowest = cut.map(|((cells, _), _)| *cells).min();
    }

    /// A line of the table.
    pub(super) fn line(&self, row: &[Cell]) -> String {
        let mut line = String::new();
        let last = row.len().saturating_sub(1);
        for (number, (cell, (width, cut))) in row.iter().zip(&self.columns).enumerate() {
            let text = self.screen.cut(&cell.text, *width, *cut);
            let blanks = width.saturating_sub(text.width());
            match cell.colour.filter(|_| self.screen.colour) {
                Some(code) => line += &painted(&text, code),
                None => line += &text,
            }
            if number < last {
                line.extend(std::iter::repeat_n(' ', blanks));
                line += GAP;
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A text in a colour.
pub(super) fn painted(text: &str, code: &str) -> String {
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// A text of at most so many cells, with `mark` in place of what was cut out.
fn cut_to(text: &str, width: usize, cut: Cut, mark: &str) -> String {
    if cut == Cut::Never || text.width() <= width {
        return text.to_owned();
    }
    let mark: Vec<char> = taken(mark.chars(), width);
    let room = width.saturating_sub(mark.len());
    let (start, end) = match cut {
        Cut::Middle => (room.div_ceil(2), room / 2),
        _ => (room, 0),
    };
    let tail: Vec<char> = taken(text.chars().rev(), end);
    let head = taken(text.chars(), start).into_iter();
    head.chain(mark).chain(tail.into_iter().rev()).collect()
}

/// The first characters that have so many cells at most.
fn taken(chars: impl Iterator<Item = char>, cells: usize) -> Vec<char> {
    let mut left = cells;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: Option<usize>) -> Screen {
        Screen {
            width,
            colour: false,
            unicode: false,
        }
    }

    #[test]
    fn names_lose_their_middle_and_sentences_their_end() {
        for (text, width, cut, shown) in [
            ("release-2026-x7k2p", 18, Cut::Middle, "release-2026-x7k2p"),
            ("release-2026-x7k2p", 11, Cut::Middle, "relea…x7k2p"),
            ("over its 1h 00m", 8, Cut::End, "over it…"),
            ("日本日本日本", 7, Cut::Middle, "日…本"),
            ("abc", 1, Cut::Middle, "…"),
            ("abcdef", 2, Cut::Never, "abcdef"),
        ] {
            let found = cut_to(text, width, cut, "…");
            assert_eq!(found, shown);
            assert!(cut == Cut::Never || found.width() <= width);
        }
        let screen = screen(Some(9));
        assert_eq!(
            screen.cut("release-2026-x7k2p", 11, Cut::Middle),
            "rele...7k2p"
        );
        assert_eq!(screen.cut("abc", 2, Cut::End), "..");
        assert_eq!(screen.line("over its 1h 00m  "), "over i...");
    }

    #[test]
    fn the_widest_columns_are_cut_until_all_fit() {
        let cell = |text: &str| Cell {
            text: text.to_owned(),
            colour: None,
        };
        let columns = [("A", Cut::Never), ("B", Cut::Middle), ("C", Cut::End)];
        let rows = vec![vec![
            cell("0123456789"),
            cell(&"b".repeat(30)),
            cell(&"c".repeat(20)),
        ]];
        let layout = Layout::of(&columns, &rows, screen(Some(40)));
        assert_eq!((layout.width(), layout.narrowest()), (40, Some(16)));
        assert_eq!(layout.line(&rows[0]).width(), 40);
        // Where nothing is left to cut, lines are too long rather than empty.
        assert_eq!(
            Layout::of(&columns, &rows, screen(Some(5))).width(),
            10 + 6 + 6 + 4
        );
        assert_eq!(Layout::of(&columns, &rows, screen(None)).width(), 64);
    }

    #[test]
    fn one_long_text_takes_no_room_from_those_of_many_rows() {
        let cell = |text: &str| Cell {
            text: text.to_owned(),
            colour: None,
        };
        let columns = [("NAME", Cut::Middle), ("REASON", Cut::End)];
        let mut rows = vec![vec![cell("shop/release-44-build"), cell("-")]; 5];
        rows.push(vec![cell("shop/release-45"), cell(&"Couldnt".repeat(5))]);
        let layout = Layout::of(&columns, &rows, screen(Some(32)));
        assert_eq!(layout.line(&rows[0]), "shop/release-44-build  -");
        assert_eq!(layout.line(&rows[5]), "shop/release-45        Couldn...");
    }
}
