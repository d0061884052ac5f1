//! Columns of the tables, as Arrow has them, and arrays of rows that a server sent.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use arrow::{
    array::{
        ArrayRef, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, Int64Builder, ListBuilder,
        MapBuilder, MapFieldNames, RecordBatch, RecordBatchOptions, StringBuilder,
        StringViewBuilder, TimestampMicrosecondBuilder,
    },
    datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit},
    error::ArrowError,
};
use hindsight_archive::{CellValue, ColumnInfo, ColumnType};

/// Bytes of a SHA-256.
const DIGEST: i32 = 32;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) info: ColumnInfo,
    /// Its number among the columns of files; none if files do not have it.
    pub(crate) in_file: Option<usize>,
    /// Whether its numbers are said as false, which is 0, and true.
    is_flag: bool,
}

const fn column(name: &'static str, column_type: ColumnType, is_required: bool) -> Column {
    Column {
        info: ColumnInfo {
            name,
            column_type,
            is_required,
        },
        in_file: None,
        is_flag: false,
    }
}

const fn flag(name: &'static str) -> Column {
    Column {
        is_flag: true,
        ..column(name, ColumnType::Int, true)
    }
}

/// The namespace of the parent, its last part.
pub(crate) const NAMESPACE: &str = "namespace";
/// Where the row is: [`HOT`] or [`COLD`]; null if that is not known.
pub(crate) const TIER: &str = "tier";
/// Rows of the database.
pub(crate) const HOT: &str = "hot";
/// Rows of files.
pub(crate) const COLD: &str = "cold";

/// Columns that are the same for all rows of a file, which has them in its path or nowhere.
pub(crate) const OF_FILES: [Column; 2] = [
    column(NAMESPACE, ColumnType::Text, true),
    column(TIER, ColumnType::Text, false),
];

/// What lists of runs tell without payloads.
const RUNS: [&str; 24] = [
    "parent",
    "result_id",
    "record_id",
    "create_time",
    "update_time",
    "cluster_id",
    "type",
    "engine",
    "kind",
    "name",
    "object_namespace",
    "object_uid",
    "pipeline",
    "parent_run",
    "outcome",
    "reason",
    "message",
    "signature",
    "attempt",
    "created",
    "start_time",
    "end_time",
    "duration_us",
    "labels",
];

const RESULTS: [Column; 16] = [
    column("parent", ColumnType::Text, true),
    column("result_id", ColumnType::Text, true),
    column("uid", ColumnType::Text, true),
    column("etag", ColumnType::Text, true),
    column("create_time", ColumnType::Time, true),
    column("update_time", ColumnType::Time, true),
    column("cluster_id", ColumnType::Text, false),
    column("annotations", ColumnType::Map, true),
    column("summary_record", ColumnType::Text, false),
    column("summary_type", ColumnType::Text, false),
    column("summary_start_time", ColumnType::Time, false),
    column("summary_end_time", ColumnType::Time, false),
    column("summary_status", ColumnType::Int, false),
    column("summary_outcome", ColumnType::Text, false),
    column("summary_annotations", ColumnType::Map, true),
    column(NAMESPACE, ColumnType::Text, true),
];

const LOGS: [Column; 15] = [
    column("parent", ColumnType::Text, true),
    column("result_id", ColumnType::Text, true),
    column("record_id", ColumnType::Text, true),
    column("cluster_id", ColumnType::Text, false),
    column("pod", ColumnType::Text, false),
    column("container", ColumnType::Text, false),
    column("restart", ColumnType::Int, true),
    column("lines", ColumnType::Int, true),
    column("bytes", ColumnType::Int, true),
    column("first_time", ColumnType::Time, false),
    column("last_time", ColumnType::Time, false),
    flag("is_sealed"),
    column("holes", ColumnType::Int, true),
    column("sha256", ColumnType::Digest, false),
    column(NAMESPACE, ColumnType::Text, true),
];

