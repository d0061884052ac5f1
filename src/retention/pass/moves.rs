//! The first stage of retention: records of results move to files of an archive.

use std::collections::BTreeMap;

use hindsight_filter::model::{ResultName, RunResult};
use hindsight_runtime::error::report;
use hindsight_storage::{Archive, Change, Error as StoreError, Moving, Unmovable, WholeVersion};
use jiff::SignedDuration;
use tokio::time::Instant;

use super::{Deletion, Error, Failed, HELD, Mode, Pass, failed};
use crate::retention::version::Whole;

/// Bytes of payloads that are gathered before files of them are written.
const GATHERED: usize = 64 << 20;
/// How long a file stays that no result is in: longer than any list reads it.
const EMPTY: SignedDuration = SignedDuration::from_hours(24);

/// Results that are about to be moved, by the directories of their files.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    results: BTreeMap<(String, String), Vec<(Moving, Deletion)>>,
    bytes: usize,
}

impl Pass {
    /// The file that has the records of a result, if one has.
    pub(super) async fn file_of(&self, name: &ResultName) -> Result<Option<i64>, Failed> {
        match &self.of.source.archive {
            Some(_) => self.of.source.index.file_of(name).await.map_err(failed),
            None => Ok(None),
        }
    }

    /// Takes a result that is due to be moved.
    pub(super) async fn gather(&mut self, whole: Whole, due: Deletion) -> Result<(), Failed> {
        if self.mode == Mode::Plan {
            self.totals.archived += 1;
            self.told.send(due).await.unwrap_or_default();
            return Ok(());
        }
        let version: WholeVersion = whole.version();
        let result: RunResult = whole.result;
        let store = &self.of.source.store;
        let moving = Moving::of(&**store, result, version).await;
        let moving = match moving.map_err(failed)? {
            Ok(moving) => moving,
            Err(Unmovable::Changed) => {
                self.totals.lost += 1;
                return Ok(());
            }
            Err(Unmovable::TooLarge { most }) => {
                let why = format!(
                    "its payloads have over {most} bytes, which are not moved at once; it stays in the \
                     database, and can be deleted by a policy"
                );
                return Err(Failed::One(due.name.to_string(), why));
            }
        };
        let Some(partition) = moving.partition() else {
            return Ok(());
        };
        let parent = moving.name().parent().to_string();
        self.moving.bytes += moving.payload_bytes();
        let of_file = self.moving.results.entry((parent, partition)).or_default();
        of_file.push((moving, due));
        match self.moving.bytes >= GATHERED {
            true => self.move_all().await,
            false => Ok(()),
        }
    }

    /// Writes files of what was gathered, and moves each result that is as it was read.
    async fn move_all(&mut self) -> Result<(), Failed> {
        let Some(archive) = self.of.source.archive.clone() else {
            return Ok(());
        };
        for (_, results) in std::mem::take(&mut self.moving).results {
            let moved = self.move_file(&archive, results).await;
            self.survive(moved).map_err(Failed::All)?;
        }
        Ok(())
    }

    /// Writes a file of results, and moves each that is as it was read.
    async fn move_file(
        &mut self,
        archive: &Archive,
        results: Vec<(Moving, Deletion)>,
    ) -> Result<(), Failed> {
        let (moving, due): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let began = Instant::now();
        let now = self.of.source.clock.now();
        let changes = archive.write(moving, now).await.map_err(failed)?;
        self.rest(began.elapsed()).await;
        let (mut lost, mut file) = (due.len() - changes.len(), None);
        for (change, due) in changes.into_iter().zip(due) {
            if let Change::ArchiveResult { file: into, .. } = &change {
                file = Some(*into);
            }
            let began = Instant::now();
            match self.of.source.store.commit(&change.into()).await {
                Ok(()) => {}
                Err(StoreError::Stale { .. } | StoreError::Missing(_)) => {
                    lost += 1;
                    continue;
                }
                Err(error @ StoreError::TooSlow { .. }) => {
                    let failed = Failed::One(due.name.to_string(), report(&error));
                    self.survive(Err(failed)).map_err(Failed::All)?;
                    continue;
                }
                Err(error) => return Err(failed(error)),
            }
            let took = began.elapsed();
            self.totals.archived += 1;
            self.of.metrics.archived(&due.policy);
            self.told.send(due).await.unwrap_or_default();
            self.rest(took).await;
        }
        self.totals.lost += lost as u64;
        match file {
            // What was purged since it was read is in no file.
            Some(file) if lost > 0 => archive.erase_from(file, now).await.map_err(failed),
            _ => Ok(()),
        }
    }

    /// Moves what is left, writes files again that are mostly empty or many, and removes those that no result is in
    /// any more.
    pub(super) async fn end(&mut self) -> Result<(), Error> {
        let moved = self.move_all().await;
        self.survive(moved)?;
        let archive = self.of.source.archive.clone();
        let Some(archive) = archive.filter(|_| self.mode != Mode::Plan) else {
            return Ok(());
        };
        for files in archive.compactable().await? {
            if self.stop.is_cancelled() || !self.has_turn(HELD).await? {
                break;
            }
            let began = Instant::now();
            let now = self.of.source.clock.now();
            let compacted = archive.compact(&files, now).await;
            self.survive(compacted.map_err(failed))?;
            self.rest(began.elapsed()).await;
        }
        let now = self.of.source.clock.now();
        let before = now.checked_sub(EMPTY).unwrap_or(now);
        archive.sweep(before, now).await?;
        Ok(())
    }
}
