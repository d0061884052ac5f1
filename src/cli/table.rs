//! Tables: columns that fit a terminal, values between tabs or commas elsewhere.

use std::io::{self, Write};

use clap::{Args, ValueEnum};

use super::{
    failure::Failure,
    output::plain,
    pager::{Paged, Paging},
    terminal::{Cell, ColorWhen, Cut, Layout, Screen, paint, painted},
};

/// In which form a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Columns that fit the terminal; values between tabs where the output is no terminal
    #[value(aliases = ["text", "wide"])]
    Table,
    /// Values between commas
    Csv,
    /// One JSON document
    Json,
    /// The same document as JSON, written in YAML
    Yaml,
}

/// Which parts of a table are printed, and how they look.
#[derive(Debug, Args)]
pub(super) struct Look {
    /// Which columns, between commas; by their titles in lower case
    #[arg(long, value_name = "COLUMN,...")]
    columns: Option<String>,

    /// Leave out the line with the names of columns
    #[arg(long)]
    no_headers: bool,

    /// When to colour
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto)]
    color: ColorWhen,

    #[command(flatten)]
    paging: Paging,
}

impl Look {
    /// Where the table is shown.
    pub(super) fn screen(&self) -> Screen {
        Screen::of_stdout(self.color)
    }

    /// Standard output, perhaps behind a pager.
    pub(super) fn out(&self) -> Paged {
        self.paging.out()
    }
}

/// A column that a table may have.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// What asks for it, and stands above its values where these are for programs.
    name: String,
    title: String,
    cut: Cut,
    is_usual: bool,
}

impl Column {
    /// One that is shown unless others are asked for.
    pub(super) fn usual(name: &str, cut: Cut) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_uppercase().replace('_', " "),
            cut,
            is_usual: true,
        }
    }

    /// One that is shown where it is asked for.
    pub(super) fn more(name: &str, cut: Cut) -> Self {
        Self {
            is_usual: false,
            ..Self::usual(name, cut)
        }
    }

    /// The same with another text above it on terminals.
    pub(super) fn titled(self, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..self
        }
    }
}

/// What one row says in one column.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    /// In full, for output that programs read: between tabs or commas.
    exact: String,
    /// As short as people read it, in a table on a terminal.
    shown: String,
    colour: Option<&'static str>,
}

impl Value {
    /// The same for people and programs.
    pub(super) fn of(text: impl Into<String>) -> Self {
        let exact = text.into();
        Self {
            shown: exact.clone(),
            exact,
            colour: None,
        }
    }

    /// One text for programs, and one for people.
    pub(super) fn both(exact: impl Into<String>, shown: impl Into<String>) -> Self {
        Self {
            exact: exact.into(),
            shown: shown.into(),
            colour: None,
        }
    }

    /// How a run stands, in its colour.
    pub(super) fn status(text: impl Into<String>) -> Self {
        let value = Self::of(text);
        Self {
            colour: paint(&value.exact),
            ..value
        }
    }
}

