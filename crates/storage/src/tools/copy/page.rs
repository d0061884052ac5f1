//! Copying one page: what is new is inserted, what is later replaces, what is the same stays.

use super::{
    Copy, Outline, Page, Said, Source,
    held::{There, Version},
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::model::{Record, RunResult};

/// What is to be done with a row.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Insert,
    Replace,
    Keep,
    Refuse(String),
}

const LATER: &str = "the target has a later version of it, which was kept";

fn other(uid: &str) -> String {
    format!("the target has another of this name, whose uid is `{uid}`, which was kept")
}

fn conflict(updated: jiff::Timestamp) -> String {
    format!("the target has another version of it, also of {updated}, which was kept")
}

fn of_result(is: &RunResult, there: Option<&RunResult>) -> Verdict {
    match there {
        None => Verdict::Insert,
        Some(there) if there == is => Verdict::Keep,
        Some(there) if there.uid != is.uid => Verdict::Refuse(other(&there.uid)),
        Some(there) if there.update_time < is.update_time => Verdict::Replace,
        Some(there) if there.update_time > is.update_time => Verdict::Refuse(LATER.to_owned()),
        Some(there) => Verdict::Refuse(conflict(there.update_time)),
    }
}

fn of_record(is: &Outline, there: Option<&There>) -> Verdict {
    let Some(there) = there else {
        return Verdict::Refuse("its result is not in the target".to_owned());
    };
    if there.result_uid != is.result_uid {
        let why = format!(
            "the result of this name in the target is another, whose uid is `{}`",
            there.result_uid
        );
        return Verdict::Refuse(why);
    }
    let wanted = Version::of(is);
    match &there.record {
        None => Verdict::Insert,
        Some(there) if *there == wanted => Verdict::Keep,
        Some(there) if there.uid != wanted.uid => Verdict::Refuse(other(&there.uid)),
        Some(there) if there.update_us < wanted.update_us => Verdict::Replace,
        Some(there) if there.update_us > wanted.update_us => Verdict::Refuse(LATER.to_owned()),
        Some(there) => Verdict::Refuse(conflict(there.updated())),
    }
}

impl Copy<'_> {
    pub(super) async fn results(&mut self, page: Page<RunResult>) -> Result<(), Error> {
        let names: Vec<_> = page.rows.iter().map(|result| &result.name).collect();
        let held = self.held.results(&names).await?;
        let mut refused = page.refused;
        let mut changes = Vec::new();
        for value in page.rows {
            let there = held.get(&value.name);
            match of_result(&value, there) {
                Verdict::Insert => changes.push(Change::InsertResult(value)),
                Verdict::Replace => changes.extend(there.map(|there| Change::ReplaceResult {
                    expect: there.etag.clone(),
                    value,
                })),
                Verdict::Keep => self.outcome.results.unchanged += 1,
                Verdict::Refuse(why) => refused.push(Said {
                    of: value.name.to_string(),
                    why,
                }),
            }
        }
        for (change, outcome) in self.commit(changes).await {
            match (outcome, change) {
                (Ok(()), Change::InsertResult(_)) => self.outcome.results.created += 1,
                (Ok(()), _) => self.outcome.results.updated += 1,
                (Err(error), change) => refused.push(refusal(&change, error)?),
            }
        }
        self.outcome.results.refused += self.say(page.notes, refused);
        Ok(())
    }

    pub(super) async fn records(
        &mut self,
        source: &mut dyn Source,
        page: Page<Outline>,
    ) -> Result<(), Error> {
        let names: Vec<_> = page.rows.iter().map(|outline| &outline.name).collect();
        let held = self.held.records(&names).await?;
        let mut refused = page.refused;
        let mut places = Vec::new();
        let mut expected = Vec::new();
        for (outline, there) in page.rows.into_iter().zip(held) {
            match of_record(&outline, there.as_ref()) {
                Verdict::Keep => self.outcome.records.unchanged += 1,
                Verdict::Refuse(why) => refused.push(Said {
                    of: outline.name.to_string(),
                    why,
                }),
                Verdict::Insert | Verdict::Replace => {
                    places.push(outline.place);
                    let there = there.and_then(|there| there.record);
                    expected.push(there.map(|there| there.etag));
                }
            }
        }
        let mut changes = Vec::with_capacity(places.len());
        let wanted = match places.is_empty() {
            true => Vec::new(),
            false => source.records(&places).await?,
        };
        for (record, expect) in wanted.into_iter().zip(expected) {
            match (record, expect) {
                (Ok(value), None) => changes.push(Change::InsertRecord(value)),
                (Ok(value), Some(expect)) => changes.push(Change::ReplaceRecord { expect, value }),
                (Err(said), _) => refused.push(said),
            }
        }
        for (change, outcome) in self.commit(changes).await {
            match outcome {
                Ok(()) => {
                    self.outcome.bytes += bytes(&change);
                    match change {
                        Change::InsertRecord(_) => self.outcome.records.created += 1,
                        _ => self.outcome.records.updated += 1,
                    }
                }
                Err(error) => refused.push(refusal(&change, error)?),
            }
        }
        self.outcome.records.refused += self.say(page.notes, refused);
        Ok(())
    }

    /// Copies the holds of results that are in the target and have none.
    pub(super) async fn holds(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        let mut after = i64::MIN;
        loop {
            let holds = source.holds(after).await?;
            let Some((last, _)) = holds.last() else {
                return Ok(());
            };
            after = *last;
            let changes = holds.into_iter().map(|(_, hold)| Change::InsertHold(hold));
            for (_, outcome) in self.commit(changes.collect()).await {
                match outcome {
                    Ok(()) | Err(Error::Exists(_) | Error::Missing(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Commits all at once, or, if one is refused, each by itself.
    async fn commit(&self, changes: Vec<Change>) -> Vec<(Change, Result<(), Error>)> {
        if changes.is_empty() {
            return Vec::new();
        }
        let batch = Batch { changes };
        let outcome = self.store.commit(&batch).await;
        let Batch { changes } = batch;
        if outcome.is_ok() {
            return changes.into_iter().map(|change| (change, Ok(()))).collect();
        }
        let outcomes = self.store.commit_each(&changes).await;
        changes.into_iter().zip(outcomes).collect()
    }
}

fn bytes(change: &Change) -> u64 {
    match change {
        Change::InsertRecord(Record { data, .. })
        | Change::ReplaceRecord {
            value: Record { data, .. },
            ..
        } => data.as_ref().map_or(0, |data| data.value.len() as u64),
        _ => 0,
    }
}

/// What is said of a change that somebody else was quicker than; any other error ends the copy.
fn refusal(change: &Change, error: Error) -> Result<Said, Error> {
    let of = match change {
        Change::InsertResult(value) | Change::ReplaceResult { value, .. } => value.name.to_string(),
        Change::InsertRecord(value)
        | Change::ReturnRecord { value, .. }
        | Change::ReplaceRecord { value, .. } => value.name.to_string(),
        Change::InsertHold(hold) => hold.result.to_string(),
        Change::DeleteResult { name, .. }
        | Change::ExpireResult { name, .. }
        | Change::ArchiveResult { name, .. }
        | Change::ReturnResult { name, .. }
        | Change::DeleteHold { name } => name.to_string(),
        Change::DeleteRecord { name, .. } => name.to_string(),
    };
    match error {
        Error::Missing(_) | Error::Exists(_) | Error::Stale { .. } => Ok(Said {
            of,
            why: format!("it changed in the target meanwhile: {error}; copy again"),
        }),
        other => Err(other),
    }
}
