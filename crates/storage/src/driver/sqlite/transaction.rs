//! What is done between BEGIN and COMMIT.
//!
//! The thread of a connection and the task that waits for it wake each other for each call, which
//! takes about as long as a change. So changes that are alike share a call: the text of one,
//! repeated, of which each keeps its own precondition.

use std::collections::{HashSet, VecDeque};

use futures::TryStreamExt as _;
use sqlx::{Either, Executor as _, Row as _, sqlite::SqliteConnection};

use super::{
    bind::{queries, query},
    errors::{classify, is_taken},
};
use crate::{
    codec::{prepare, row::PreparedChange},
    seam::Error,
    sql::{dialect::Dialect, read, statement::Statement, write},
};
use hindsight_filter::model::Etag;

/// How many changes share a call. Each number is a text of its own, which is planned once.
const TOGETHER: [usize; 3] = [64, 16, 4];

/// Changes of more bytes share no call, which would hold copies of them all.
const HEAVY: usize = 1 << 20;

/// Blocks of the index of names that are merged in a transaction beside one for each change: about as many as it adds, times
/// the sizes that parts of the index have.
const MERGED: usize = 16;

/// Does batches, each all or nothing, and commits; says what became of each.
pub(super) async fn transaction(
    tx: &mut SqliteConnection,
    batches: &[&[PreparedChange]],
) -> Result<Vec<Result<(), Error>>, Error> {
    if let [changes] = batches {
        return Ok(vec![alone(tx, changes).await?]);
    }
    let mut outcomes = Vec::with_capacity(batches.len());
    while let Some(next) = batches
        .get(outcomes.len()..)
        .filter(|rest| !rest.is_empty())
    {
        let single: Vec<_> = next.iter().map_while(|changes| single(changes)).collect();
        match single.is_empty() {
            // A single change needs no savepoint, because refused it did nothing.
            false => outcomes.extend(each(tx, &single).await?),
            true => outcomes.push(batch(tx, next[0]).await?),
        }
    }
    commit(tx, batches).await?;
    Ok(outcomes)
}

fn single(changes: &[PreparedChange]) -> Option<&PreparedChange> {
    match changes {
        [change] => Some(change),
        _ => None,
    }
}

/// One batch that has the transaction to itself, all or nothing.
async fn alone(
    tx: &mut SqliteConnection,
    changes: &[PreparedChange],
) -> Result<Result<(), Error>, Error> {
    let outcome = all(tx, changes).await?;
    match &outcome {
        Ok(()) => commit(tx, &[changes]).await?,
        Err(_) => {
            let undone = tx.execute("ROLLBACK").await;
            undone.map_err(|e| classify("undoing a batch", e))?;
        }
    }
    Ok(outcome)
}

/// Commits what was done, and before that merges parts of the index of names, about as much as the changes add to it. FTS5 would
/// do the same by itself after every 64 blocks that are written, and keep other writers waiting for it.
async fn commit(tx: &mut SqliteConnection, batches: &[&[PreparedChange]]) -> Result<(), Error> {
    let of_records = |changes: &&[PreparedChange]| {
        let changes = changes.iter().filter(|change| change.is_of_records());
        changes.count()
    };
    let changes: usize = batches.iter().map(of_records).sum();
    if changes > 0 {
        let blocks = i64::try_from(MERGED.saturating_add(changes)).unwrap_or(i64::MAX);
        let mut merge =
            Statement::new("INSERT INTO record_names (record_names, rank) VALUES ('merge', ");
        merge.bind(blocks).push(")");
        let merged = query(&merge).execute(&mut *tx).await;
        merged.map_err(|e| classify("merging the index of names", e))?;
    }
    let committed = tx.execute("COMMIT").await;
    committed.map_err(|e| classify("committing", e))?;
    Ok(())
}

/// One batch among others, all or nothing.
async fn batch(
    tx: &mut SqliteConnection,
    changes: &[PreparedChange],
) -> Result<Result<(), Error>, Error> {
    let failed = |error| classify("writing", error);
    tx.execute("SAVEPOINT batch").await.map_err(failed)?;
    let outcome = all(tx, changes).await?;
    let end = match &outcome {
        Ok(()) => "RELEASE batch",
        Err(_) => "ROLLBACK TO batch; RELEASE batch",
    };
    tx.execute(end).await.map_err(failed)?;
    Ok(outcome)
}

/// Does changes until one is refused, or a few more, which are to be undone.
async fn all(
    tx: &mut SqliteConnection,
    changes: &[PreparedChange],
) -> Result<Result<(), Error>, Error> {
    let mut waiting = Waiting::new(changes.iter());
    while let Some(outcomes) = waiting.next(tx).await? {
        if let Some(refused) = outcomes.into_iter().find(Result::is_err) {
            return Ok(refused);
        }
    }
    Ok(Ok(()))
}

/// Does changes, each by itself, and says what became of each.
async fn each(
    tx: &mut SqliteConnection,
    changes: &[&PreparedChange],
) -> Result<Vec<Result<(), Error>>, Error> {
    let mut waiting = Waiting::new(changes.iter().copied());
    let mut outcomes = Vec::with_capacity(changes.len());
    while let Some(next) = waiting.next(tx).await? {
        outcomes.extend(next);
    }
    Ok(outcomes)
}

/// Changes that are not done yet, of which the first have statements.
struct Waiting<'c, C> {
    next: VecDeque<(&'c PreparedChange, Statement)>,
    rest: C,
}

