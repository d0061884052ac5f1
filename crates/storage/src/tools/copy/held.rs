//! What the target holds of the rows of a page.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Outline;
use crate::{
    codec::uid,
    seam::Error,
    sql::{etag, read, row::SqlRow as _, walk},
    tools::snapshot::Snapshot,
};
use hindsight_filter::model::{Etag, RecordName, Resource, ResultName, RunResult};

/// The target, read beside the writes into it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) snapshot: Snapshot,
}

/// A record of the target and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct There {
    pub(super) result_uid: String,
    /// The record, if it is there.
    pub(super) record: Option<Version>,
}

/// A version of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) uid: String,
    pub(super) etag: Etag,
    pub(super) create_us: i64,
    pub(super) update_us: i64,
    pub(super) data_type: Option<String>,
    pub(super) sha256: Option<Vec<u8>>,
}

impl Version {
    /// The version that an outline tells of.
    pub(super) fn of(outline: &Outline) -> Self {
        Self {
            uid: outline.uid.clone(),
            etag: outline.etag.clone(),
            create_us: outline.create_time.as_microsecond(),
            update_us: outline.update_time.as_microsecond(),
            data_type: outline.data_type.clone(),
            sha256: outline.sha256.clone(),
        }
    }

    pub(super) fn updated(&self) -> Timestamp {
        Timestamp::from_microsecond(self.update_us).unwrap_or_default()
    }
}

impl Held {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot }
    }

    /// The results of these names, as they are now.
    pub(super) async fn results(
        &mut self,
        names: &[&ResultName],
    ) -> Result<HashMap<ResultName, RunResult>, Error> {
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        self.snapshot.refresh().await?;
        let statement = walk::held_results(self.snapshot.dialect, names);
        let rows = self.snapshot.rows(&statement).await?;
        let result = |row| read::result(row).map(|result| (result.name.clone(), result));
        rows.iter().map(result).collect()
    }

    /// What there is for these names, as it is now, in their order; nothing where there is no
    /// result.
    pub(super) async fn records(
        &mut self,
        names: &[&RecordName],
    ) -> Result<Vec<Option<There>>, Error> {
        let mut found = vec![None; names.len()];
        if names.is_empty() {
            return Ok(found);
        }
        self.snapshot.refresh().await?;
        for row in self.snapshot.rows(&walk::held_records(names)).await? {
            let place = row.int(0)?.and_then(|place| usize::try_from(place).ok());
            let at = place.and_then(|place| found.get_mut(place).zip(names.get(place)));
            let Some((at, name)) = at else { continue };
            let record = match row.text(2)? {
                None => None,
                Some(kept) => {
                    let create_us = row.int(4)?.unwrap_or_default();
                    let uid = uid::shown(Resource::Records, kept, name.id(), create_us)?;
                    let update_us = row.int(5)?.unwrap_or_default();
                    let etag = read::text(&row, 3)?.unwrap_or_default();
                    Some(Version {
                        etag: etag::shown(etag, &uid, update_us),
                        uid,
                        create_us,
                        update_us,
                        data_type: read::text(&row, 6)?,
                        sha256: row.bytes(8)?,
                    })
                }
            };
            *at = Some(There {
                result_uid: uid::shown(
                    Resource::Results,
                    row.text(1)?.unwrap_or_default(),
                    name.result().id(),
                    row.int(9)?.unwrap_or_default(),
                )?,
                record,
            });
        }
        Ok(found)
    }

    pub(super) async fn close(self) {
        self.snapshot.close().await;
    }
}
