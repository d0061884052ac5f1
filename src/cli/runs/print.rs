//! Runs in every form of output, a page at a time.
//!
//! No form lets a text steer a terminal: JSON writes such characters as escapes, which say the same,
//! the other forms show them.

use std::io::Write;

use hindsight_proto::v1::RunRow;
use serde::Serialize;

use super::{
    row::{Column, RunView},
    times::Times,
};
use crate::cli::{
    failure::Failure,
    list::Form,
    output::{self, ListView, plain},
    pager::Paged,
    table::quoted,
    terminal::{Cell, Cut, Layout, Screen, paint, painted},
};

/// Where times in full leave fewer cells than this for a name, they are told in less room.
const MIN_NAME: usize = 16;

/// Prints runs, page by page.
#[derive(Debug)]
pub(super) struct Printer<W = Paged> {
    form: Form,
    columns: Vec<Column>,
    screen: Screen,
    times: Times,
    headers: bool,
    /// The columns of a table, once the first page is there.
    layout: Option<Layout>,
    /// Whether a run was printed.
    begun: bool,
    /// Runs of a document that is printed at the end.
    kept: Vec<RunView>,
    out: W,
}

impl<W: Write> Printer<W> {
    pub(super) fn to(
        out: W,
        form: Form,
        columns: Vec<Column>,
        screen: Screen,
        times: Times,
    ) -> Self {
        Self {
            form,
            columns,
            screen,
            times,
            headers: true,
            layout: None,
            begun: false,
            kept: Vec::new(),
            out,
        }
    }

    /// The same, perhaps without the line with the names of columns.
    pub(super) fn without_headers(self, without: bool) -> Self {
        Self {
            headers: !without,
            ..self
        }
    }

    /// Whether a table is shown to people.
    pub(super) fn is_on_terminal(&self) -> bool {
        self.screen.width.is_some() && matches!(self.form, Form::Table | Form::Wide)
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Prints a page, or keeps it for the document.
    pub(super) fn page(&mut self, runs: Vec<RunRow>) -> Result<(), Failure> {
        let runs: Vec<_> = runs.into_iter().map(RunView::from).collect();
        if runs.is_empty() {
            return Ok(());
        }
        match self.form {
            Form::Table | Form::Wide if self.screen.width.is_some() => self.table(&runs)?,
            Form::Table | Form::Wide => self.values(&runs, "\t", |value| value)?,
            Form::Csv => self.values(&runs, ",", quoted)?,
            Form::Name => {
                for run in &runs {
                    writeln!(self.out, "{}", plain(&run.record, false))?;
                }
            }
            Form::Jsonl => {
                for run in &runs {
                    writeln!(self.out, "{}", json(run)?)?;
                }
            }
            Form::Json => {
                for (number, run) in runs.iter().enumerate() {
                    let is_first = !self.begun && number == 0;
                    let before = if is_first { "{\"items\":[" } else { "," };
                    write!(self.out, "{before}{}", json(run)?)?;
                }
            }
            Form::Yaml => self.kept.extend(runs),
        }
        self.begun = true;
        self.out.flush()?;
        Ok(())
    }

    /// Ends the output.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        match self.form {
            Form::Json if self.begun => writeln!(self.out, "]}}")?,
            Form::Json => writeln!(self.out, "{{\"items\":[]}}")?,
            Form::Yaml => {
                let items = std::mem::take(&mut self.kept);
                let next_page_token = String::new();
                let list = ListView {
                    items,
                    next_page_token,
                };
                let text = output::yaml(&list)?;
                write!(self.out, "{}", plain(&text, true))?;
            }
            Form::Csv => self.header(",")?,
            Form::Table | Form::Wide if self.screen.width.is_none() => self.header("\t")?,
            _ => {}
        }
        Ok(())
    }

    /// Prints rows of a table whose columns fit what the first page has.
    fn table(&mut self, runs: &[RunView]) -> Result<(), Failure> {
        let mut rows = self.cells(runs);
        if self.layout.is_none() {
            let names: Vec<_> = self.columns.iter().map(Column::title).collect();
            let columns = names.iter().zip(&self.columns);
            let columns: Vec<_> = columns.map(|(name, c)| (name.as_str(), c.cut())).collect();
            let mut layout = Layout::of(&columns, &rows, self.screen);
            if self.is_tight(&layout) {
                self.times = self.times.shorter();
                rows = self.cells(runs);
                layout = Layout::of(&columns, &rows, self.screen);
            }
            if self.headers {
                let text = |name: &String| Cell {
                    text: name.clone(),
                    colour: None,
                };
                let header: Vec<_> = names.iter().map(text).collect();
                writeln!(self.out, "{}", layout.line(&header))?;
            }
            self.layout = Some(layout);
        }
        if let Some(layout) = &self.layout {
            for row in &rows {
                writeln!(self.out, "{}", layout.line(row))?;
            }
        }
        Ok(())
    }

    fn cells(&self, runs: &[RunView]) -> Vec<Vec<Cell>> {
        let has_status = self.columns.contains(&Column::Status);
        let row = |run: &RunView| {
            let cell = |column: &Column| match column {
                // Names get the room of what stands in the row already.
                Column::Reason if has_status && run.repeats_status() => Cell::none(),
                column => column.cell(run, &self.times, &self.screen),
            };
            self.columns.iter().map(cell).collect()
        };
        runs.iter().map(row).collect()
    }

    /// Whether cutting leaves too little of names.
    fn is_tight(&self, layout: &Layout) -> bool {
        let is_cut = self.columns.iter().any(|column| column.cut() != Cut::Never);
        let too_wide = self
            .screen
            .width
            .is_some_and(|width| layout.width() > width);
        is_cut && (too_wide || layout.narrowest().is_some_and(|cells| cells < MIN_NAME))
    }

    /// Prints what columns say, each value written by `form`.
    fn values(
        &mut self,
        runs: &[RunView],
        between: &str,
        form: impl Fn(String) -> String,
    ) -> Result<(), Failure> {
        self.header(between)?;
        for run in runs {
            let values = self.columns.iter().map(|column| {
                let value = column.value(run, &self.times);
                let colour =
                    paint(&value).filter(|_| *column == Column::Status && self.screen.colour);
                let value = form(plain(&value, false).into_owned());
                match colour {
                    Some(code) => painted(&value, code),
                    None => value,
                }
            });
            let values: Vec<_> = values.collect();
            writeln!(self.out, "{}", values.join(between))?;
        }
        Ok(())
    }

    /// Prints the names of the columns, once.
    fn header(&mut self, between: &str) -> Result<(), Failure> {
        if std::mem::take(&mut self.headers) {
            let names: Vec<_> = self.columns.iter().map(Column::name).collect();
            writeln!(self.out, "{}", names.join(between))?;
        }
        Ok(())
    }
}

/// JSON in which everything that steers terminals is an escape.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::other(e.to_string()))?;
    if !text.contains(output::steers) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut units = [0; 2];
    for c in text.chars() {
        if output::steers(c) {
            for unit in c.encode_utf16(&mut units) {
                escaped += &format!("\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests;