impl<'c, C: Iterator<Item = &'c PreparedChange>> Waiting<'c, C> {
    fn new(rest: C) -> Self {
        Self {
            next: VecDeque::new(),
            rest,
        }
    }

    /// Does the first change, and those after it that are alike, and says what became of each;
    /// nothing if there is none.
    async fn next(
        &mut self,
        tx: &mut SqliteConnection,
    ) -> Result<Option<Vec<Result<(), Error>>>, Error> {
        let missing = TOGETHER[0] - self.next.len();
        let more = self.rest.by_ref().take(missing);
        self.next
            .extend(more.map(|change| (change, write::write(Dialect::Sqlite, change))));
        let alike = self.alike();
        if alike == 0 {
            return Ok(None);
        }
        let outcomes = match self.inserts(alike) {
            Some(statement) => self.inserted(tx, alike, &statement).await?,
            None => self.repeated(tx, alike).await?,
        };
        self.next.drain(..outcomes.len());
        Ok(Some(outcomes))
    }

    /// The statement that does the next changes, if they are new rows.
    fn inserts(&self, alike: usize) -> Option<Statement> {
        let changes = self.next.iter().take(alike).map(|(change, _)| *change);
        let changes: Vec<_> = changes.collect();
        let ids: HashSet<_> = changes.iter().map(|change| id(change)).collect();
        match alike > 1 && ids.len() == alike {
            true => write::inserts(&changes),
            false => None,
        }
    }

    /// Inserts the next rows as one statement does, and says what became of each.
    async fn inserted(
        &self,
        tx: &mut SqliteConnection,
        alike: usize,
        statement: &Statement,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let rows = query(statement).fetch_all(&mut *tx).await;
        let rows = rows.map_err(|e| classify("writing", e))?;
        let ids = rows
            .iter()
            .map(|row| Ok(read::text(row, 0)?.unwrap_or_default()));
        let ids = ids.collect::<Result<HashSet<_>, Error>>()?;
        let mut outcomes = Vec::with_capacity(alike);
        for (change, _) in self.next.iter().take(alike) {
            outcomes.push(settled(tx, change, ids.contains(id(change))).await?);
        }
        Ok(outcomes)
    }

    /// Does the next changes by the text of one, repeated, and says what became of each until one fails.
    async fn repeated(
        &self,
        tx: &mut SqliteConnection,
        alike: usize,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let statements = self.next.iter().take(alike).map(|(_, statement)| statement);
        let (changed, error) = execute(tx, statements.collect()).await;
        let mut outcomes = Vec::with_capacity(alike);
        for (rows, (change, _)) in changed.iter().zip(&self.next) {
            outcomes.push(settled(tx, change, *rows > 0).await?);
        }
        if let Some(error) = error {
            let (change, _) = &self.next[changed.len()];
            match is_taken(&error) {
                true => outcomes.push(Err(Error::Exists(change.name()))),
                false => return Err(classify("writing", error)),
            }
        }
        Ok(outcomes)
    }

    /// How many changes share a call, from the first on.
    fn alike(&self) -> usize {
        let Some((_, first)) = self.next.front() else {
            return 0;
        };
        let mut weight = 0;
        let alike = self.next.iter().take_while(|(change, statement)| {
            weight += change.weight();
            weight <= HEAVY && statement.text() == first.text()
        });
        let alike = alike.count();
        let together = TOGETHER.into_iter().find(|count| *count <= alike);
        together.unwrap_or(1)
    }
}

/// The id of the row that is changed.
fn id(change: &PreparedChange) -> &str {
    let (result, record) = change.key();
    record.unwrap_or(result.id())
}

/// Does statements of one text, and says how many rows each changed, of all before one that failed.
async fn execute(
    tx: &mut SqliteConnection,
    statements: Vec<&Statement>,
) -> (Vec<u64>, Option<sqlx::Error>) {
    // Values are bound, so that nothing else in a text looks like this.
    let parts = statements[0].text().split("; ").count();
    let mut done = Vec::with_capacity(statements.len() * parts);
    let outcome = {
        let mut stream = tx.fetch_many(queries(&statements));
        loop {
            match stream.try_next().await {
                Ok(Some(Either::Left(part))) => done.push(part.rows_affected()),
                Ok(Some(Either::Right(_))) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        }
    };
    let changed = done.chunks_exact(parts).map(|parts| parts.iter().sum());
    (changed.collect(), outcome)
}

/// What became of a change that changed something or nothing.
async fn settled(
    tx: &mut SqliteConnection,
    ready: &PreparedChange,
    is_done: bool,
) -> Result<Result<(), Error>, Error> {
    if is_done {
        for statement in write::index_keys(ready) {
            let done = query(&statement).execute(&mut *tx).await;
            done.map_err(|e| classify("writing what is indexed", e))?;
        }
        return Ok(Ok(()));
    }
    for statement in write::prepared_from(ready) {
        let there = query(&statement).fetch_optional(&mut *tx).await;
        let there = there.map_err(|e| classify("reading what a change refers to", e))?;
        if there.is_none() {
            return Ok(Err(prepare::outdated()));
        }
    }
    let statement = write::etag_of(Dialect::Sqlite, ready);
    let found = query(&statement)
        .fetch_optional(tx)
        .await
        .and_then(|row| row.map(|row| row.try_get::<String, _>(0)).transpose())
        .map_err(|e| classify("reading an etag", e))?;
    Ok(Err(ready.refusal(found.map(Etag::from_text))))
}
