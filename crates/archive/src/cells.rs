//! Values of one column of many rows, each of which has none, one or several.

use std::ops::Range;

use parquet::{
    column::{
        reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
        writer::ColumnWriterImpl,
    },
    data_type::DataType,
    errors::ParquetError,
    schema::types::ColumnDescPtr,
};

/// The values of all rows, and where those of each end.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    values: Vec<T>,
    ends: Vec<usize>,
}

impl<T> Default for Cells<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<T> Cells<T> {
    /// That many rows, none of which has a value.
    pub(crate) fn empty(rows: usize) -> Self {
        Self {
            values: Vec::new(),
            ends: vec![0; rows],
        }
    }

    pub(crate) fn push(&mut self, values: impl IntoIterator<Item = T>) {
        self.values.extend(values);
        self.ends.push(self.values.len());
    }

    /// The values of a row, in the order in which they were pushed.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let from = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[from..self.ends[row]]
    }

    /// Writes everything into a column whose values are required, optional or repeated.
    pub(crate) fn write<D: DataType<T = T>>(
        &self,
        out: &mut ColumnWriterImpl<'_, D>,
    ) -> Result<(), ParquetError> {
        let column = out.get_descriptor();
        let (defined, repeated) = (column.max_def_level(), column.max_rep_level());
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        for row in 0..self.ends.len() {
            let count = self.row(row).len();
            definitions.extend(std::iter::repeat_n(defined, count));
            definitions.extend((count == 0).then_some(0));
            repetitions.extend((0..count.max(1)).map(|at| if at == 0 { 0 } else { repeated }));
        }
        let definitions = (defined > 0).then_some(&definitions[..]);
        let repetitions = (repeated > 0).then_some(&repetitions[..]);
        out.write_batch(&self.values, definitions, repetitions)?;
        Ok(())
    }
}

/// Reads these rows of a column chunk, which are in order; pages without any are passed over.
pub(crate) fn read<D: DataType>(
    column: ColumnDescPtr,
    pages: Box<dyn parquet::column::page::PageReader>,
    rows: &[usize],
) -> Result<Cells<D::T>, ParquetError> {
    let defined = column.max_def_level();
    let mut reader = get_typed_column_reader::<D>(get_column_reader(column, pages));
    let mut cells = Cells::default();
    let mut next = 0;
    for range in ranges(rows) {
        let skipped = reader.skip_records(range.start - next)?;
        if skipped != range.start - next {
            return Err(ParquetError::EOF("rows are missing".to_owned()));
        }
        next = range.end;
        read_range(&mut reader, defined, range.len(), &mut cells)?;
    }
    Ok(cells)
}

fn read_range<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    defined: i16,
    mut rows: usize,
    cells: &mut Cells<D::T>,
) -> Result<(), ParquetError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    while rows > 0 {
        let (definitions, repetitions) = (&mut definitions, &mut repetitions);
        let (read, ..) =
            reader.read_records(rows, Some(definitions), Some(repetitions), &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF("rows are missing".to_owned()));
        }
        rows -= read;
    }
    let levels = definitions.len().max(values.len());
    let mut values = values.into_iter();
    for at in 0..levels {
        let is_first = repetitions.get(at).is_none_or(|level| *level == 0);
        let has_value = definitions.get(at).is_none_or(|level| *level == defined);
        let value = has_value.then(|| values.next()).flatten();
        match cells.ends.last_mut() {
            Some(end) if !is_first => {
                cells.values.extend(value);
                *end = cells.values.len();
            }
            _ => cells.push(value),
        }
    }
    Ok(())
}

/// Numbers in order as ranges.
fn ranges(rows: &[usize]) -> impl Iterator<Item = Range<usize>> {
    rows.chunk_by(|a, b| a + 1 == *b)
        .filter_map(|chunk| Some(*chunk.first()?..chunk.last()? + 1))
}
