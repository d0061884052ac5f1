//! The one writer: a task that owns a connection and commits what waits in one transaction.
//!
//! Durability costs one sync of the disk for each transaction; so batches that come while one
//! is under way share the next, but for large ones. Each is answered only after the commit, and
//! one that is refused changes nothing and leaves its neighbours alone. A caller that stops waiting
//! does not stop its batch.

use sqlx::{Connection, Executor, sqlite::SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use super::{bind::query, errors::classify, file::File, migrate, transaction::transaction};
use crate::{codec::row::PreparedChange, seam::Error, sql::statement::Statement};

/// How many batches may wait.
const QUEUE: usize = 256;

/// At most so many batches share a transaction.
const MOST: usize = 256;

/// A batch of more changes has a transaction to itself. Among others it would need a savepoint,
/// for which SQLite goes through all that the batch has changed so far at each of its changes.
const LARGE: usize = 32;

/// A transaction takes no further batch once it has so many bytes.
const HEAVY: usize = 8 << 20;

/// The way to the writer.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Commit(Job),
    /// What is written besides batches, in a transaction of its own.
    Tell(Vec<Statement>, Answer),
    Close(oneshot::Sender<()>),
}

/// Who is told how many rows were changed.
type Answer = oneshot::Sender<Result<u64, Error>>;

#[derive(Debug)]
struct Job {
    changes: Vec<PreparedChange>,
    answer: oneshot::Sender<Result<(), Error>>,
}

impl Writer {
    /// Connects and starts the task.
    pub(super) async fn start(file: &File) -> Result<Self, Error> {
        let connection = connect(file).await?;
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let task = Task {
            file: file.clone(),
            connection: Some(connection),
        };
        tokio::spawn(task.run(waiting));
        Ok(Self { jobs })
    }

    pub(super) async fn commit(&self, changes: Vec<PreparedChange>) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Commit(Job { changes, answer })).await?;
        answered.await.map_err(|_dropped| unanswered())?
    }

    /// Does all of these statements, or none, and says how many rows they changed.
    pub(super) async fn tell(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Tell(statements, answer)).await?;
        answered.await.map_err(|_dropped| unanswered())?
    }

    async fn send(&self, message: Message) -> Result<(), Error> {
        let sent = self.jobs.send(message).await;
        sent.map_err(|_closed| stopped("the store is closed"))
    }

    /// Finishes what waits and ends the task.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Message::Close(done)).await.is_ok() {
            // An error means that the task is gone, which is what was wanted.
            drop(closed.await);
        }
    }
}

fn stopped(why: &'static str) -> Error {
    Error::Unavailable {
        what: "writing",
        source: why.into(),
    }
}

fn unanswered() -> Error {
    stopped("the writer stopped before the commit")
}

/// Opens the connection that writes.
pub(super) async fn connect(file: &File) -> Result<SqliteConnection, Error> {
    let options = migrate::writing(file)
        .pragma("journal_size_limit", "67108864")
        // In pages: 32 MiB. Most pages of indexes change many times before they are copied to the file.
        .pragma("wal_autocheckpoint", "4000")
        // What is deleted is overwritten. Deleting writes 2 % more to the log by that, and all of
        // bodies that take pages of their own.
        .pragma("secure_delete", "ON")
        // What a statement changes is noted in case that it must be undone; in a file that note
        // would be most of what is written.
        .pragma("temp_store", "MEMORY")
        .pragma("cache_size", "-32768");
    migrate::connect(options)
        .await
        .map_err(|e| classify("opening the file to write", e))
}

/// What is done before the task looks again at what waits.
#[derive(Debug, Default)]
struct GroupCommit {
    /// Batches that share a transaction.
    group: Vec<Job>,
    statements: Vec<(Vec<Statement>, Answer)>,
    /// Who waits for the end of the task.
    close: Option<oneshot::Sender<()>>,
    /// The first of the next turn.
    held: Option<Message>,
}

impl GroupCommit {
    /// A message, and what waits behind it and can be done with it.
    fn begin(message: Message, waiting: &mut mpsc::Receiver<Message>) -> Self {
        let mut turn = Self::default();
        let mut weight = 0;
        let mut next = Some(message);
        while let Some(message) = next.take() {
            let mut is_full = false;
            match message {
                Message::Close(done) => {
                    turn.close = Some(done);
                    is_full = true;
                }
                Message::Tell(statements, answer) => turn.statements.push((statements, answer)),
                Message::Commit(job) if job.is_large() && !turn.group.is_empty() => {
                    turn.held = Some(Message::Commit(job));
                    is_full = true;
                }
                Message::Commit(job) => {
                    weight += job
                        .changes
                        .iter()
                        .map(PreparedChange::weight)
                        .sum::<usize>();
                    is_full = job.is_large() || weight >= HEAVY;
                    turn.group.push(job);
                    is_full |= turn.group.len() >= MOST;
                }
            }
            if !is_full {
                next = waiting.try_recv().ok();
            }
        }
        turn
    }
}

/// The task. It says BEGIN and COMMIT itself: the driver's own transactions count wrongly after
/// SQLite has rolled one back by itself, as it does when the disk is full.
#[derive(Debug)]
struct Task {
    file: File,
    /// None after a transaction broke; the next one begins with a new connection.
    connection: Option<SqliteConnection>,
}

