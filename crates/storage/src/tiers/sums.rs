//! Adding up records of the store and of files.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hindsight_archive::{Error as FileError, Place, Reader};
use hindsight_filter::{
    Order,
    condition::{Column, Condition, Value},
    measure::{Group, Tally},
};

use super::{Tiers, object::Object, search::AT_ONCE};
use crate::seam::{AggregateQuery, ArchiveFile, Error, GroupKey, ListQuery, Projection, Quantity};

/// How often it is begun again because files came meanwhile.
const RETRIES: usize = 16;

impl Tiers {
    /// The groups of `query`, all as of one moment: which results are in which file is read at the moment at which
    /// the store adds up.
    pub(super) async fn sums(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        let listed = ListQuery {
            scope: query.scope.clone(),
            condition: query.condition.clone(),
            order: Order::newest_first(),
            after: None,
            limit: std::num::NonZeroU32::MIN,
            bodies: false,
            max_bytes: None,
            projection: Projection::ALL,
            priority: query.priority,
        };
        for _ in 0..RETRIES {
            let before = self.archive.index.archive_state().await?;
            let files = self.candidates(&listed, before).await?;
            if files.is_empty() {
                let groups = self.store.aggregate(query).await?;
                let after = self.archive.index.archive_state().await?;
                // What left the store meanwhile is in a file that was noted before.
                if after == before && self.candidates(&listed, after).await?.is_empty() {
                    return Ok(groups);
                }
                continue;
            }
            let numbers: Vec<i64> = files.iter().map(|file| file.id).collect();
            let beside = self.archive.index.aggregate_beside(query, &numbers).await?;
            // The file of one result was asked for before.
            let has_left = query.scope.id.is_some() && beside.state.left != before.left;
            if beside.state.files != before.files || has_left {
                continue;
            }
            let mut tally = Tally::new(query.shape());
            for group in beside.groups {
                tally.merge(group.keys, group.sums)?;
            }
            // One that is being written has none yet.
            let of_files = files.iter().filter_map(|file| {
                let results = beside.results.get(&file.id)?;
                let results = Some(results).filter(|results| !results.is_empty())?;
                Some(self.values_of(query, file, results))
            });
            let of_files: Vec<_> = of_files.collect();
            let mut of_files = stream::iter(of_files).buffered(AT_ONCE);
            let added = async {
                while let Some((results, read)) = of_files.try_next().await? {
                    add(query, results, read, &mut tally)?;
                }
                Ok(())
            };
            match added.await {
                // It was removed at once, for the sake of what was purged.
                Err(Error::MissingObject(_))
                    if self.archive.index.archive_state().await?.files != before.files => {}
                added => return added.map(|()| tally.finish()),
            }
        }
        Err(Error::Unavailable {
            what: "adding up",
            source: "records are moved to archive files all the time; try again".into(),
        })
    }

    /// What is added up of the records of a file, and the results that are in it.
    async fn values_of<'r>(
        &self,
        query: &AggregateQuery,
        file: &ArchiveFile,
        results: &'r HashSet<String>,
    ) -> Result<(&'r HashSet<String>, Values), Error> {
        let (condition, columns) = (condition_of(query), columns_of(query));
        let read = self
            .archive
            .with_reader(file, move |reader| values(reader, &condition, &columns));
        Ok((results, read.await?))
    }
}

/// Adds the records of results.
fn add(
    query: &AggregateQuery,
    results: &HashSet<String>,
    (ids, values): Values,
    tally: &mut Tally,
) -> Result<(), Error> {
    for (at, id) in ids.iter().enumerate() {
        if !results.contains(id) {
            continue;
        }
        let column = |column: &Column| values.get(column)?[at].clone();
        let keys = query.keys.iter().map(|key| key.of(&column)).collect();
        query.add(tally, keys, &column)?;
    }
    Ok(())
}

type Values = (Vec<String>, HashMap<Column, Vec<Option<Value>>>);

fn values(
    reader: &Reader<Object>,
    condition: &Condition,
    columns: &HashSet<Column>,
) -> Result<Values, FileError> {
    let places: Vec<Place> = reader.find(condition)?.places;
    let mut values = HashMap::new();
    for column in columns {
        values.insert(column.clone(), reader.values(&places, column)?);
    }
    Ok((reader.result_ids(&places)?, values))
}

fn condition_of(query: &AggregateQuery) -> Condition {
    super::search::scoped(query.scope.id.as_deref(), &query.condition)
}

/// The columns that are grouped by, counted and added up.
fn columns_of(query: &AggregateQuery) -> HashSet<Column> {
    let mut columns = HashSet::new();
    for key in &query.keys {
        let (GroupKey::Column(column) | GroupKey::Bucket(column, _)) = key;
        columns.insert(column.clone());
    }
    for count in &query.counts {
        tested(count, &mut columns);
    }
    for amount in &query.amounts {
        match &amount.of {
            Quantity::Value(column) => {
                columns.insert(column.clone());
            }
            Quantity::Between(from, to) => columns.extend([from.clone(), to.clone()]),
        }
    }
    columns
}

fn tested(condition: &Condition, columns: &mut HashSet<Column>) {
    match condition {
        Condition::All | Condition::Nothing => {}
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().for_each(|part| tested(part, columns));
        }
        Condition::Test(test) => {
            columns.insert(test.column.clone());
        }
    }
}
