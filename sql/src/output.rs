//! Rows as text: a table for people, JSON and CSV for programs.

use std::{io::Write, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, StringArray},
    csv,
    datatypes::{DataType, SchemaRef},
    json,
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches_with_options,
    },
};
use clap::ValueEnum;
use futures::{Stream, StreamExt as _, pin_mut};

use crate::{Error, session::Answer};

/// Most rows of a table, which is kept in memory until its columns are as wide as all of them.
const TABLE: usize = 100_000;
const TIMES: &str = "%Y-%m-%dT%H:%M:%S%.fZ";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people
    Table,
    /// An array of objects
    Json,
    /// Lines of values between commas, the first of names
    Csv,
}

/// Why rows were not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The statement has no answer.
    Statement(Error),
    /// The output ended.
    Output(std::io::Error),
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

impl From<arrow::error::ArrowError> for Unwritten {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::IoError(_, error) => Self::Output(error),
            other => Self::Statement(Error::Other(other.to_string())),
        }
    }
}

impl From<std::io::Error> for Unwritten {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes all rows of an answer.
pub(crate) async fn write(
    answer: Answer,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), Unwritten> {
    let schema = Arc::clone(&answer.schema);
    let rows = answer.into_stream();
    pin_mut!(rows);
    match format {
        Format::Table => table(&schema, rows, out).await,
        Format::Json => {
            let mut writer = json::ArrayWriter::new(&mut *out);
            while let Some(batch) = rows.next().await {
                writer.write(&batch?)?;
            }
            writer.finish()?;
            Ok(writeln!(out)?)
        }
        Format::Csv => {
            let mut writer = csv::WriterBuilder::new()
                .with_timestamp_tz_format(TIMES.to_owned())
                .build(&mut *out);
            // A header is of rows; of none there is one too.
            writer.write(&plain(&RecordBatch::new_empty(schema))?)?;
            while let Some(batch) = rows.next().await {
                writer.write(&plain(&batch?)?)?;
            }
            Ok(())
        }
    }
}

async fn table(
    schema: &SchemaRef,
    mut rows: impl Stream<Item = Result<RecordBatch, Error>> + Unpin,
    out: &mut (dyn Write + Send),
) -> Result<(), Unwritten> {
    let (mut batches, mut count) = (vec![RecordBatch::new_empty(Arc::clone(schema))], 0);
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        count += batch.num_rows();
        if count > TABLE {
            return Err(Unwritten::Statement(Error::Limit(format!(
                "the answer has more than {TABLE} rows, which is too many for a table; write it with \
                 `-o csv` or `-o json`, or add a LIMIT"
            ))));
        }
        batches.push(batch);
    }
    let options = options();
    let text = pretty_format_batches_with_options(&batches, &options)?.to_string();
    // Values are texts of strangers, which must not speak to the terminal.
    let seen = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{fffd}'
        } else {
            c
        }
    };
    let text: String = text.chars().map(seen).collect();
    writeln!(out, "{text}")?;
    let rows = if count == 1 { "row" } else { "rows" };
    Ok(writeln!(out, "{count} {rows}")?)
}

fn options() -> FormatOptions<'static> {
    FormatOptions::new().with_timestamp_tz_format(Some(TIMES))
}

/// The same with texts for what CSV has no form of.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, Unwritten> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            found if found.is_nested() => as_texts(column),
            DataType::FixedSizeBinary(_) | DataType::Binary => as_texts(column),
            _ => Ok(Arc::clone(column)),
        });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    let names = batch.schema();
    let names = names.fields().iter().map(|field| field.name());
    Ok(RecordBatch::try_from_iter_with_nullable(
        names
            .zip(columns)
            .map(|(name, column)| (name, column, true)),
    )?)
}

fn as_texts(column: &ArrayRef) -> Result<ArrayRef, Unwritten> {
    let options = options();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |row| {
        column
            .is_valid(row)
            .then(|| formatter.value(row).to_string())
    };
    let texts: StringArray = (0..column.len()).map(text).collect();
    Ok(Arc::new(texts))
}
