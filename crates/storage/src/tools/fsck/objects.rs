//! Looking at objects that hold payloads and chunks of logs outside the database: whether they are there,
//! whether the database knows which are held, and which ones nobody knows of.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;

use super::{
    Check, Depth, Event,
    finding::{self, Finding, Kind},
};
use crate::{
    codec::objects::{Objects, Reference, without_depot},
    seam::Error,
    sql::{
        objects as sql,
        row::{Row, SqlRow as _},
        walk::Table,
    },
    tools::snapshot::Snapshot,
};

/// Objects that are looked at by one statement.
const PAGE: i64 = 500;

/// How many of them at once.
const AT_ONCE: usize = 8;

impl Check<'_> {
    /// Refuses to look at payloads where it is not known where some are.
    pub(super) async fn reachable(&mut self) -> Result<(), Error> {
        let totals = self.snapshot.object_totals().await?;
        self.seen.objects = totals.held;
        self.seen.object_bytes = totals.bytes;
        match self.snapshot.objects() {
            None if totals.held > 0 && self.depth == Depth::Full => Err(without_depot(&totals)),
            _ => Ok(()),
        }
    }

    /// Looks at every object that is held. Bodies of a full check were read with their records; chunks of
    /// logs are read here.
    pub(super) async fn objects(&mut self) -> Result<(), Error> {
        (self.tell)(Event::Stage {
            what: "objects",
            total: self.seen.objects,
        });
        let mut after = None;
        loop {
            let rows = self.rows(Table::Objects, &sql::held(after, PAGE)).await?;
            let Some(last) = rows.last() else { break };
            after = Some(sql::object(last, 0)?);
            let mut held = Vec::with_capacity(rows.len());
            for row in &rows {
                let is_of_log = row.int(6)?.is_some();
                if let Some(reference) = self.holder(row)?
                    && (is_of_log || self.depth == Depth::Quick)
                {
                    held.push((finding::name(row, &[2, 3, 4]), reference));
                }
            }
            if let Some(objects) = self.snapshot.objects().cloned() {
                self.there(&objects, held).await?;
            }
            (self.tell)(Event::Seen(rows.len() as u64));
        }
        for (table, of, unheld) in [
            (Table::Bodies, "its body", sql::unheld(PAGE)),
            (Table::Logs, "a part of its log", sql::unheld_by_logs(PAGE)),
        ] {
            for row in self.rows(table, &unheld).await? {
                let object = sql::object(&row, 0)?;
                let what = format!(
                    "{of} lies in the object {object}, which the database does not know it to hold"
                );
                let name = finding::name(&row, &[1, 2, 3]);
                self.found(Finding::new(Kind::ObjectUnheld, name, what));
            }
        }
        Ok(())
    }

    /// The reference of the body or chunk that holds an object, if one does.
    fn holder(&mut self, row: &Row) -> Result<Option<Reference>, Error> {
        let object = sql::object(row, 0)?;
        let reference = row.bytes(5)?.map(|bytes| Reference::read(&bytes));
        match reference {
            Some(Ok(reference)) if reference.object == object => Ok(Some(reference)),
            _ => {
                let holder = row.int(1)?.unwrap_or(0);
                let what = match row.int(6)? {
                    Some(line) => format!(
                        "it is held by line {line} of log {holder}, which does not refer to it"
                    ),
                    None => format!(
                        "it is held by the body in row {holder}, which does not refer to it"
                    ),
                };
                let of = format!("object {object}");
                self.found(Finding::new(Kind::ObjectIdle, of, what));
                Ok(None)
            }
        }
    }

    /// Looks whether objects are there, and have as many bytes; a full check reads them.
    async fn there(
        &mut self,
        objects: &Objects,
        held: Vec<(String, Reference)>,
    ) -> Result<(), Error> {
        let is_full = self.depth == Depth::Full;
        let stat = |(name, reference): (String, Reference)| async move {
            let outcome = match is_full {
                true => objects.get(&reference).await.map(drop),
                false => objects.stat(&reference).await,
            };
            (name, outcome)
        };
        let mut looked = stream::iter(held).map(stat).buffered(AT_ONCE);
        while let Some((name, outcome)) = looked.next().await {
            match outcome {
                Ok(()) => {}
                Err(Error::MissingObject(why)) => {
                    self.found(Finding::new(Kind::ObjectLost, name, why))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What is done about objects that nobody knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// Each is told as a finding and kept.
    Find,
    /// Each is removed from the object store.
    Remove,
}

/// Finds objects in the folder of the database that it knows nothing of, and that are older than
/// objects are kept: those that were written after the backup from which it was restored. Says how
/// many there are, or were removed, and their bytes.
///
/// # Errors
/// If the database or object store unavailable.
pub async fn orphans(
    snapshot: &mut Snapshot,
    now: Timestamp,
    what: Orphans,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<(u64, u64), Error> {
    let (Some(objects), mut count, mut bytes) = (snapshot.objects().cloned(), 0, 0) else {
        return Ok((0, 0));
    };
    let Some(before) = objects.old(now) else {
        return Ok((0, 0));
    };
    let listed = objects.list().await?;
    tell(Event::Stage {
        what: "listed objects",
        total: listed.len() as u64,
    });
    // What is uploaded is noted in the database first, so whoever is listed now is known to it now,
    // if to anybody.
    snapshot.refresh().await?;
    for page in listed.chunks(usize::try_from(PAGE).unwrap_or(1)) {
        let names: Vec<_> = page.iter().map(|one| one.object).collect();
        let rows = snapshot.rows(&sql::known(&names)).await?;
        let known: BTreeSet<_> = rows
            .iter()
            .map(|row| sql::object(row, 0))
            .collect::<Result<_, _>>()?;
        let strange = page.iter().filter(|one| {
            !known.contains(&one.object) && one.written_us <= before.as_microsecond()
        });
        let strange: Vec<_> = strange.collect();
        count += strange.len() as u64;
        bytes += strange.iter().map(|one| one.size).sum::<u64>();
        match what {
            Orphans::Find => {
                for one in strange {
                    let why = format!("{} bytes that the database knows nothing of", one.size);
                    let of = objects.shown(one.object);
                    tell(Event::Found(Finding::new(Kind::ObjectOrphan, of, why)));
                }
            }
            Orphans::Remove => {
                let strange = strange.into_iter().map(|one| one.object).collect();
                if let Some(error) = objects.remove(strange).await.refused {
                    return Err(error);
                }
            }
        }
        tell(Event::Seen(page.len() as u64));
    }
    Ok((count, bytes))
}
