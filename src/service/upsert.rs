//! Storing many records, whether or not they are there already.
//!
//! What the client of one record does by reading, deciding and writing, done here for many at
//! once: new records are written together, and only those that turn out to be there are read and
//! compared. A record never comes before its result: who finds it may rely on that.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use hindsight_run::json;
use hindsight_run::{View, is_earlier};

use super::{Error, Service, commit::lost, limits};
use hindsight_access::RequestContext;
use hindsight_access::auth::{self, Grant, Verb};
use hindsight_filter::model::{Payload, Record, RecordName, Resource, Summary};
use hindsight_storage as storage;
use hindsight_storage::Change;

/// Most retries of what was lost to another writer.
pub(super) const RACES: usize = 64;

/// How many rows are read at once.
const READS: usize = 8;

/// What a caller needs to upsert records of one parent.
#[derive(Debug, Clone)]
pub struct UpsertGrants {
    /// Whose records they are.
    pub context: RequestContext,
    /// To create records, and to update them.
    pub records: [Grant; 2],
    /// To create results, and to update them; without it results are neither made nor changed.
    pub results: Option<[Grant; 2]>,
}

/// One record to store.
#[derive(Debug, Clone)]
pub struct Upsert {
    /// Leave to do it.
    pub grants: Arc<UpsertGrants>,
    /// Name of the record, which also names its result and parent.
    pub name: RecordName,
    /// Payload to store, unless a later state of the run is stored already.
    pub data: Payload,
    /// What it says of its result: annotations.
    pub annotations: BTreeMap<String, String>,
    /// What it says of its result: how it is summed up.
    pub summary: Option<Summary>,
    /// Read it before writing it: a hint that changes nothing but the cost.
    pub probably_stored: bool,
}

/// What a write did to one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It was not there.
    Created,
    /// It was there and different.
    Updated,
    /// It was there, as it should be or in a later state; nothing was written.
    Unchanged,
}

/// What an upsert did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upserted {
    /// What the upsert did to the record itself.
    pub record: Effect,
    /// What the upsert did to the result that holds the record.
    pub result: Effect,
}

/// What became of one upsert. Several may share one error.
pub type Outcome = Result<Upserted, Arc<Error>>;

/// An upsert under way.
struct Item {
    upsert: Upsert,
    result: Effect,
    next: Next,
}

/// What is done with an item next.
enum Next {
    /// Make its result, and then it.
    Both,
    /// Write it; its result should be there.
    Insert,
    /// Read it, and write it if it should be different.
    Read,
    /// Read result and record, and write them together.
    Together,
    /// The outcome is known; nothing is left to do.
    Done(Outcome),
}

impl Item {
    fn new(upsert: Upsert) -> Self {
        let next = match upsert.check() {
            Err(error) => Next::Done(Err(Arc::new(error))),
            Ok(()) => match (upsert.says_something(), upsert.probably_stored) {
                (true, true) => Next::Together,
                (true, false) => Next::Both,
                (false, true) => Next::Read,
                (false, false) => Next::Insert,
            },
        };
        Self {
            upsert,
            result: Effect::Unchanged,
            next,
        }
    }

    fn refuse(&mut self, error: impl Into<Arc<Error>>) {
        self.next = Next::Done(Err(error.into()));
    }

    /// The result is there; if this item has something to say of it, both are written together.
    fn goes_on_with_its_result(&mut self) {
        self.next = if self.upsert.says_something() {
            Next::Together
        } else {
            Next::Insert
        };
    }

    fn done(&mut self, record: Effect) {
        let result = self.result;
        self.next = Next::Done(Ok(Upserted { record, result }));
    }
}

impl Upsert {
    /// The request that it is part of.
    pub(super) fn context(&self) -> &RequestContext {
        &self.grants.context
    }

    fn check(&self) -> Result<(), Error> {
        let parent = self.name.result().parent();
        let [create, update] = &self.grants.records;
        create.check(Verb::Create, Resource::Records, parent)?;
        update.check(Verb::Update, Resource::Records, parent)?;
        if let Some([create, update]) = &self.grants.results {
            create.check(Verb::Create, Resource::Results, parent)?;
            update.check(Verb::Update, Resource::Results, parent)?;
        } else if self.says_something() {
            return Err(create.denied().into());
        }
        limits::annotations("annotations", self.annotations.iter())?;
        let summary = self.summary.as_ref();
        summary.map_or(Ok(()), |summary| limits::summary(summary, parent))?;
        limits::payload(&self.data)
    }

