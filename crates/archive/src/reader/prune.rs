//! Whether a row group can have rows that are asked for, by its statistics and Bloom filters.

use jiff::Timestamp;
use parquet::{
    bloom_filter::Sbbf,
    file::{reader::ChunkReader, statistics::Statistics},
};

use super::{Reader, guarded};
use crate::{Error, Test, columns::pair};

impl<R: ChunkReader + 'static> Reader<R> {
    pub(super) fn may_have(&self, group: usize, tests: &[Test]) -> Result<bool, Error> {
        // Statistics are in memory.
        if !tests.iter().all(|test| self.statistics_let(group, test)) {
            return Ok(false);
        }
        for test in tests {
            if !self.filter_lets(group, test)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn statistics_let(&self, group: usize, test: &Test) -> bool {
        let (path, _) = sought(test);
        let Some(leaf) = self.column(path).leaf() else {
            return true;
        };
        let column = self.metadata.row_group(group).column(leaf);
        let Some(statistics) = column.statistics() else {
            return true;
        };
        match (test, statistics) {
            (Test::Within(_, range), Statistics::Int64(it)) => {
                let (min, max) = (it.min_opt(), it.max_opt());
                let us = |time: Timestamp| time.as_microsecond();
                min.is_none_or(|min| *min <= us(range.end))
                    && max.is_none_or(|max| us(range.start) <= *max)
            }
            (_, it) => {
                let text = sought(test).1;
                let (min, max) = (it.min_bytes_opt(), it.max_bytes_opt());
                text.is_none_or(|text| {
                    min.is_none_or(|min| min <= text.as_bytes())
                        && max.is_none_or(|max| text.as_bytes() <= max)
                })
            }
        }
    }

    fn filter_lets(&self, group: usize, test: &Test) -> Result<bool, Error> {
        let (path, Some(text)) = sought(test) else {
            return Ok(true);
        };
        let Some(leaf) = self.column(path).leaf() else {
            return Ok(true);
        };
        let column = self.metadata.row_group(group).column(leaf);
        let filter = guarded(|| Sbbf::read_from_column_chunk(column, &*self.source))?;
        Ok(filter.is_none_or(|filter| filter.check(text.as_bytes())))
    }
}

/// The path of the leaf that is tested, and the text that is sought there.
fn sought(test: &Test) -> (&str, Option<String>) {
    match test {
        Test::Is(column, text) => (column, Some(text.clone())),
        Test::Label(key, value) => ("label_pairs.list.element", Some(pair(key, value))),
        Test::Within(column, _) => (column, None),
    }
}
