//! Changes of concurrent callers: those that come while one of their kind is under way wait for it
//! and share the next statement and commit.
//!
//! A caller that comes when nothing is under way does not wait. One waits for the batch before it
//! for [`PATIENCE`] at most, so that a row which another transaction has locked holds up those in
//! its own statement alone. The change of a caller that goes away before its statement begins is not
//! done at all.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    batch::{MOST_BYTES, commit},
    pool::Pool,
    together::{Kind, each},
};
use crate::{codec::row::PreparedChange, seam::Error};

/// Changes of one statement; as many that wait do not wait for the statement under way.
const MOST: usize = 64;

/// How long a change waits for a statement that began before it.
const PATIENCE: Duration = Duration::from_millis(20);

/// A change of more bytes would keep its neighbours waiting, and has a statement to itself.
const HEAVY: usize = 256 << 10;

/// What waits, by kind. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pool: Pool,
    /// Where batches are done, whichever runtime their callers are of.
    home: Handle,
    queues: Arc<[Mutex<Queue>; 3]>,
    patience: Duration,
}

/// Changes of one kind.
#[derive(Debug, Default)]
struct Queue {
    /// Statements that have not ended.
    under_way: usize,
    waiting: VecDeque<Job>,
}

/// A change that waits, and the caller that waits for it.
#[derive(Debug)]
struct Job {
    change: PreparedChange,
    answer: oneshot::Sender<Result<(), Error>>,
}

/// What a change does first.
enum Entry {
    /// Nothing is under way; it is done by its caller.
    First(UnderWay, Vec<PreparedChange>),
    Behind(oneshot::Receiver<Result<(), Error>>),
}

/// A statement under way. When it ends, however it ends, what came meanwhile begins.
struct UnderWay {
    groups: Groups,
    kind: Kind,
}

impl Groups {
    pub(super) fn new(pool: Pool, home: Handle) -> Self {
        Self {
            pool,
            home,
            queues: Arc::default(),
            patience: PATIENCE,
        }
    }

    /// Does a batch; one change of a kind that one statement does for many, with others.
    pub(super) async fn write(&self, batch: Vec<PreparedChange>) -> Result<(), Error> {
        let single = match batch.as_slice() {
            [one] if one.weight() <= HEAVY => Kind::of(one),
            _ => None,
        };
        match single {
            Some(kind) => self.one(kind, batch).await,
            None => commit(&self.pool, &batch).await,
        }
    }

    async fn one(&self, kind: Kind, batch: Vec<PreparedChange>) -> Result<(), Error> {
        let mut answered = match self.enter(kind, batch) {
            Entry::First(_under_way, batch) => return commit(&self.pool, &batch).await,
            Entry::Behind(answered) => answered,
        };
        let answer = match tokio::time::timeout(self.patience, &mut answered).await {
            Ok(answer) => answer,
            Err(_late) => {
                self.begin(kind);
                answered.await
            }
        };
        answer.map_err(|_dropped| Error::Unavailable {
            what: "writing",
            source: "the server stopped before the commit".into(),
        })?
    }

    fn queue(&self, kind: Kind) -> MutexGuard<'_, Queue> {
        let queue = &self.queues[kind as usize];
        // Every change of a queue leaves it whole.
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, kind: Kind, mut batch: Vec<PreparedChange>) -> Entry {
        let mut queue = self.queue(kind);
        if queue.under_way == 0 {
            queue.under_way = 1;
            drop(queue);
            let groups = self.clone();
            return Entry::First(UnderWay { groups, kind }, batch);
        }
        let change = batch.swap_remove(0);
        let (answer, answered) = oneshot::channel();
        queue.waiting.push_back(Job { change, answer });
        let is_full = queue.waiting.len() >= MOST;
        drop(queue);
        if is_full {
            self.begin(kind);
        }
        Entry::Behind(answered)
    }

    /// Begins a statement with what waits, beside those that are under way.
    fn begin(&self, kind: Kind) {
        let batch = {
            let mut queue = self.queue(kind);
            let batch = queue.next();
            if !batch.is_empty() {
                queue.under_way += 1;
            }
            batch
        };
        if !batch.is_empty() {
            let groups = self.clone();
            self.run(UnderWay { groups, kind }, batch);
        }
    }

    fn run(&self, under_way: UnderWay, batch: Vec<Job>) {
        let pool = self.pool.clone();
        self.home.spawn(async move {
            let (changes, answers): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|job| (job.change, job.answer))
                .unzip();
            let outcomes = each(&pool, &changes).await;
            // The next statement does not wait until these callers have been told.
            drop(under_way);
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                if answer.send(outcome).is_err() {
                    tracing::debug!("the caller of a write is gone");
                }
            }
        });
    }
}

impl Queue {
    /// The changes of the next statement, in the order in which they came, each row once. What
    /// is about the same row as one of them stays for the statement after it.
    fn next(&mut self) -> Vec<Job> {
        self.waiting.retain(|job| !job.answer.is_closed());
        let (mut count, mut weight) = (0, 0);
        let mut rows = HashSet::new();
        let mut taken = Vec::with_capacity(self.waiting.len());
        for job in &self.waiting {
            let has_room = count < MOST && weight < MOST_BYTES;
            let is_taken = has_room && rows.insert(job.change.key());
            if is_taken {
                count += 1;
                weight += job.change.weight();
            }
            taken.push(is_taken);
        }
        let (mut batch, mut left) = (Vec::with_capacity(count), VecDeque::new());
        for (job, taken) in self.waiting.drain(..).zip(taken) {
            if taken {
                batch.push(job);
            } else {
                left.push_back(job);
            }
        }
        self.waiting = left;
        batch
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let batch = {
            let mut queue = self.groups.queue(self.kind);
            let batch = queue.next();
            if batch.is_empty() {
                queue.under_way -= 1;
            }
            batch
        };
        if !batch.is_empty() {
            let groups = self.groups.clone();
            let kind = self.kind;
            self.groups.run(UnderWay { groups, kind }, batch);
        }
    }
}

#[cfg(test)]
mod tests;