/// A table that statements can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Records of runs, without payloads.
    Runs,
    /// All records with their payloads, also those that are no runs.
    Records,
    /// Results, which are in the database whether or not their records are in files.
    Results,
    /// What is stored of logs, without lines; in the database whether or not their records are in files.
    Logs,
}

static RUN_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let known: Vec<Column> = in_files().collect();
    let named = |name: &&str| known.iter().find(|column| column.info.name == *name);
    let columns = RUNS.iter().filter_map(named).copied();
    columns.chain(OF_FILES).collect()
});
static RECORD_COLUMNS: LazyLock<Vec<Column>> =
    LazyLock::new(|| in_files().chain(OF_FILES).collect());

fn in_files() -> impl Iterator<Item = Column> {
    let columns = hindsight_archive::columns().enumerate();
    columns.map(|(at, info)| Column {
        info,
        in_file: Some(at),
        is_flag: false,
    })
}

impl Table {
    pub(crate) const ALL: [Self; 4] = [Self::Runs, Self::Records, Self::Results, Self::Logs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Records => "records",
            Self::Results => "results",
            Self::Logs => "logs",
        }
    }

    /// Whether files have rows of it.
    pub(crate) fn is_in_files(self) -> bool {
        matches!(self, Self::Runs | Self::Records)
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Runs => &RUN_COLUMNS,
            Self::Records => &RECORD_COLUMNS,
            Self::Results => &RESULTS,
            Self::Logs => &LOGS,
        }
    }

    pub(crate) fn schema(self) -> SchemaRef {
        schema(self.columns())
    }
}

/// The schema of these columns.
pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(field).collect();
    Arc::new(Schema::new(fields))
}

fn field(column: &Column) -> Field {
    let info = column.info;
    let data_type = match column.is_flag {
        true => DataType::Boolean,
        false => arrow_type(info.column_type),
    };
    Field::new(info.name, data_type, !info.is_required)
}

fn arrow_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Text => DataType::Utf8View,
        ColumnType::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ColumnType::Int => DataType::Int64,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Digest => DataType::FixedSizeBinary(DIGEST),
        ColumnType::Texts => DataType::List(Arc::new(Field::new("element", DataType::Utf8, false))),
        ColumnType::Map => {
            let pair = Fields::from(vec![
                Field::new("key", DataType::Utf8, false),
                Field::new("value", DataType::Utf8, false),
            ]);
            let entries = Field::new("key_value", DataType::Struct(pair), false);
            DataType::Map(Arc::new(entries), false)
        }
    }
}

enum Builder {
    Text(StringViewBuilder),
    Time(TimestampMicrosecondBuilder),
    Int(Int64Builder),
    Flag(BooleanBuilder),
    Bytes(BinaryBuilder),
    Digest(FixedSizeBinaryBuilder),
    Texts(ListBuilder<StringBuilder>),
    Map(MapBuilder<StringBuilder, StringBuilder>),
}

impl Builder {
    fn of(column: &Column) -> Self {
        match column.info.column_type {
            _ if column.is_flag => Self::Flag(BooleanBuilder::new()),
            ColumnType::Text => Self::Text(StringViewBuilder::new()),
            ColumnType::Time => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            ColumnType::Int => Self::Int(Int64Builder::new()),
            ColumnType::Bytes => Self::Bytes(BinaryBuilder::new()),
            ColumnType::Digest => Self::Digest(FixedSizeBinaryBuilder::new(DIGEST)),
            ColumnType::Texts => {
                let field = Field::new("element", DataType::Utf8, false);
                Self::Texts(ListBuilder::new(StringBuilder::new()).with_field(field))
            }
            ColumnType::Map => {
                let names = MapFieldNames {
                    entry: "key_value".to_owned(),
                    key: "key".to_owned(),
                    value: "value".to_owned(),
                };
                let (keys, values) = (StringBuilder::new(), StringBuilder::new());
                let value = Field::new("value", DataType::Utf8, false);
                Self::Map(MapBuilder::new(Some(names), keys, values).with_values_field(value))
            }
        }
    }

