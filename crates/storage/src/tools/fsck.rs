//! Looking for damage: whether every row can be read, every payload is what was stored, and
//! everything that is referred to is there.
//!
//! Reads one moment of a database beside its writers and changes nothing. What is extracted from
//! payloads is extracted again by the code that writes rows, so a column that is added there is
//! checked here without a further line. Memory is bounded by a page, whatever the database holds.

mod dictionaries;
mod finding;
mod indexed;
mod indexes;
mod objects;
mod pipelines;
mod records;
#[cfg(test)]
mod tests;

use self::indexed::Indexed;
pub(crate) use self::{dictionaries::DictionaryReader, finding::name as name_of};
pub use self::{finding::Finding, finding::Kind, objects::Orphans, objects::orphans};
use super::snapshot::Snapshot;
use crate::{
    codec::dictionary::StoredDictionary,
    seam::Error,
    sql::{
        read,
        row::{Row, SqlRow as _},
        statement::Statement,
        walk::{self, TABLES, Table},
    },
};

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// At rows and what they refer to, without opening payloads.
    Quick,
    /// At everything: payloads are also rebuilt and hashed.
    Full,
}

/// What happens while looking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A stage of so many rows begins.
    Stage {
        /// What is looked at.
        what: &'static str,
        /// How many rows there are.
        total: u64,
    },
    /// So many more rows of the stage were looked at.
    Seen(u64),
    /// One thing that is wrong, told as soon as it is found.
    Found(Finding),
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Results whose rows were looked at.
    pub results: u64,
    /// Records whose rows were looked at.
    pub records: u64,
    /// Payloads that were rebuilt and whose SHA-256 is that of what was stored.
    pub verified_payloads: u64,
    /// Bytes of those payloads.
    pub verified_bytes: u64,
    /// Dictionaries that payloads refer to.
    pub dictionaries: u64,
    /// Objects in which payloads lie outside the database.
    pub objects: u64,
    /// Bytes of those objects.
    pub object_bytes: u64,
}

/// Rows that one page has at most.
const MOST_ROWS: i64 = 512;

/// Bytes of payloads after which a page ends.
const MOST_BYTES: i64 = 16 << 20;

/// Findings of one statement that finds nothing else.
const MOST_FOUND: i64 = 1000;

/// Looks at everything, and says what it finds as it goes. A quick look of a snapshot that knows no
/// object store leaves objects alone.
///
/// # Errors
/// If the database cannot be read to the end, or payloads lie where nothing is said of; damage is a
/// finding, not an error.
pub async fn fsck(
    snapshot: &mut Snapshot,
    depth: Depth,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<Seen, Error> {
    let mut check = Check {
        snapshot,
        depth,
        tell,
        seen: Seen::default(),
        dictionaries: DictionaryReader::default(),
        indexed: Indexed::default(),
    };
    check.reachable().await?;
    check.known().await?;
    check.engine().await?;
    check.results().await?;
    check.records().await?;
    check.dictionaries().await?;
    check.references().await?;
    check.indexes().await?;
    check.state().await?;
    check.pipelines().await?;
    check.objects().await?;
    Ok(check.seen)
}

/// A check under way.
struct Check<'a> {
    snapshot: &'a mut Snapshot,
    depth: Depth,
    tell: &'a mut (dyn FnMut(Event) + Send),
    seen: Seen,
    dictionaries: DictionaryReader,
    indexed: Indexed,
}