impl Task {
    async fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let mut held = None;
        let close = loop {
            let message = match held.take() {
                Some(message) => Some(message),
                None => waiting.recv().await,
            };
            let Some(message) = message else { break None };
            let turn = GroupCommit::begin(message, &mut waiting);
            self.commit(turn.group).await;
            for (statements, answer) in turn.statements {
                if answer.send(self.tell(&statements).await).is_err() {
                    tracing::debug!("the caller of a maintenance write is gone");
                }
            }
            if turn.close.is_some() {
                break turn.close;
            }
            held = turn.held;
        };
        self.end().await;
        if let Some(done) = close
            && done.send(()).is_err()
        {
            tracing::debug!("the caller of close is gone");
        }
    }

    /// Tidies up and closes. Statistics for the planner and a short log are good to have, but
    /// nothing depends on them.
    async fn end(mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        for tidy in [
            "PRAGMA analysis_limit = 400",
            "PRAGMA optimize",
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ] {
            if let Err(error) = connection.execute(tidy).await {
                tracing::debug!(%error, "`{tidy}` was refused while closing");
            }
        }
        if let Err(error) = connection.close().await {
            tracing::warn!(%error, "database file {} not closed cleanly", self.file);
        }
    }

    /// Commits a group; if the transaction as a whole breaks, each batch by itself, so that the
    /// one that broke it is found. If none can begin, which takes long to find out, that is the
    /// answer to all of them.
    async fn commit(&mut self, group: Vec<Job>) {
        if group.is_empty() {
            return;
        }
        match self.transaction(&group).await {
            Err(Broken::Begin(error)) => refuse_all(group, &error),
            Ok(outcomes) => {
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    job.answer(outcome);
                }
            }
            Err(Broken::Midway(error)) if group.len() == 1 => {
                group
                    .into_iter()
                    .next()
                    .expect("the group has one")
                    .answer(Err(error));
            }
            Err(Broken::Midway(error)) => {
                tracing::debug!(%error, "committing {} batches one by one", group.len());
                self.one_by_one(group).await;
            }
        }
    }

    async fn one_by_one(&mut self, group: Vec<Job>) {
        let mut waiting = group.into_iter();
        while let Some(job) = waiting.next() {
            let alone = [job];
            let outcome = self.transaction(&alone).await;
            let [job] = alone;
            match outcome {
                Ok(mut outcomes) => {
                    job.answer(outcomes.pop().expect("one batch has one outcome"));
                }
                Err(Broken::Midway(error)) => job.answer(Err(error)),
                Err(Broken::Begin(error)) => {
                    return refuse_all(std::iter::once(job).chain(waiting), &error);
                }
            }
        }
    }

    async fn tell(&mut self, statements: &[Statement]) -> Result<u64, Error> {
        let mut connection = self.connection().await?;
        let outcome = tell(&mut connection, statements).await;
        self.keep(connection, outcome.is_ok()).await;
        outcome
    }

    async fn connection(&mut self) -> Result<SqliteConnection, Error> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => connect(&self.file).await,
        }
    }

    /// Keeps a sound connection and closes a broken one.
    async fn keep(&mut self, connection: SqliteConnection, is_sound: bool) {
        if is_sound {
            self.connection = Some(connection);
        } else if let Err(error) = connection.close().await {
            tracing::debug!(%error, "broken connection not closed cleanly");
        }
    }

    /// One transaction: what became of each batch, or why nothing became of any.
    async fn transaction(&mut self, group: &[Job]) -> Result<Vec<Result<(), Error>>, Broken> {
        let mut connection = self.connection().await.map_err(Broken::Begin)?;
        let batches: Vec<_> = group.iter().map(|job| job.changes.as_slice()).collect();
        let outcome = match connection.execute("BEGIN IMMEDIATE").await {
            Ok(_) => transaction(&mut connection, &batches)
                .await
                .map_err(Broken::Midway),
            Err(error) => Err(Broken::Begin(classify("beginning to write", error))),
        };
        self.keep(connection, outcome.is_ok()).await;
        outcome
    }
}

impl Job {
    fn is_large(&self) -> bool {
        self.changes.len() > LARGE
    }

    fn answer(self, outcome: Result<(), Error>) {
        if self.answer.send(outcome).is_err() {
            tracing::debug!("the caller of a commit is gone");
        }
    }
}

/// Why a transaction did not happen.
#[derive(Debug)]
enum Broken {
    /// It did not begin, whatever was in it: another process writes, or the file is gone.
    Begin(Error),
    /// Something in it, or its commit, failed.
    Midway(Error),
}

/// Tells every batch why none of them was begun.
fn refuse_all(jobs: impl IntoIterator<Item = Job>, error: &Error) {
    for job in jobs {
        job.answer(Err(error.repeated()));
    }
}

async fn tell(connection: &mut SqliteConnection, statements: &[Statement]) -> Result<u64, Error> {
    let failed = |error| classify("writing beside batches", error);
    connection
        .execute("BEGIN IMMEDIATE")
        .await
        .map_err(failed)?;
    let mut done = 0;
    for statement in statements {
        let outcome = query(statement).execute(&mut *connection).await;
        done += outcome.map_err(failed)?.rows_affected();
    }
    connection.execute("COMMIT").await.map_err(failed)?;
    Ok(done)
}
