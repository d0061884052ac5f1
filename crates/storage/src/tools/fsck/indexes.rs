//! Looking at tables that lead to records: labels, parts of names, and keys of indexed paths that lead nowhere.

use super::{
    Check, Event, MOST_FOUND,
    finding::{self, Finding, Kind},
};
use crate::{
    seam::Error,
    sql::{
        dialect::Dialect,
        read::text,
        row::SqlRow as _,
        walk::{self, Table},
    },
};

impl Check<'_> {
    /// Whether the labels of records after one row and up to another are indexed. PostgreSQL
    /// indexes the column itself.
    pub(super) async fn labels(&mut self, after: i64, last: i64) -> Result<(), Error> {
        if self.snapshot.dialect == Dialect::Postgres {
            return Ok(());
        }
        let lacking = walk::labels_not_indexed(after, last, MOST_FOUND);
        for row in self.rows(Table::Records, &lacking).await? {
            let what = match (text(&row, 3)?, text(&row, 4)?) {
                (Some(key), Some(value)) => format!("the index of labels lacks `{key}={value}`"),
                _ => "the table of labels lacks one of its labels".to_owned(),
            };
            let name = finding::name(&row, &[0, 1, 2]);
            self.found(Finding::new(Kind::LabelDiffers, name, what));
        }
        Ok(())
    }

    /// Whether the names of the same records are indexed, likewise.
    pub(super) async fn names(&mut self, after: i64, last: i64) -> Result<(), Error> {
        if self.snapshot.dialect == Dialect::Postgres {
            return Ok(());
        }
        let lacking = walk::names_not_indexed(after, last, MOST_FOUND);
        for row in self.rows(Table::Records, &lacking).await? {
            let what = "the index of parts of names lacks its name";
            let name = finding::name(&row, &[0, 1, 2]);
            self.found(Finding::new(Kind::NameDiffers, name, what));
        }
        Ok(())
    }

    /// What tables hold that lead to records, and no record gives.
    pub(super) async fn indexes(&mut self) -> Result<(), Error> {
        (self.tell)(Event::Stage {
            what: "indexes",
            total: 2,
        });
        if self.snapshot.dialect == Dialect::Sqlite {
            let exceeding = walk::labels_without_record(MOST_FOUND);
            for row in self.rows(Table::Records, &exceeding).await? {
                let (key, value) = (text(&row, 1)?, text(&row, 2)?);
                let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
                let what = format!("the index of labels holds `{key}={value}`, which it has not");
                let of = format!("record in row {}", row.int(0)?.unwrap_or(0));
                self.found(Finding::new(Kind::LabelDiffers, of, what));
            }
        }
        (self.tell)(Event::Seen(1));
        let exceeding = walk::keys_without_field(MOST_FOUND);
        for row in self.rows(Table::Records, &exceeding).await? {
            let (field, key) = (row.int(1)?.unwrap_or(0), text(&row, 2)?);
            let key = key.unwrap_or_default();
            let what = format!("the index of field {field} holds {key:?}, which leads nowhere");
            let of = format!("record in row {}", row.int(0)?.unwrap_or(0));
            self.found(Finding::new(Kind::IndexExceeds, of, what));
        }
        (self.tell)(Event::Seen(1));
        Ok(())
    }

    /// What the database keeps of itself.
    pub(super) async fn state(&mut self) -> Result<(), Error> {
        let generations = self.snapshot.number(&walk::generations()).await?;
        if generations != 1 {
            let what = format!("it has {generations} rows where it has one");
            self.found(Finding::new(Kind::RowDamaged, "index_generation", what));
        }
        for row in self.snapshot.rows(&walk::secrets()).await? {
            let name = text(&row, 0)?.unwrap_or_default();
            if row.int(1)?.unwrap_or(0) == 0 {
                let of = format!("secret {name}");
                self.found(Finding::new(Kind::RowDamaged, of, "it is empty"));
            }
        }
        Ok(())
    }
}
