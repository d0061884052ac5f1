//! The thresholds by which an access path is chosen, with the measurements that set them.
//!
//! Measured with `make bench-scale` among 10,000, 100,000 and 1,000,000 records; see
//! docs/adr/0020 and docs/adr/0024.

use super::dialect::Dialect;
use hindsight_filter::model::Resource;

/// Rows of an index that are looked at on PostgreSQL, first and then, before all of them are sorted.
pub(crate) const NEXT_OF: [i64; 2] = [250, 5_000];

/// Values of a label, or types, of which an index is asked for one by one.
pub(crate) const MOST_VALUES: usize = 16;

/// What reading rows costs on a database, as numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostModel {
    /// Records that a prefix scan looks at. A match in forty fills the first page from 2,000, which
    /// takes 2 ms on PostgreSQL.
    prefix_records: i64,
    /// The same in the order of updates, which no index of what is asked for has: 10,000 take 6 ms on PostgreSQL.
    pub(crate) prefix_updated: i64,
    /// The same where a label is asked for, whose index finds few rows in 1 ms, or how long runs took.
    pub(crate) prefix_labelled: i64,
    /// The same where names are searched, of which all would be looked at otherwise.
    pub(crate) prefix_searched: i64,
    /// The same where names are searched by their trigrams, of which very many rows may have all.
    pub(crate) prefix_parts: i64,
    /// Results that a prefix scan looks at: they are wide, and few columns can be asked of them.
    prefix_results: i64,
    /// Rows that a second prefix scan looks at, before more than `sorted` rows are sorted; on
    /// PostgreSQL the first one, where no index leads to rows and all would be sorted, or the
    /// second, where many names begin so.
    pub(crate) long_prefix_rows: i64,
    /// Rows of an index that are counted to compare it with others. SQLite counts 5,000 entries
    /// in 0.3 ms; PostgreSQL reads the rows, 250 of them in 1 ms.
    pub(crate) counted_rows: i64,
    /// Entries of an indexed path, or of several labels, that are counted; the index alone is read for them.
    pub(crate) counted_entries: i64,
    /// Rows that are gathered and sorted before a longer prefix scan is worth trying first: 4,000
    /// take 20 ms on SQLite.
    pub(crate) sorted: i64,
    /// Rows of what took long that are gathered and sorted rather than gone through in order: of 20,000 that took ten
    /// minutes, a page in order takes as many looks where 1,000 match.
    pub(crate) gathered: i64,
    /// Rows with a label that are more to look up than all names are to read, on PostgreSQL.
    pub(crate) looked_up: i64,
    /// Statements of an aggregate that are worth a second connection, on SQLite.
    pub(crate) shared_statements: usize,
    /// Rows of a table that are worth one, on SQLite: 50 ms.
    pub(crate) shared_rows: i64,
    /// Blocks of a table that are worth one, on PostgreSQL: half a megabyte.
    pub(crate) shared_blocks: i64,
}

const SQLITE: CostModel = CostModel {
    prefix_records: 2_000,
    prefix_updated: 2_000,
    prefix_labelled: 2_000,
    prefix_searched: 8_000,
    prefix_parts: 2_000,
    prefix_results: 2_000,
    long_prefix_rows: 20_000,
    counted_rows: 5_000,
    counted_entries: 20_000,
    sorted: 4_000,
    gathered: 1_000,
    looked_up: i64::MAX,
    shared_statements: 8,
    shared_rows: 50_000,
    shared_blocks: i64::MAX,
};

const POSTGRES: CostModel = CostModel {
    prefix_records: 2_000,
    prefix_updated: 10_000,
    prefix_labelled: 1_000,
    prefix_searched: 10_000,
    prefix_parts: 2_000,
    prefix_results: 4_000,
    long_prefix_rows: 100_000,
    counted_rows: 250,
    counted_entries: 1_000,
    sorted: 4_000,
    gathered: 1_000,
    looked_up: 20_000,
    shared_statements: usize::MAX,
    shared_rows: i64::MAX,
    shared_blocks: 64,
};

/// That of a database.
pub(crate) fn model(dialect: Dialect) -> CostModel {
    match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    }
}

impl CostModel {
    /// Rows that a prefix scan looks at.
    pub(crate) fn prefix_rows(self, resource: Resource, is_labelled: bool) -> i64 {
        match (resource, is_labelled) {
            (Resource::Records, true) => self.prefix_labelled,
            (Resource::Records, false) => self.prefix_records,
            (Resource::Results, _) => self.prefix_results,
        }
    }
}
