//! Looking at indexes of paths: whether they hold what payloads give, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Check, Finding, Kind};
use crate::{
    codec::known::IndexedPaths,
    seam::Error,
    sql::{index_build, indexed, read::text, row::SqlRow as _},
};
use hindsight_filter::indexed::Fields;

/// What is known of indexed paths, and what their indexes hold of a page of records.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    known: IndexedPaths,
    fields: Arc<Fields>,
    held: BTreeMap<i64, Held>,
}

/// What indexes hold of a record.
#[derive(Debug, Default)]
pub(super) struct Held {
    keys: BTreeSet<(i64, String)>,
    paths: Vec<(i64, String)>,
    fields: Arc<Fields>,
}

impl Check<'_> {
    /// Reads which fields there are.
    pub(super) async fn known(&mut self) -> Result<(), Error> {
        let rows = self.snapshot.rows(&indexed::known()).await?;
        let known = indexed::read_known(&rows)?;
        let ready = known.all().iter().filter(|one| one.ready);
        let ready = ready.map(|one| (one.id, one.path.clone(), one.kind));
        self.indexed.fields = Arc::new(Fields::new(ready.collect()));
        self.indexed.known = known;
        Ok(())
    }

    /// Reads what indexes hold of the records after one row and up to another.
    pub(super) async fn hold(&mut self, after: i64, last: i64) -> Result<(), Error> {
        self.indexed.held.clear();
        if self.indexed.fields.is_empty() {
            return Ok(());
        }
        for row in self.snapshot.rows(&index_build::held(after, last)).await? {
            if let (Some(record), Some(field), Some(key)) =
                (row.int(0)?, row.int(1)?, text(&row, 2)?)
            {
                let held = self.indexed.held.entry(record).or_default();
                held.keys.insert((field, key));
            }
        }
        Ok(())
    }

    /// What they hold of the record in a row; nothing if no field is indexed.
    pub(super) fn held(&mut self, row: i64) -> Option<Held> {
        if self.indexed.fields.is_empty() {
            return None;
        }
        let mut held = self.indexed.held.remove(&row).unwrap_or_default();
        held.fields = Arc::clone(&self.indexed.fields);
        let all = self.indexed.known.all().iter().filter(|one| one.ready);
        held.paths = all.map(|one| (one.id, one.path.to_string())).collect();
        Some(held)
    }
}

impl Held {
    /// What indexes lack of a payload, and what they hold besides.
    pub(super) fn differs(&self, name: &str, payload: &[u8]) -> Vec<Finding> {
        let given = self.fields.keys(payload).into_iter();
        let given: BTreeSet<_> = given.collect();
        let lacks = given
            .difference(&self.keys)
            .map(|key| (key, "lacks its value"));
        let exceeds = self.keys.difference(&given);
        let exceeds = exceeds.map(|key| (key, "holds a value that its payload does not give:"));
        let kinds = [Kind::IndexLacks, Kind::IndexExceeds];
        let all = lacks
            .map(|one| (one, kinds[0]))
            .chain(exceeds.map(|one| (one, kinds[1])));
        all.filter_map(|(((field, key), what), kind)| {
            let (_, path) = self.paths.iter().find(|(id, _)| id == field)?;
            let what = format!("the index of `{path}` {what} {key:?}");
            Some(Finding::new(kind, name, what))
        })
        .collect()
    }
}
