//! The runs of a series before and after one of them.

use hindsight_proto::v1::{ListRunsRequest, RunRow};
use jiff::{SignedDuration, Timestamp};

use super::{Series, asking, parent_of};
use crate::api::Refusal;
use crate::ask::Ask;
use crate::time::timestamp;

/// Runs that are read to find those that began next: some are stored in another order.
const READ: usize = 100;
/// How much later than a run those are stored that began before it.
const LATER: SignedDuration = SignedDuration::from_hours(24);

/// When a run began, and when it was stored first.
#[derive(Debug, Clone, Copy)]
pub(in crate::pages) struct Moment {
    pub(in crate::pages) start: Timestamp,
    pub(in crate::pages) stored: Timestamp,
}

/// The nearest first.
#[derive(Debug, Default)]
pub(in crate::pages) struct Around {
    /// Those that began before, or at once with it: also the run itself.
    pub(in crate::pages) before: Vec<RunRow>,
    pub(in crate::pages) after: Vec<RunRow>,
}

impl Series<'_> {
    /// The runs of a namespace below a parent around a moment, at most so many before it and so many
    /// after it. They are read from an index by the time of storing, from both sides.
    pub(in crate::pages) async fn around(
        self,
        ask: &Ask,
        (parent, namespace): (&str, &str),
        Moment { start, stored }: Moment,
        most: usize,
    ) -> Result<Around, Refusal> {
        let latest = stored.saturating_add(LATER).unwrap_or(stored);
        let request = ListRunsRequest {
            page_size: i32::try_from(most.max(READ)).unwrap_or(i32::MAX),
            ..asking(parent, &self.query(namespace))
        };
        let before = ListRunsRequest {
            filter: format!(
                "run.start_time <= timestamp('{start}') && create_time <= timestamp('{latest}')"
            ),
            ..request.clone()
        };
        // What began later is stored later.
        let after = ListRunsRequest {
            filter: format!(
                "run.start_time > timestamp('{start}') && create_time >= timestamp('{start}')"
            ),
            order_by: "create_time".to_owned(),
            ..request
        };
        let (before, after) =
            futures::try_join!(ask.api.list_runs(before), ask.api.list_runs(after))?;
        let began = |run: &RunRow| timestamp(run.start_time);
        let (mut before, mut after) = (before.runs, after.runs);
        before.sort_by_key(|run| std::cmp::Reverse(began(run)));
        after.sort_by_key(began);
        before.truncate(most);
        after.truncate(most);
        Ok(Around { before, after })
    }

    /// When one of the runs of a namespace began that its record names; none if it is not one of them.
    pub(in crate::pages) async fn moment(
        self,
        ask: &Ask,
        namespace: &str,
        record: &str,
    ) -> Result<Option<Moment>, Refusal> {
        let Some((result, _)) = record.split_once("/records/") else {
            return Ok(None);
        };
        let request = ListRunsRequest {
            parent: result.to_owned(),
            ..asking(parent_of(record), &self.query(namespace))
        };
        let found = match ask.api.list_runs(request).await {
            Ok(found) => found.runs,
            Err(refusal) if refusal.kind == crate::api::Kind::Invalid => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        let run = found.iter().find(|run| run.record == record);
        Ok(run.and_then(|run| {
            Some(Moment {
                start: timestamp(run.start_time)?,
                stored: timestamp(run.create_time)?,
            })
        }))
    }
}