    /// Adds a value; one of another type than that of the column is null.
    fn push(&mut self, value: Option<CellValue<'_>>) -> Result<(), ArrowError> {
        match (self, value) {
            (Self::Text(out), Some(CellValue::Text(text))) => out.append_value(text),
            (Self::Text(out), _) => out.append_null(),
            (Self::Time(out), Some(CellValue::Time(time))) => {
                out.append_value(time.as_microsecond())
            }
            (Self::Time(out), _) => out.append_null(),
            (Self::Int(out), Some(CellValue::Int(number))) => out.append_value(number),
            (Self::Int(out), _) => out.append_null(),
            (Self::Flag(out), Some(CellValue::Int(number))) => out.append_value(number != 0),
            (Self::Flag(out), _) => out.append_null(),
            (Self::Bytes(out), Some(CellValue::Bytes(bytes))) => out.append_value(bytes),
            (Self::Bytes(out), _) => out.append_null(),
            (Self::Digest(out), Some(CellValue::Digest(digest))) => out.append_value(digest)?,
            (Self::Digest(out), _) => out.append_null(),
            (Self::Texts(out), value) => {
                let Some(CellValue::Texts(texts)) = value else {
                    out.append(false);
                    return Ok(());
                };
                texts
                    .iter()
                    .for_each(|text| out.values().append_value(text));
                out.append(true);
            }
            (Self::Map(out), value) => {
                let Some(CellValue::Map(pairs)) = value else {
                    return out.append(true);
                };
                add_pairs(out, pairs);
                out.append(true)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(out) => Arc::new(out.finish()),
            Self::Time(out) => Arc::new(out.finish()),
            Self::Int(out) => Arc::new(out.finish()),
            Self::Flag(out) => Arc::new(out.finish()),
            Self::Bytes(out) => Arc::new(out.finish()),
            Self::Digest(out) => Arc::new(out.finish()),
            Self::Texts(out) => Arc::new(out.finish()),
            Self::Map(out) => Arc::new(out.finish()),
        }
    }
}

fn add_pairs(out: &mut MapBuilder<StringBuilder, StringBuilder>, pairs: &BTreeMap<String, String>) {
    for (key, value) in pairs {
        out.keys().append_value(key);
        out.values().append_value(value);
    }
}

/// Makes batches of rows.
pub(crate) struct Rows {
    columns: Vec<Column>,
    builders: Vec<Builder>,
    schema: SchemaRef,
    count: usize,
}

impl Rows {
    /// No rows of these columns.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            builders: columns.iter().map(Builder::of).collect(),
            schema: schema(&columns),
            columns,
            count: 0,
        }
    }

    /// Adds a row of these values.
    pub(crate) fn push<'v>(
        &mut self,
        value: &dyn Fn(&Column) -> Option<CellValue<'v>>,
    ) -> Result<(), ArrowError> {
        self.count += 1;
        for (column, builder) in self.columns.iter().zip(&mut self.builders) {
            builder.push(value(column))?;
        }
        Ok(())
    }

    /// The rows since the last batch.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.count));
        self.count = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_types_of_the_tables() {
        for table in Table::ALL {
            let mut rows = Rows::new(table.columns().to_vec());
            let value = |column: &Column| {
                let is_text = column.info.column_type == ColumnType::Text;
                let none = || match column.info.column_type {
                    ColumnType::Time => Some(CellValue::Time(jiff::Timestamp::UNIX_EPOCH)),
                    ColumnType::Int => Some(CellValue::Int(1)),
                    ColumnType::Texts => Some(CellValue::Texts(Vec::new())),
                    _ => None,
                };
                is_text.then(|| CellValue::Text("x".into())).or_else(none)
            };
            rows.push(&value).unwrap();
            let batch = rows.finish().unwrap();
            assert_eq!((batch.num_rows(), batch.schema()), (1, table.schema()));
        }
    }

    #[test]
    fn runs_have_every_column_that_is_named() {
        assert_eq!(Table::Runs.columns().len(), RUNS.len() + OF_FILES.len());
    }
}
