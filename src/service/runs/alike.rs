//! Which failed runs of a series failed for the same cause.

use std::num::NonZeroU32;

use std::collections::BTreeSet;

use hindsight_analysis::signature::Key;
use hindsight_analysis::tree::Tree;
use hindsight_runtime::error::{ErrorKind, HasKind as _};
use jiff::Timestamp;

use super::gather::{Succeeded, gather};
use super::series::{self, Series};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_filter::Order;
use hindsight_filter::model::RecordName;

/// Most failed runs that are compared.
const MOST: NonZeroU32 = NonZeroU32::new(20).unwrap();
/// Most of those alike that are named.
const NAMED: usize = 5;
/// Most records of what failed alike that are looked up.
const LOOKED_UP: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Failed runs that were compared with one.
#[derive(Debug, Clone, Default)]
pub struct Alike {
    /// How many of them are alike, that one included.
    pub count: u64,
    /// How many were compared.
    pub of: u64,
    /// Some of those alike, newest first, without that one.
    pub records: Vec<RecordName>,
    /// Why fewer were compared than there are.
    pub note: Option<String>,
}

/// The key of the failure of a run.
fn key(tree: &Tree) -> Option<Key> {
    let leaf = tree.nodes.get(tree.failed_leaf()?)?;
    Some(leaf.signature()?.key())
}

impl Service {
    /// Which of the `failed` failed runs of `series` that started after `after` have the key of the run `name`.
    /// The column of signatures says so: every record has its own key there.
    pub(super) async fn alike_by_column(
        &self,
        by: &RequestContext,
        (name, wanted): (&RecordName, Key),
        series: &Series,
        (after, failed): (Option<Timestamp>, u64),
    ) -> Result<Alike, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let newest = Order::newest_first;
        let below = series.alike_below(wanted, after);
        let below = engine.names(series.scope(), below, newest(), LOOKED_UP);
        let below = below.await?;
        let results: BTreeSet<&str> = below.iter().map(|name| name.result().id()).collect();
        let is_alike = after.map(series::after).into_iter();
        let is_alike = is_alike.chain([series::failed(), series::in_results(results)]);
        let runs = engine.names(series.scope(), series.with(is_alike), newest(), LOOKED_UP);
        let runs = runs.await?;
        let most = LOOKED_UP.get();
        let is_cut = below.len() >= most as usize;
        Ok(Alike {
            count: runs.len() as u64,
            of: failed,
            records: runs
                .into_iter()
                .filter(|found| found != name)
                .take(NAMED)
                .collect(),
            note: is_cut.then(|| format!("more than {most} failed alike; older are not counted")),
        })
    }

    /// Which of the newest failed runs of `series` that started after `after` have the key of the
    /// run `name`, of which the leaf is a part of the payload. All of them together are read within the scan budget of one call.
    pub(super) async fn alike(
        &self,
        by: &RequestContext,
        (name, wanted): (&RecordName, Key),
        series: &Series,
        after: Option<Timestamp>,
    ) -> Result<Alike, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let failed = series.with(
            after
                .map(series::after)
                .into_iter()
                .chain([series::failed()]),
        );
        let newest = Order::newest_first();
        let names = engine.names(series.scope(), failed, newest, MOST).await?;
        let mut alike = Alike::default();
        let mut left = engine.scan_budget();
        for found in names {
            if found == *name {
                alike.of += 1;
                alike.count += 1;
                continue;
            }
            if alike.note.is_some() {
                continue;
            }
            match self.key_within(by, &found, &mut left).await {
                Ok(Some(key)) => {
                    alike.of += 1;
                    if key == Some(wanted) {
                        alike.count += 1;
                        alike.records.push(found);
                    }
                }
                Ok(None) => {
                    let most = engine.scan_budget();
                    alike.note = Some(format!(
                        "one call reads {most} records (scan_budget); older failures are not compared"
                    ));
                }
                // It was deleted meanwhile, or is a run no more.
                Err(error) if matches!(error.kind(), ErrorKind::Missing | ErrorKind::Invalid) => {}
                Err(error) if error.kind() == ErrorKind::Exhausted => {
                    alike.note = Some(format!("older failures are not compared: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        alike.records.truncate(NAMED);
        Ok(alike)
    }

    /// The key of the failure of a run, if that takes no more than `left` records, from which those
    /// that are read are taken.
    async fn key_within(
        &self,
        by: &RequestContext,
        name: &RecordName,
        left: &mut u64,
    ) -> Result<Option<Option<Key>>, Error> {
        let Some(rest) = left.checked_sub(1).filter(|rest| *rest > 0) else {
            return Ok(None);
        };
        // Runs are read one after the other, so that memory is taken for one at a time.
        let part = RequestContext {
            quota: by.quota.part(),
            ..by.clone()
        };
        let record = self.read_record(&part, name).await?;
        let (record, object) = self.read(&part, record).await?;
        let engine = self.engine.with_quota(&part.quota).within(rest);
        let grown = gather(&engine, &record, &object, Succeeded::Absent.into()).await?;
        *left = rest.saturating_sub(grown.rows);
        if !grown.had_all && *left == 0 {
            return Ok(None);
        }
        Ok(Some(engine.compute(move || key(&grown.tree)).await?))
    }
}