    /// Whether it is an earlier state of the run than what is stored.
    pub(super) fn is_late_for(&self, stored: &Record) -> bool {
        let parse = |bytes: &[u8]| json::parse(bytes).ok();
        let Some(stored) = stored.data.as_ref().filter(|stored| **stored != self.data) else {
            return false;
        };
        match (parse(&self.data.value), parse(&stored.value)) {
            (Some(new), Some(stored)) => is_earlier(&View::new(&new), &View::new(&stored)),
            _ => false,
        }
    }

    /// Whether `current` stays: it is the same, or a later state of the same run.
    fn is_settled_by(&self, current: &Record) -> bool {
        current.data.as_ref() == Some(&self.data) || self.is_late_for(current)
    }

    /// Whether there is anything to say about the result; of a child of another run there is not.
    pub(super) fn says_something(&self) -> bool {
        self.summary.is_some() || !self.annotations.is_empty()
    }
}

impl Service {
    /// Stores records, whether or not they are there already, and says what became of each, in
    /// their order. When this returns, what was stored is durable. Of several upserts of one
    /// record the last one stays, unless it is an earlier state of the same run.
    pub async fn upsert(&self, upserts: Vec<Upsert>) -> Vec<Outcome> {
        let mut waiting: Vec<_> = upserts.into_iter().enumerate().collect();
        let mut outcomes: Vec<Option<Outcome>> = Vec::new();
        outcomes.resize_with(waiting.len(), || None);
        while !waiting.is_empty() {
            // Each record once; its further states follow in the next round.
            let mut seen = BTreeSet::new();
            let (round, later): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|(_, upsert)| seen.insert(upsert.name.clone()));
            waiting = later;
            let (places, items): (Vec<_>, Vec<_>) = round
                .into_iter()
                .map(|(place, upsert)| (place, Item::new(upsert)))
                .unzip();
            for (place, outcome) in places.into_iter().zip(self.round(items).await) {
                outcomes[place] = Some(outcome);
            }
        }
        outcomes
            .into_iter()
            .map(|outcome| outcome.expect("every upsert was in a round"))
            .collect()
    }

    /// Writes what came to nothing to the audit log, but for what the store refused, which the
    /// commit has written.
    async fn audit_refused_upsert(&self, upsert: &Upsert, why: &Error) {
        let by = upsert.context();
        match why {
            Error::Store(error) if !lost(error) => {}
            // The record may be written, but not what is said of its result.
            Error::Auth(auth::Error::Denied { .. }) => {
                let name = upsert.name.result();
                self.audit_refused(by, Verb::Create, name, why).await;
            }
            _ => {
                self.audit_refused(by, Verb::Create, &upsert.name, why)
                    .await;
            }
        }
    }

    /// Upserts of different records.
    async fn round(&self, mut items: Vec<Item>) -> Vec<Outcome> {
        let mut race = None;
        for item in &mut items {
            // The result of a record that is new to this server is most often new, too.
            if matches!(item.next, Next::Insert)
                && item.upsert.grants.results.is_some()
                && !self.known.has(item.upsert.name.result())
            {
                item.next = Next::Both;
            }
        }
        for _ in 0..RACES {
            if items.iter().all(|item| matches!(item.next, Next::Done(_))) {
                break;
            }
            self.make_results(&mut items).await;
            self.insert(&mut items, &mut race).await;
            self.replace(&mut items, &mut race).await;
            self.together(&mut items).await;
        }
        let race = race.map_or_else(|| Arc::new(no_race()), Arc::new);
        let mut outcomes = Vec::with_capacity(items.len());
        for item in items {
            let outcome = match item.next {
                Next::Done(outcome) => outcome,
                _ => Err(Arc::clone(&race)),
            };
            if let Err(why) = &outcome {
                self.audit_refused_upsert(&item.upsert, why).await;
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Makes the results of those items that need one, each by the first of them that has
    /// something to say of it.
    async fn make_results(&self, items: &mut [Item]) {
        let mut first = BTreeMap::new();
        let mut later = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if matches!(item.next, Next::Both) {
                match first.entry(item.upsert.name.result().clone()) {
                    Entry::Vacant(free) => {
                        free.insert(at);
                    }
                    Entry::Occupied(mut taken) => {
                        let speaks = |at: usize| items[at].upsert.says_something();
                        if speaks(at) && !speaks(*taken.get()) {
                            later.push(taken.insert(at));
                        } else {
                            later.push(at);
                        }
                    }
                }
            }
        }
        let results: Vec<_> = first
            .values()
            .map(|at| Change::InsertResult(self.described_result(&items[*at].upsert)))
            .collect();
        let by = first.values().map(|at| items[*at].upsert.context());
        let made = self.commit_each(&by.collect::<Vec<_>>(), results).await;
        for (at, outcome) in first.into_values().zip(made) {
            let item = &mut items[at];
            match outcome {
                Ok(()) => {
                    self.known.add(item.upsert.name.result());
                    item.result = Effect::Created;
                    item.next = Next::Insert;
                }
                Err(storage::Error::Exists(_)) => {
                    self.known.add(item.upsert.name.result());
                    item.goes_on_with_its_result();
                }
                Err(error) => item.refuse(Error::from(error)),
            }
        }
        for at in later {
            items[at].goes_on_with_its_result();
        }
    }

    /// Stores records together with what they say of results that are there.
    async fn together(&self, items: &mut [Item]) {
        let places: Vec<_> = (0..items.len())
            .filter(|at| matches!(items[*at].next, Next::Together))
            .collect();
        let storing: Vec<_> = places
            .iter()
            .map(|at| self.upsert_together(&items[*at].upsert))
            .collect();
        let stored: Vec<_> = stream::iter(storing).buffered(READS).collect().await;
        for (at, outcome) in places.into_iter().zip(stored) {
            items[at].next = Next::Done(outcome.map_err(Arc::new));
        }
    }

    /// Inserts what is thought to be new.
    async fn insert(&self, items: &mut [Item], race: &mut Option<Error>) {
        let new: Vec<_> = (0..items.len())
            .filter(|at| matches!(items[*at].next, Next::Insert))
            .collect();
        let changes: Vec<_> = new
            .iter()
            .map(|at| &items[*at].upsert)
            .map(|upsert| {
                Change::InsertRecord(
                    self.new_record(upsert.name.clone(), Some(upsert.data.clone())),
                )
            })
            .collect();
        let by = new.iter().map(|at| items[*at].upsert.context());
        let inserted = self.commit_each(&by.collect::<Vec<_>>(), changes).await;
        for (at, outcome) in new.into_iter().zip(inserted) {
            let item = &mut items[at];
            match outcome {
                Ok(()) => item.done(Effect::Created),
                // Somebody else made it, and may have spoken for its result.
                Err(storage::Error::Exists(_)) if item.upsert.says_something() => {
                    item.next = Next::Together;
                }
                Err(storage::Error::Exists(_)) => item.next = Next::Read,
                // There is no result to put it into, or no longer.
                Err(error @ storage::Error::Missing(_)) if item.upsert.grants.results.is_some() => {
                    *race = Some(error.into());
                    self.known.forget(item.upsert.name.result());
                    item.next = Next::Both;
                }
                Err(error) => item.refuse(Error::from(error)),
            }
        }
    }

    /// Reads what is thought to be there, and replaces what is different.
    async fn replace(&self, items: &mut [Item], race: &mut Option<Error>) {
        let old: Vec<_> = (0..items.len())
            .filter(|at| matches!(items[*at].next, Next::Read))
            .collect();
        let names = old.iter().map(|at| items[*at].upsert.name.clone());
        let read = stream::iter(names.collect::<Vec<_>>())
            .map(|name| async move { self.store.record(&name).await })
            .buffered(READS);
        let read: Vec<_> = read.collect().await;
        let (mut places, mut changes) = (Vec::new(), Vec::new());
        for (at, current) in old.into_iter().zip(read) {
            let item = &mut items[at];
            let current = current.map_err(Error::from);
            let by = item.upsert.context();
            match self
                .audited(by, Verb::Update, &item.upsert.name, current)
                .await
            {
                Err(error) => item.refuse(error),
                Ok(None) => item.next = Next::Insert,
                Ok(Some(current)) if item.upsert.is_settled_by(&current) => {
                    item.done(Effect::Unchanged);
                }
                Ok(Some(current)) => {
                    let value = self.changed_record(&current, Some(item.upsert.data.clone()));
                    places.push(at);
                    changes.push(Change::ReplaceRecord {
                        expect: current.etag,
                        value,
                    });
                }
            }
        }
        let by = places.iter().map(|at| items[*at].upsert.context());
        let outcomes = self.commit_each(&by.collect::<Vec<_>>(), changes).await;
        for (at, outcome) in places.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => items[at].done(Effect::Updated),
                Err(error) if lost(&error) => *race = Some(error.into()),
                Err(error) => items[at].refuse(Error::from(error)),
            }
        }
    }
}

/// Of something that was never decided and never lost, which is not seen.
fn no_race() -> Error {
    Error::Invalid("the record was made and deleted again and again; send it once more".to_owned())
}
