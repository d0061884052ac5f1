//! Values of a column of a file, by the path of its leaf.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use parquet::{
    basic::Type as Physical,
    data_type::{
        AsBytes as _, ByteArray, ByteArrayType, DataType, FixedLenByteArrayType, Int64Type,
    },
    file::serialized_reader::SerializedPageReader,
};

use super::{Reader, absent, guarded};
use crate::{
    Error, Source,
    cells::{Cells, read},
    columns,
};

/// A leaf of the schema, whose values are read by row group.
pub(super) struct Column<'r, S> {
    pub(super) reader: &'r Reader<S>,
    pub(super) path: &'r str,
}

impl<S: Source> Column<'_, S> {
    /// Its number in the file; none if the file has no such column.
    pub(super) fn leaf(&self) -> Option<usize> {
        let columns = self
            .reader
            .metadata
            .file_metadata()
            .schema_descr()
            .columns();
        columns
            .iter()
            .position(|it| it.path().string() == self.path)
    }

    /// What the file has of these rows. A column that is optional may be absent from the file.
    fn cells<D: DataType>(&self, group: usize, rows: &[usize]) -> Result<Cells<D::T>, Error> {
        let Some(leaf) = self.leaf() else {
            let name = self.path.split('.').next().unwrap_or_default();
            return match columns::column(name) {
                Some(column) if !column.is_required => Ok(Cells::empty(rows.len())),
                _ => Err(self.wrong("is not there")),
            };
        };
        let metadata = &self.reader.metadata;
        let descriptor = metadata.file_metadata().schema_descr().column(leaf);
        let is_nested = descriptor.max_def_level() > 1 || descriptor.max_rep_level() > 1;
        if descriptor.physical_type() != D::get_physical_type() || is_nested {
            let found = descriptor.physical_type();
            let wanted: Physical = D::get_physical_type();
            return Err(self.wrong(&format!(
                "is of the type {found}, where {wanted} is expected"
            )));
        }
        let row_group = metadata.row_group(group);
        let pages = metadata
            .offset_index()
            .and_then(|index| index.get(group)?.get(leaf));
        let pages = pages.map(|index| index.page_locations().clone());
        let count = usize::try_from(row_group.num_rows()).unwrap_or_default();
        let source = Arc::new(self.reader.source.clone());
        guarded(|| {
            let pages = SerializedPageReader::new(source, row_group.column(leaf), count, pages)?;
            read::<D>(descriptor, Box::new(pages), rows)
        })
    }

    /// At most one value of each row.
    fn singles<D: DataType, T>(
        &self,
        group: usize,
        rows: &[usize],
        value: impl Fn(&D::T) -> Result<T, Error>,
    ) -> Result<Vec<Option<T>>, Error> {
        let cells = self.cells::<D>(group, rows)?;
        let single = |row| cells.row(row).first().map(&value).transpose();
        (0..rows.len()).map(single).collect()
    }

    pub(super) fn texts(&self, group: usize, rows: &[usize]) -> Result<Vec<Option<String>>, Error> {
        self.singles::<ByteArrayType, _>(group, rows, |value| self.text(value))
    }

    pub(super) fn ints(&self, group: usize, rows: &[usize]) -> Result<Vec<Option<i64>>, Error> {
        self.singles::<Int64Type, _>(group, rows, |value| Ok(*value))
    }

    pub(super) fn times(
        &self,
        group: usize,
        rows: &[usize],
    ) -> Result<Vec<Option<Timestamp>>, Error> {
        self.singles::<Int64Type, _>(group, rows, |us| {
            Timestamp::from_microsecond(*us).map_err(|_range| self.wrong("has a time out of range"))
        })
    }

    pub(super) fn bodies(&self, group: usize, rows: &[usize]) -> Result<Vec<Option<Bytes>>, Error> {
        // A value is a part of its page, which would stay in memory for as long as the value does.
        self.singles::<ByteArrayType, _>(group, rows, |value| {
            Ok(Bytes::copy_from_slice(value.as_bytes()))
        })
    }

    pub(super) fn digests(
        &self,
        group: usize,
        rows: &[usize],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.singles::<FixedLenByteArrayType, _>(group, rows, |value| Ok(value.as_bytes().to_vec()))
    }

    pub(super) fn lists(&self, group: usize, rows: &[usize]) -> Result<Vec<Vec<String>>, Error> {
        let cells = self.cells::<ByteArrayType>(group, rows)?;
        let texts = |row| {
            cells
                .row(row)
                .iter()
                .map(|value| self.text(value))
                .collect()
        };
        (0..rows.len()).map(texts).collect()
    }

    fn text(&self, value: &ByteArray) -> Result<String, Error> {
        let text = value
            .as_utf8()
            .map_err(|_bytes| self.wrong("has a value that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn wrong(&self, why: &str) -> Error {
        match absent(self.path) {
            Error::Column { column, .. } => Error::Column {
                column,
                why: why.to_owned(),
            },
            other => other,
        }
    }
}