/// A table whose rows have a value for each of its columns, shown or not.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    /// Numbers of the columns that are shown, in this order.
    shown: Vec<usize>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// A table with the columns that are asked for. It fails if there is no such column.
    pub(super) fn new(columns: Vec<Column>, look: &Look, wide: bool) -> Result<Self, Failure> {
        let usual = |(number, column): (usize, &Column)| {
            let is_shown = column.is_usual || wide;
            is_shown.then_some(number)
        };
        let shown = match &look.columns {
            None => columns.iter().enumerate().filter_map(usual).collect(),
            Some(asked) => {
                let asked = asked.split(',').map(|name| numbered(&columns, name.trim()));
                asked.collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            columns,
            shown,
            rows: Vec::new(),
        })
    }

    pub(super) fn row(&mut self, values: Vec<Value>) {
        self.rows.push(values);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints it, between commas if `csv` says so. On terminals an empty one is not shown.
    pub(super) fn print(&self, csv: bool, look: &Look) -> Result<(), Failure> {
        let screen = look.screen();
        let mut out = look.out();
        self.write(&mut out, csv, look.no_headers, screen)?;
        out.flush()?;
        Ok(())
    }

    fn write(
        &self,
        out: &mut impl Write,
        csv: bool,
        no_headers: bool,
        screen: Screen,
    ) -> io::Result<()> {
        match screen.width {
            Some(_) if !csv => {
                let lines = self.lines(screen);
                let skipped = usize::from(no_headers || self.is_empty());
                for line in lines.iter().skip(skipped) {
                    writeln!(out, "{line}")?;
                }
                Ok(())
            }
            _ => self.values(out, csv, no_headers, screen.colour),
        }
    }

    /// The lines of a table that fits the screen, the first of which has the titles.
    pub(super) fn lines(&self, screen: Screen) -> Vec<String> {
        let cell = |text: &str, colour| Cell {
            text: plain(if text.is_empty() { "-" } else { text }, false).into_owned(),
            colour,
        };
        let shown = || {
            self.shown
                .iter()
                .filter_map(|number| self.columns.get(*number))
        };
        let row = |row: &Vec<Value>| {
            let values = self.shown.iter().filter_map(|number| row.get(*number));
            values
                .map(|value| cell(&value.shown, value.colour))
                .collect()
        };
        let rows: Vec<Vec<Cell>> = self.rows.iter().map(row).collect();
        let titles: Vec<_> = shown().map(|c| (c.title.as_str(), c.cut)).collect();
        let layout = Layout::of(&titles, &rows, screen);
        let titles: Vec<_> = titles.iter().map(|(title, _)| cell(title, None)).collect();
        let lines = std::iter::once(&titles).chain(&rows);
        lines.map(|row| layout.line(row)).collect()
    }

    fn values(
        &self,
        out: &mut impl Write,
        csv: bool,
        no_headers: bool,
        colour: bool,
    ) -> io::Result<()> {
        let between = if csv { "," } else { "\t" };
        let written = |text: &str| {
            let text = plain(text, false).into_owned();
            if csv { quoted(text) } else { text }
        };
        if !no_headers {
            let columns = self
                .shown
                .iter()
                .filter_map(|number| self.columns.get(*number));
            let names: Vec<_> = columns.map(|column| written(&column.name)).collect();
            writeln!(out, "{}", names.join(between))?;
        }
        for row in &self.rows {
            let values = self.shown.iter().filter_map(|number| row.get(*number));
            let values = values.map(|value| {
                let text = written(&value.exact);
                match value.colour.filter(|_| colour) {
                    Some(code) => painted(&text, code),
                    None => text,
                }
            });
            let values: Vec<_> = values.collect();
            writeln!(out, "{}", values.join(between))?;
        }
        Ok(())
    }
}

/// The number of the column of this name.
fn numbered(columns: &[Column], name: &str) -> Result<usize, Failure> {
    let number = columns.iter().position(|column| column.name == name);
    number.ok_or_else(|| {
        let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        Failure::usage(format!(
            "unknown column `{name}`; want {}",
            known.join(", ")
        ))
    })
}

/// A value between commas, as RFC 4180 quotes it.
pub(super) fn quoted(value: String) -> String {
    match value.contains(['"', ',']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(columns: Option<&str>) -> Look {
        let mut arguments = vec!["x"];
        arguments.extend(columns.map(|_| "--columns"));
        arguments.extend(columns);
        let command = Look::augment_args(clap::Command::new("x"));
        let matches = command.try_get_matches_from(arguments).unwrap();
        clap::FromArgMatches::from_arg_matches(&matches).unwrap()
    }

    fn table(columns: Option<&str>, wide: bool) -> Result<Table, Failure> {
        let names = vec![
            Column::usual("name", Cut::Middle),
            Column::usual("took", Cut::Never).titled("TIME"),
            Column::more("uid", Cut::Middle),
        ];
        let mut table = Table::new(names, &look(columns), wide)?;
        let long = "a,\u{1b}release-2026-x7k2p";
        table.row(vec![
            Value::status("failed"),
            Value::both("421", "7m01s"),
            Value::of(long),
        ]);
        table.row(vec![Value::default(), Value::default(), Value::of("u")]);
        Ok(table)
    }

    fn written(table: &Table, csv: bool, width: Option<usize>, colour: bool) -> String {
        let screen = Screen {
            width,
            colour,
            unicode: false,
        };
        let mut out = Vec::new();
        table.write(&mut out, csv, false, screen).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn programs_get_exact_values_and_people_what_fits() {
        let usual = table(None, false).unwrap();
        assert_eq!(
            written(&usual, false, None, false),
            "name\ttook\nfailed\t421\n\t\n"
        );
        assert_eq!(
            written(&usual, false, Some(80), true),
            "NAME    TIME\n\u{1b}[31mfailed\u{1b}[0m  7m01s\n-       -\n"
        );
        let wide = table(None, true).unwrap();
        assert_eq!(
            written(&wide, false, Some(28), false),
            "NAME    TIME   UID\nfailed  7m01s  a,\\u{...x7k2p\n-       -      u\n"
        );
        assert_eq!(
            written(&wide, true, Some(28), false),
            "name,took,uid\nfailed,421,\"a,\\u{1b}release-2026-x7k2p\"\n,,u\n"
        );
        let asked = table(Some("uid, name"), false).unwrap();
        assert!(written(&asked, false, None, false).starts_with("uid\tname\n"));
        let why = table(Some("nme"), false).unwrap_err().to_string();
        assert_eq!(why, "unknown column `nme`; want name, took, uid");
    }
}
