//! The command `hindsight export`: runs, records or logs as lines, oldest first.

mod columnar;
mod cursor;
mod line;
mod logs;

use std::{
    fs::{File, OpenOptions},
    io::{Seek as _, SeekFrom, Stdout, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use hindsight_filter::words::Now;
use hindsight_proto::{
    v1::{ListRunsRequest, RunRow},
    v1alpha2 as pb,
};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::tz::TimeZone;

use self::cursor::Cursor;
use super::{
    connect::Connect,
    failure::Failure,
    import::counted,
    output,
    place::Place,
    runs::{Lines, Words},
    selection::Selection,
};

/// Runs of one call, which have no payloads.
const RUNS: i32 = 1_000;
/// Records of one call.
const RECORDS: i32 = 200;
/// Runs of one call whose logs are written before the cursor is.
const LOGS: i32 = 20;
/// In this order nothing is passed over that is stored meanwhile.
const ORDER: &str = "create_time asc";

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Runs as `hindsight runs -o json` shows them, without their payloads
    #[value(alias = "run")]
    Runs,
    /// Records with their payloads, which `hindsight import` stores again byte for byte
    #[value(alias = "record")]
    Records,
    /// Lines of the logs of runs, which `hindsight import logs` stores again byte for byte
    #[value(alias = "log")]
    Logs,
}

/// The form of lines, or of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A JSON object a line
    Jsonl,
    /// Values between commas, after a line with the names of columns
    Csv,
    /// Parquet files of records, with columns of runs and payloads, which `hindsight import` reads
    Parquet,
}

/// Write runs, records or logs as lines or Parquet files, those that were stored first first
///
/// With --cursor an export that was interrupted goes on where it was: with --file exactly there, else
/// the last page may come twice. Without --cursor, the error says with which --after it goes on.
#[derive(Debug, Args)]
#[command(
    after_long_help = "WORDS are those of `hindsight runs`, and select runs among records. In CSV, the column `encoding` is `json`
or, of payloads that are not one line of JSON, `base64`. Logs have no form in CSV.

Parquet files are of records; docs/archive.md describes their columns. With --dir they are written into
directories such as `cluster=east/namespace=shop/date=2026-01-02`, and each is read again and compared before it
has its name. What was interrupted leaves no file that is not whole.

Examples:
  hindsight export runs -A failed -o csv
  hindsight export records -n shop --file shop.jsonl --cursor shop.cursor
  hindsight export logs -n shop failed --file logs.jsonl --cursor logs.cursor
  hindsight export records -A -o parquet --dir history --cursor history.cursor
  hindsight export records -A | hindsight import - --server http://127.0.0.1:8081"
)]
pub(super) struct Export {
    /// Whether runs, records or logs are exported
    #[arg(value_enum)]
    what: What,

    /// What runs must match
    words: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    rows: Selection,

    /// Form of lines, or of files
    #[arg(short, long, value_enum, default_value_t = Form::Jsonl)]
    output: Form,

    /// File to write, instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Directory of Parquet files, which has one for each cluster, namespace and day
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    dir: Option<PathBuf>,

    /// File that says how far the export is
    #[arg(long, value_name = "FILE", conflicts_with = "after")]
    cursor: Option<PathBuf>,

    /// Go on after this place, which an export that ended early told
    #[arg(long, value_name = "TOKEN", conflicts_with = "file")]
    after: Option<String>,

    #[command(flatten)]
    connect: Connect,
}

/// Where lines go.
#[derive(Debug)]
enum Out {
    Stdout(Stdout),
    File(File),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(out) => out.sync_data(),
        }
    }
}

