//! Columns and their values, for programs that keep rows in another form than files.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    Row,
    columns::{COLUMNS, Take, View},
};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text in UTF-8, of any length.
    Text,
    /// Microseconds since 1970, in UTC.
    Time,
    /// 64 bits with a sign.
    Int,
    /// Texts by texts.
    Map,
    /// A list of texts.
    Texts,
    /// Bytes of any length, such as a payload as it was sent.
    Bytes,
    /// A SHA-256, which has 32 bytes.
    Digest,
}

/// A column of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name in the schema.
    pub name: &'static str,
    /// What it holds.
    pub column_type: ColumnType,
    /// Whether every row has a value.
    pub is_required: bool,
}

/// The columns of the version that is written, in the order of the file.
pub fn columns() -> impl Iterator<Item = ColumnInfo> {
    COLUMNS.iter().map(|column| ColumnInfo {
        name: column.name,
        column_type: match column.take {
            Take::Text(_) => ColumnType::Text,
            Take::Time(_) => ColumnType::Time,
            Take::Int(_) => ColumnType::Int,
            Take::Map(_) => ColumnType::Map,
            Take::Pairs => ColumnType::Texts,
            Take::Payload => ColumnType::Bytes,
            Take::Digest => ColumnType::Digest,
        },
        is_required: column.is_required,
    })
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellValue<'r> {
    /// A value of a column of [`ColumnType::Text`].
    Text(Cow<'r, str>),
    /// A value of a column of [`ColumnType::Time`].
    Time(Timestamp),
    /// A value of a column of [`ColumnType::Int`].
    Int(i64),
    /// A value of a column of [`ColumnType::Map`].
    Map(&'r BTreeMap<String, String>),
    /// A value of a column of [`ColumnType::Texts`].
    Texts(Vec<String>),
    /// A value of a column of [`ColumnType::Bytes`].
    Bytes(&'r Bytes),
    /// A value of a column of [`ColumnType::Digest`].
    Digest([u8; 32]),
}

/// The values that a [`Writer`](crate::Writer) gives to the columns of a row.
#[derive(Debug)]
pub struct RowValues<'r>(View<'r>);

impl<'r> RowValues<'r> {
    /// Those of a row, whose payload is read once.
    pub fn of(row: &'r Row) -> Self {
        let object = row.object();
        Self(View { row, object })
    }

    /// The value of the column of this number in [`columns`]; none where it is null.
    pub fn get(&self, column: usize) -> Option<CellValue<'_>> {
        let view = &self.0;
        match COLUMNS.get(column)?.take {
            Take::Text(take) => take(view).map(CellValue::Text),
            Take::Time(take) => take(view).map(CellValue::Time),
            Take::Int(take) => take(view).map(CellValue::Int),
            Take::Map(take) => {
                static NONE: BTreeMap<String, String> = BTreeMap::new();
                Some(CellValue::Map(take(view).unwrap_or(&NONE)))
            }
            Take::Pairs => Some(CellValue::Texts(view.pairs().collect())),
            Take::Payload => view.data().map(|data| CellValue::Bytes(&data.value)),
            Take::Digest => view.digest().map(CellValue::Digest),
        }
    }
}
