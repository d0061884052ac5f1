//! A store whose records move to files, and back, before each read of records.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use hindsight_filter::{
    condition::{Ability, Test},
    measure::Group,
    model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult},
};
use tokio::sync::Mutex;

use super::{
    World,
    fixtures::{Dice, everything, time},
};
use crate::{
    codec::objects::Bucket,
    seam::{
        AggregateQuery, Batch, Change, EncodedRecord, Error, FeedPage, FeedPosition, Hold,
        ListQuery, Listed, Plan, RecordColumns, Store, StoreParts, WholeVersion,
    },
    tiers::{Archive, Moving, Tiers},
};

/// Which share of results is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All of them.
    All,
    /// About half; of those that are in files about half come back.
    Half,
}

#[derive(Debug)]
struct Restless {
    store: Arc<dyn Store>,
    archive: Archive,
    tiers: Tiers,
    share: Share,
    dice: Mutex<Dice>,
    moved: Arc<AtomicU64>,
    /// Whether something was written since all was moved.
    written: AtomicBool,
}

impl World {
    /// The same database, whose records move to files. Counts in `moved` how many results did.
    pub(super) fn restless(self, share: Share, moved: &Arc<AtomicU64>) -> Self {
        let Some(index) = self.index.clone() else {
            return self;
        };
        let archive = Archive::new(Bucket::in_memory(), index);
        let store = Restless {
            tiers: Tiers::new(Arc::clone(&self.store), archive.clone()),
            store: Arc::clone(&self.store),
            archive,
            share,
            dice: Mutex::new(Dice::new(7)),
            moved: Arc::clone(moved),
            written: AtomicBool::new(true),
        };
        Self {
            store: Arc::new(store),
            ..self
        }
    }
}

impl Restless {
    /// Has back what a change names by a version with records.
    async fn back(&self, changes: &[Change]) -> Result<(), Error> {
        self.written.store(true, Ordering::Relaxed);
        for change in changes {
            if let Change::ExpireResult { name, .. } = change {
                self.archive.restore(&*self.store, name).await?;
            }
        }
        Ok(())
    }

    async fn stir(&self) -> Result<(), Error> {
        let mut dice = self.dice.lock().await;
        let is_due = match self.share {
            Share::All => self.written.swap(false, Ordering::Relaxed),
            Share::Half => dice.once_in(3),
        };
        if !is_due {
            return Ok(());
        }
        let mut of_parents: BTreeMap<String, Vec<Moving>> = BTreeMap::new();
        for listed in self.store.list_results(&everything()).await? {
            let result = listed.item;
            let is_chosen = self.share == Share::All || dice.once_in(2);
            if !is_chosen {
                if dice.once_in(4) {
                    self.archive.restore(&*self.store, &result.name).await?;
                }
                continue;
            }
            let query = ListQuery {
                scope: (&result.name).into(),
                ..everything()
            };
            let rows = self.store.list_columns(&query).await?;
            if rows.is_empty() {
                continue;
            }
            let updates = rows.iter().map(|row| row.item.record.update_time);
            let version = WholeVersion::of(&result, updates);
            if let Ok(moving) = Moving::of(&*self.store, result, version).await? {
                let parent = moving.name().parent().to_string();
                of_parents.entry(parent).or_default().push(moving);
            }
        }
        for files in self.archive.compactable().await? {
            self.archive.compact(&files, time(1)).await?;
        }
        for (parent, moving) in of_parents {
            if dice.once_in(4) {
                let parent = parent.parse().expect("it is one");
                self.archive.erase(&parent, time(1)).await?;
            }
            for change in self.archive.write(moving, time(1)).await? {
                match self.store.commit(&change.into()).await {
                    Ok(()) => drop(self.moved.fetch_add(1, Ordering::Relaxed)),
                    // Another was faster, or it is held.
                    Err(Error::Stale { .. } | Error::Missing(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Store for Restless {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        self.tiers.result(name).await
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        self.stir().await?;
        self.tiers.record(name).await
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        self.tiers.list_results(query).await
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        self.stir().await?;
        self.tiers.list_records(query).await
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        self.stir().await?;
        self.tiers.list_encoded(query).await
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        self.stir().await?;
        self.tiers.list_columns(query).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        self.stir().await?;
        self.tiers.aggregate(query).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        self.back(&batch.changes).await?;
        self.tiers.commit(batch).await
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        self.back(changes).await.expect("records come back");
        self.tiers.commit_each(changes).await
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error> {
        self.tiers.explain(resource, query, most).await
    }

    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        self.tiers.holds(parent, after, most).await
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        self.tiers.feed_end().await
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        self.tiers.feed_begin().await
    }

    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
        self.tiers.feed(after, most).await
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        self.tiers.refresh_indexes().await
    }

    fn ability(&self, test: &Test) -> Ability {
        self.tiers.ability(test)
    }

    fn parts(&self) -> Option<StoreParts> {
        self.tiers.parts()
    }
}
