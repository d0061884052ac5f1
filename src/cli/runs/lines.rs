//! Runs as lines for programs, wherever they go.

use std::io::Write;

use hindsight_filter::words::Now;
use hindsight_proto::v1::RunRow;
use jiff::{Timestamp, tz::TimeZone};

use super::{
    print::Printer,
    row,
    times::{TimeForm, Times},
};
use crate::cli::{failure::Failure, list::Form, terminal::Screen};

/// Every column that has no key, in the order of CSV.
const COLUMNS: &str = "status,namespace,name,kind,engine,pipeline,parent,reason,outcome,created,started,\
                       ended,took,queue,stored,updated,uid,record,type";

/// Writes runs, page by page.
#[derive(Debug)]
pub(in crate::cli) struct Lines<W>(Printer<W>);

impl<W: Write> Lines<W> {
    /// As a JSON object a line.
    pub(in crate::cli) fn jsonl(out: W) -> Result<Self, Failure> {
        Self::of(out, Form::Jsonl, false)
    }

    /// As values between commas, after the names of columns if these are wanted.
    pub(in crate::cli) fn csv(out: W, header: bool) -> Result<Self, Failure> {
        Self::of(out, Form::Csv, header)
    }

    fn of(out: W, form: Form, header: bool) -> Result<Self, Failure> {
        let screen = Screen {
            width: None,
            colour: false,
            unicode: false,
        };
        let now = Now {
            time: Timestamp::UNIX_EPOCH,
            zone: TimeZone::UTC,
        };
        let times = Times::new(now, Some(TimeForm::Iso), false);
        let columns = row::columns(Some(COLUMNS), false)?;
        let printer = Printer::to(out, form, columns, screen, times);
        Ok(Self(printer.without_headers(!header)))
    }

    /// Writes a page.
    pub(in crate::cli) fn page(&mut self, runs: Vec<RunRow>) -> Result<(), Failure> {
        self.0.page(runs)
    }
}