impl Export {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let kept = match &self.cursor {
            Some(path) => Cursor::read(path)?,
            None => None,
        };
        let export = self.described();
        if kept.as_ref().is_some_and(|kept| kept.export != export) {
            return Err(Failure::usage(
                "the cursor is of an export with other arguments; name another file",
            ));
        }
        if kept.as_ref().is_some_and(|kept| kept.done) {
            output::note("the export is complete; without its cursor it begins again");
            return Ok(ExitCode::SUCCESS);
        }
        let cursor = match kept {
            Some(kept) => kept,
            None => Cursor {
                export,
                filter: self.filter()?,
                after: self.after.clone().unwrap_or_default(),
                ..Cursor::default()
            },
        };
        if self.output == Form::Parquet {
            return columnar::export(self, cursor).await;
        }
        if self.dir.is_some() {
            return Err(Failure::usage("a directory is for Parquet: `-o parquet`"));
        }
        if self.what == What::Logs && self.output == Form::Csv {
            return Err(Failure::usage("logs are exported as jsonl only"));
        }
        self.lines(cursor).await
    }

    async fn lines(&self, mut cursor: Cursor) -> Result<ExitCode, Failure> {
        let mut out = self.out(&cursor)?;
        let mut written = 0;
        while !cursor.done {
            let page = self.page(&cursor, &mut out).await;
            let (count, next) = page.map_err(|failure| self.interrupted(&cursor, failure))?;
            written += count as u64;
            cursor.done = next.is_empty();
            cursor.after = next;
            if let Out::File(file) = &mut out {
                cursor.bytes = file.stream_position()?;
            }
            if let Some(path) = &self.cursor {
                cursor.save(path)?;
            }
        }
        let what = match self.what {
            What::Runs => "run",
            What::Records => "record",
            What::Logs => "log",
        };
        output::note(&format!("exported {}", counted(written, what)));
        Ok(ExitCode::SUCCESS)
    }

    /// What is exported, so that a cursor is not taken for that of something else.
    fn described(&self) -> String {
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            self.what,
            self.output,
            self.place.within(None),
            self.words,
            self.rows.filter,
            self.rows.selector,
            self.rows.field_selector
        )
    }

    /// Words and filter in CEL.
    fn filter(&self) -> Result<String, Failure> {
        let now = Now {
            time: SystemClock.now(),
            zone: TimeZone::system(),
        };
        Words::of(&self.words).and(&self.rows.filter).filter(&now)
    }

    /// Where lines go: into the file up to where it is whole, or to standard output.
    fn out(&self, cursor: &Cursor) -> Result<Out, Failure> {
        let Some(path) = &self.file else {
            return Ok(Out::Stdout(std::io::stdout()));
        };
        let is_new = cursor.bytes == 0 && cursor.after.is_empty();
        let open = || {
            let mut options = OpenOptions::new();
            options.write(true);
            // Only what a cursor says was written is an export that may be cut and continued.
            let mut file = match is_new {
                true => options.create_new(true).open(path)?,
                false => options.open(path)?,
            };
            if file.metadata()?.len() < cursor.bytes {
                return Err(std::io::Error::other("it is shorter than the cursor says"));
            }
            file.set_len(cursor.bytes)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        open().map(Out::File).map_err(|error| {
            Failure::usage(format!("`{}` cannot be written: {error}", path.display()))
        })
    }

    /// Writes the next page; says how many lines it has, and what continues the list.
    async fn page(&self, cursor: &Cursor, out: &mut Out) -> Result<(usize, String), Failure> {
        let is_first = cursor.after.is_empty();
        match self.what {
            What::Runs => {
                let (runs, next) = self.runs(cursor, RUNS).await?;
                let count = runs.len();
                let mut lines = match self.output {
                    Form::Csv => Lines::csv(&mut *out, is_first)?,
                    Form::Jsonl | Form::Parquet => Lines::jsonl(&mut *out)?,
                };
                lines.page(runs)?;
                Ok((count, next))
            }
            What::Records => {
                let (records, next) = self.records(cursor).await?;
                let mut page = Vec::new();
                if is_first && self.output == Form::Csv {
                    writeln!(page, "{}", line::COLUMNS)?;
                }
                for record in &records {
                    match self.output {
                        Form::Csv => line::csv(record, &mut page)?,
                        Form::Jsonl | Form::Parquet => line::json(record, &mut page)?,
                    }
                }
                out.write_all(&page)?;
                out.flush()?;
                Ok((records.len(), next))
            }
            What::Logs => {
                let (runs, next) = self.runs(cursor, LOGS).await?;
                let client = self.connect.client()?;
                let mut count = 0;
                for run in runs {
                    let written = logs::write(&client, &run.record, out).await;
                    count += written.map_err(|ended| ended.failure(&self.connect))?;
                }
                out.flush()?;
                Ok((count, next))
            }
        }
    }

    async fn runs(&self, cursor: &Cursor, most: i32) -> Result<(Vec<RunRow>, String), Failure> {
        let request = ListRunsRequest {
            parent: self.place.within(None),
            filter: cursor.filter.clone(),
            order_by: ORDER.to_owned(),
            page_size: most,
            page_token: cursor.after.clone(),
            ..ListRunsRequest::default()
        };
        let mut runs = self.connect.client()?.runs();
        let reply = runs.list_runs(self.rows.request(request)?).await;
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        let reply = reply.into_inner();
        Ok((reply.runs, reply.next_page_token))
    }

    async fn records(&self, cursor: &Cursor) -> Result<(Vec<pb::Record>, String), Failure> {
        let request = pb::ListRecordsRequest {
            parent: self.place.within(None),
            filter: cursor.filter.clone(),
            order_by: ORDER.to_owned(),
            page_size: RECORDS,
            page_token: cursor.after.clone(),
        };
        let mut rpc = self.connect.client()?.rpc();
        let reply = rpc.list_records(self.rows.request(request)?).await;
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        let mut reply = reply.into_inner();
        for record in &mut reply.records {
            let is_empty = record
                .data
                .as_ref()
                .is_none_or(|data| data.value.is_empty());
            if is_empty {
                // Lists leave out payloads that are too large for them.
                let name = record.name.clone();
                let whole = rpc.get_record(pb::GetRecordRequest { name }).await;
                let whole = whole.map_err(|status| self.connect.failure(&status))?;
                *record = whole.into_inner();
            }
        }
        Ok((reply.records, reply.next_page_token))
    }

    /// A failure with how to go on after it.
    fn interrupted(&self, cursor: &Cursor, failure: Failure) -> Failure {
        match (&self.cursor, cursor.after.as_str()) {
            (Some(_), _) => failure.with("; the same command goes on from here"),
            (None, "") => failure,
            (None, after) => failure.with(&format!("; go on with --after {after}")),
        }
    }
}