impl Check<'_> {
    fn found(&mut self, finding: Finding) {
        (self.tell)(Event::Found(finding));
    }

    /// Lets the engine look at its own pages and indexes.
    async fn engine(&mut self) -> Result<(), Error> {
        let total = TABLES.len() as u64;
        (self.tell)(Event::Stage {
            what: "tables",
            total,
        });
        for (table, _) in TABLES {
            for what in self.snapshot.damage(table).await? {
                self.found(Finding::new(Kind::TableDamaged, table, what));
            }
            (self.tell)(Event::Seen(1));
        }
        Ok(())
    }

    /// Counts a table as its index has it, and begins a stage.
    async fn begin(&mut self, what: &'static str, table: Table) -> Result<u64, Error> {
        let total = self
            .snapshot
            .number(&walk::count(self.snapshot.dialect, table))
            .await;
        let total = self.readable(table, total)?.unwrap_or(0);
        let total = u64::try_from(total).unwrap_or(0);
        (self.tell)(Event::Stage { what, total });
        Ok(total)
    }

    /// What was read, or nothing if the table is damaged there, which is then a finding.
    fn readable<T>(&mut self, table: Table, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Error::Corrupt(why)) => {
                self.found(Finding::new(Kind::TableDamaged, table.name(), why));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The last row of the page after `after`, if there is one.
    async fn page(&mut self, table: Table, after: i64) -> Result<Option<i64>, Error> {
        let sizes = walk::sizes(table, after, MOST_ROWS);
        let rows = self.snapshot.rows(&sizes).await;
        let Some(rows) = self.readable(table, rows)? else {
            return Ok(None);
        };
        walk::cut(&rows, MOST_BYTES)
    }

    /// The rows of a statement about a table.
    async fn rows(&mut self, table: Table, statement: &Statement) -> Result<Vec<Row>, Error> {
        let rows = self.snapshot.rows(statement).await;
        Ok(self.readable(table, rows)?.unwrap_or_default())
    }

    /// Says so if a walk along the rows saw others than the count.
    fn count(&mut self, table: Table, counted: u64, walked: u64) {
        if counted != walked {
            let what = format!("{counted} rows are counted and {walked} are found one by one");
            self.found(Finding::new(Kind::CountDiffers, table.name(), what));
        }
    }

    async fn results(&mut self) -> Result<(), Error> {
        let counted = self.begin("results", Table::Results).await?;
        let mut after = i64::MIN;
        while let Some(last) = self.page(Table::Results, after).await? {
            let statement = walk::results(self.snapshot.dialect, after, last);
            let rows = self.rows(Table::Results, &statement).await?;
            for row in &rows {
                if let Err(Error::Corrupt(why)) = read::result(row) {
                    let name = finding::name(row, &[1, 2]);
                    self.found(Finding::new(Kind::RowDamaged, name, why));
                }
            }
            self.seen.results += rows.len() as u64;
            (self.tell)(Event::Seen(rows.len() as u64));
            after = last;
        }
        self.count(Table::Results, counted, self.seen.results);
        Ok(())
    }

    async fn dictionaries(&mut self) -> Result<(), Error> {
        let counted = self.begin("dictionaries", Table::DictionaryCache).await?;
        let mut after = i64::MIN;
        while let Some(last) = self.page(Table::DictionaryCache, after).await? {
            if self.depth == Depth::Quick {
                after = last;
                continue;
            }
            let rows = self
                .rows(Table::DictionaryCache, &walk::dictionaries(after, last))
                .await?;
            for row in &rows {
                let dictionary = read::dictionary(row, 0).and_then(StoredDictionary::open);
                if let Err(Error::Corrupt(why)) = dictionary {
                    let id = row.int(0).ok().flatten().unwrap_or(0);
                    let name = format!("dictionary {id}");
                    self.found(Finding::new(Kind::DictionaryDamaged, name, why));
                }
            }
            self.seen.dictionaries += rows.len() as u64;
            (self.tell)(Event::Seen(rows.len() as u64));
            after = last;
        }
        if self.depth == Depth::Full {
            self.count(Table::DictionaryCache, counted, self.seen.dictionaries);
        }
        Ok(())
    }

    /// What nothing leads to that was walked along.
    async fn references(&mut self) -> Result<(), Error> {
        (self.tell)(Event::Stage {
            what: "references",
            total: 3,
        });
        let lonely = walk::bodies_without_record(MOST_FOUND);
        for row in self.rows(Table::Bodies, &lonely).await? {
            let id = row.int(0)?.unwrap_or(0);
            let what = format!("its record, in row {id}, is not there");
            self.found(Finding::new(Kind::BodyOrphan, format!("body {id}"), what));
        }
        (self.tell)(Event::Seen(1));
        let lonely = walk::keys_without_dictionary(MOST_FOUND);
        for row in self.rows(Table::DictionaryKeys, &lonely).await? {
            let key = row.bytes(0)?.unwrap_or_default();
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let what = format!(
                "its dictionary, in row {}, is not there",
                row.int(1)?.unwrap_or(0)
            );
            self.found(Finding::new(Kind::KeyOrphan, format!("key {key}"), what));
        }
        (self.tell)(Event::Seen(1));
        let partial = walk::logs_in_part(MOST_FOUND);
        for row in self.rows(Table::Logs, &partial).await? {
            let number = |at| Ok::<_, Error>(row.int(at)?.unwrap_or(0));
            let what = format!("it counts {} lines and has {}", number(1)?, number(2)?);
            let log = format!("log {}", number(0)?);
            self.found(Finding::new(Kind::LogDamaged, log, what));
        }
        (self.tell)(Event::Seen(1));
        Ok(())
    }
}
