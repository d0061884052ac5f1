//! Writes Parquet files: gathers rows, sorts them, and makes a row group of them.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
    sync::Arc,
};

use bytes::Bytes;
use hindsight_filter::model::ResultName;
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int64Type},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};

use crate::{
    Error, Row, TALLY_KEY, Tally, VERSION, VERSION_KEY,
    cells::Cells,
    columns::{COLUMNS, Column, Take, View, schema},
};

/// Saves a tenth over level 3 and compresses 250 MB a second (docs/adr/0061).
const LEVEL: i32 = 9;
/// What is read and decompressed for one payload.
const PAYLOAD_PAGE: usize = 1 << 20;
/// Share of row groups that a Bloom filter lets through although they have not what is sought.
const FALSE_POSITIVES: f64 = 0.01;
const ROWS_OF_A_PAGE: usize = 2048;

/// How many rows are gathered for a row group, which bounds the memory of a writer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most rows of a row group.
    pub rows: usize,
    /// A row group ends with the row that brings its payloads to so many bytes.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rows: 8192,
            payload_bytes: 64 << 20,
        }
    }
}

/// Writes rows into a file.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    limits: Limits,
    rows: Vec<Row>,
    payload_bytes: usize,
    tally: Tally,
}

impl<W: Write + Send> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file. It fails if `out` does not take it.
    pub fn new(out: W, limits: Limits) -> Result<Self, Error> {
        let schema = Arc::new(parse_message_type(&schema())?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties(limits)?))?;
        Ok(Self {
            file,
            limits,
            rows: Vec::new(),
            payload_bytes: 0,
            tally: Tally::default(),
        })
    }

    /// Takes a row, whose result has the name that is in the name of the record. It fails if `out` does not take
    /// the row group that this one makes full.
    pub fn push(&mut self, row: Row) -> Result<(), Error> {
        self.tally.add(&row);
        self.payload_bytes += row.payload_bytes();
        self.rows.push(row);
        let is_full =
            self.rows.len() >= self.limits.rows || self.payload_bytes >= self.limits.payload_bytes;
        match is_full {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Ends the file, and says what is in it. It fails if `out` does not take it.
    pub fn finish(mut self) -> Result<(W, Tally), Error> {
        self.flush()?;
        let tally = KeyValue::new(TALLY_KEY.to_owned(), self.tally.to_string());
        self.file.append_key_value_metadata(tally);
        Ok((self.file.into_inner()?, self.tally))
    }

    /// Writes the rows that were gathered as a row group.
    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        self.payload_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        let views = sorted(&rows);
        for column in COLUMNS {
            write(column, &views, &mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Rows with those of one run together, and runs of one pipeline after each other, because what
/// is alike is then near and compresses together.
fn sorted(rows: &[Row]) -> Vec<View<'_>> {
    let view = |row| View {
        row,
        object: row.object(),
    };
    let mut views: Vec<View<'_>> = rows.iter().map(view).collect();
    let mut pipelines: HashMap<&ResultName, String> = HashMap::new();
    for view in &views {
        if let Some(pipeline) = view.object.pipeline() {
            let of_result = pipelines.entry(&view.row.result.name).or_default();
            if of_result.as_str() < pipeline {
                pipeline.clone_into(of_result);
            }
        }
    }
    views.sort_by(|a, b| {
        let key = |view: &View<'_>| {
            let Row { record, result, .. } = view.row;
            (result.create_time, record.create_time)
        };
        let pipeline = |view: &View<'_>| pipelines.get(&view.row.result.name).map(String::as_str);
        let result = |view: &View<'_>| view.row.result.name.to_string();
        let by_run = pipeline(a).cmp(&pipeline(b)).then(key(a).0.cmp(&key(b).0));
        let by_run = by_run.then_with(|| result(a).cmp(&result(b)));
        by_run
            .then(key(a).1.cmp(&key(b).1))
            .then_with(|| a.row.record.name.id().cmp(b.row.record.name.id()))
    });
    views
}

fn properties(limits: Limits) -> Result<WriterProperties, Error> {
    let version = KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string());
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("hindsight ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![version]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(ROWS_OF_A_PAGE)
        // Otherwise a page ends only after 1,024 values, whatever they weigh.
        .set_write_batch_size(1);
    for column in COLUMNS {
        for leaf in column.leaves() {
            let path = ColumnPath::new(leaf.split('.').map(str::to_owned).collect());
            if column.is_sought {
                // Without a column these would make filters of all columns.
                properties = properties
                    .set_column_bloom_filter_fpp(path.clone(), FALSE_POSITIVES)
                    .set_column_bloom_filter_max_ndv(path.clone(), limits.rows as u64);
            }
            if column.is_unique {
                properties = properties.set_column_dictionary_enabled(path.clone(), false);
                if matches!(column.take, Take::Time(_) | Take::Int(_)) {
                    let delta = Encoding::DELTA_BINARY_PACKED;
                    properties = properties.set_column_encoding(path.clone(), delta);
                }
            }
            if matches!(column.take, Take::Payload) {
                properties = properties.set_column_data_page_size_limit(path.clone(), PAYLOAD_PAGE);
            }
            if matches!(column.take, Take::Payload | Take::Digest) {
                let none = EnabledStatistics::None;
                properties = properties.set_column_statistics_enabled(path, none);
            }
        }
    }
    Ok(properties.build())
}

/// Writes the leaves of a column.
fn write<W: Write + Send>(
    column: &Column,
    views: &[View<'_>],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), Error> {
    let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    match column.take {
        Take::Text(take) => texts(group, views, |view| take(view).map(|text| bytes(&text))),
        Take::Time(take) => ints(group, views, |view| Some(take(view)?.as_microsecond())),
        Take::Int(take) => ints(group, views, take),
        Take::Map(take) => {
            let pairs = |view| take(view).into_iter().flat_map(BTreeMap::iter);
            texts(group, views, |view| pairs(view).map(|(key, _)| bytes(key)))?;
            texts(group, views, |view| {
                pairs(view).map(|(_, value)| bytes(value))
            })
        }
        Take::Pairs => texts(group, views, |view| view.pairs().map(|pair| bytes(&pair))),
        Take::Payload => texts(group, views, |view| {
            view.data()
                .map(|data| ByteArray::from(Bytes::clone(&data.value)))
        }),
        Take::Digest => {
            let mut cells = Cells::default();
            for view in views {
                let digest = view.digest().map(|digest| digest.to_vec());
                cells.push(digest.map(|digest| FixedLenByteArray::from(ByteArray::from(digest))));
            }
            leaf::<_, FixedLenByteArrayType>(group, &cells)
        }
    }
}

fn texts<'v, W: Write + Send, I: IntoIterator<Item = ByteArray>>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    views: &'v [View<'v>],
    take: impl Fn(&'v View<'v>) -> I,
) -> Result<(), Error> {
    let mut cells = Cells::default();
    views.iter().for_each(|view| cells.push(take(view)));
    leaf::<_, ByteArrayType>(group, &cells)
}

fn ints<'v, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    views: &'v [View<'v>],
    take: impl Fn(&'v View<'v>) -> Option<i64>,
) -> Result<(), Error> {
    let mut cells = Cells::default();
    views.iter().for_each(|view| cells.push(take(view)));
    leaf::<_, Int64Type>(group, &cells)
}

fn leaf<W: Write + Send, D: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &Cells<D::T>,
) -> Result<(), Error> {
    let Some(mut out) = group.next_column()? else {
        return Err(parquet::errors::ParquetError::General("no column is left".to_owned()).into());
    };
    cells.write(out.typed::<D>())?;
    out.close()?;
    Ok(())
}
