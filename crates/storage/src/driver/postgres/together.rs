//! Many changes, each by itself: those of one kind are one statement, which costs one round trip,
//! one plan and one commit. Each keeps its own precondition.

use std::collections::HashSet;

use sqlx::{Row, postgres::PgConnection};

use super::{
    batch::{Failure, MOST_BYTES, MOST_ROWS, RETRIES, change, commit},
    bind::query,
    errors,
    pool::Pool,
};
use crate::{
    codec::row::{PreparedChange, RecordRow},
    seam::Error,
    sql::{many, statement::Statement},
};
use hindsight_filter::model::{Etag, RunResult};

/// Changes that one statement can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    NewResults,
    NewRecords,
    Records,
}

impl Kind {
    pub(super) fn of(ready: &PreparedChange) -> Option<Self> {
        match ready {
            PreparedChange::InsertResult(_) => Some(Self::NewResults),
            PreparedChange::InsertRecord(_) => Some(Self::NewRecords),
            PreparedChange::ReplaceRecord(..) => Some(Self::Records),
            _ => None,
        }
    }

    fn statement(self, jobs: &[&PreparedChange]) -> Statement {
        match self {
            Self::NewResults => many::insert_results(&results(jobs)),
            Self::NewRecords => many::insert_records(&records(jobs)),
            Self::Records => many::replace_records(&replaced(jobs)),
        }
    }

    /// The statement that finds out whose name was taken.
    fn taken(self, jobs: &[&PreparedChange]) -> Option<Statement> {
        match self {
            Self::NewResults => Some(many::taken_results(&results(jobs))),
            Self::NewRecords => Some(many::taken_records(&records(jobs))),
            Self::Records => None,
        }
    }
}

/// Does each change by itself and says what became of it, in order; no two are about one row.
pub(super) async fn each(pool: &Pool, changes: &[PreparedChange]) -> Vec<Result<(), Error>> {
    let mut outcomes: Vec<Option<Result<(), Error>>> = Vec::new();
    outcomes.resize_with(changes.len(), || None);
    for kind in [Kind::NewResults, Kind::NewRecords, Kind::Records] {
        let mut places: Vec<_> = (0..changes.len())
            .filter(|at| Kind::of(&changes[*at]) == Some(kind))
            .collect();
        // All writers lock rows in one order, so that none waits in a circle.
        places.sort_by(|a, b| changes[*a].key().cmp(&changes[*b].key()));
        for places in parts(&places, changes) {
            let jobs: Vec<_> = places.iter().map(|at| &changes[*at]).collect();
            let done = together(pool, kind, &jobs).await;
            for (at, outcome) in places.iter().zip(done) {
                outcomes[*at] = Some(outcome);
            }
        }
    }
    let mut all = Vec::with_capacity(changes.len());
    for (ready, outcome) in changes.iter().zip(outcomes) {
        all.push(match outcome {
            Some(outcome) => outcome,
            None => commit(pool, std::slice::from_ref(ready)).await,
        });
    }
    all
}

async fn together(pool: &Pool, kind: Kind, jobs: &[&PreparedChange]) -> Vec<Result<(), Error>> {
    let mut connection = match pool.acquire().await {
        Ok(connection) => connection,
        Err(error) => {
            let error = errors::classify("connecting", error);
            return jobs.iter().map(|_| Err(error.repeated())).collect();
        }
    };
    let places = match attempt(&mut connection, kind, jobs).await {
        Ok(places) => places,
        // One of them is to blame, and shows when each is done by itself; not if that would take as
        // long for each as it took for all.
        Err(error) if error.as_database_error().is_some() && !errors::is_too_slow(&error) => {
            Places::default()
        }
        Err(error) => {
            let error = errors::classify("writing", error);
            return jobs.iter().map(|_| Err(error.repeated())).collect();
        }
    };
    let mut outcomes = Vec::with_capacity(jobs.len());
    for (place, job) in (1..).zip(jobs) {
        outcomes.push(if places.done.contains(&place) {
            Ok(())
        } else if places.taken.contains(&place) {
            Err(Error::Exists(job.name()))
        } else {
            alone(&mut connection, job).await
        });
    }
    // It may have broken while what was left was done one by one.
    if places.done.len() + places.taken.len() == jobs.len() {
        connection.give_back();
    }
    outcomes
}

/// Cuts changes into as many as one statement takes.
fn parts<'p>(places: &'p [usize], changes: &[PreparedChange]) -> Vec<&'p [usize]> {
    let mut parts = Vec::new();
    let mut rest = places;
    while !rest.is_empty() {
        let mut bytes = 0;
        let count = rest
            .iter()
            .take(MOST_ROWS)
            .take_while(|at| {
                let room = bytes < MOST_BYTES;
                bytes += changes[**at].weight();
                room
            })
            .count();
        let (part, later) = rest.split_at(count);
        parts.push(part);
        rest = later;
    }
    parts
}

/// What is known of changes after their statement, by their places from 1.
#[derive(Debug, Default)]
struct Places {
    done: HashSet<i64>,
    taken: HashSet<i64>,
}

/// Does changes by one statement. What is not `done` afterwards did not happen.
async fn attempt(
    connection: &mut PgConnection,
    kind: Kind,
    jobs: &[&PreparedChange],
) -> Result<Places, sqlx::Error> {
    if jobs.len() == 1 {
        return Ok(Places::default());
    }
    let statement = kind.statement(jobs);
    let mut left = RETRIES;
    let done = loop {
        match places(connection, &statement).await {
            Err(error) if errors::is_conflict(&error) && left > 0 => left -= 1,
            outcome => break outcome?,
        }
    };
    let taken = match kind.taken(jobs) {
        Some(taken) if done.len() < jobs.len() => places(connection, &taken).await,
        _ => Ok(HashSet::new()),
    };
    Ok(Places::after(done, taken))
}

impl Places {
    /// What was done is done, whatever becomes of the question who had the other names: those
    /// changes are done one by one then, and find out by themselves.
    fn after(done: HashSet<i64>, taken: Result<HashSet<i64>, sqlx::Error>) -> Self {
        let taken = match taken {
            Ok(taken) => taken.difference(&done).copied().collect(),
            Err(error) => {
                tracing::debug!(%error, "cannot tell which names were taken");
                HashSet::new()
            }
        };
        Self { done, taken }
    }
}

async fn places(
    connection: &mut PgConnection,
    statement: &Statement,
) -> Result<HashSet<i64>, sqlx::Error> {
    let rows = query(statement).fetch_all(connection).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Does one change by itself.
async fn alone(connection: &mut PgConnection, ready: &PreparedChange) -> Result<(), Error> {
    let mut left = RETRIES;
    loop {
        match change(connection, ready).await {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(error)) => return Err(error),
            Err(Failure::Driver(_, error)) if errors::is_conflict(&error) && left > 0 => left -= 1,
            Err(Failure::Driver(what, error)) => return Err(errors::classify(what, error)),
        }
    }
}

fn records<'r>(jobs: &[&'r PreparedChange]) -> Vec<&'r RecordRow> {
    jobs.iter().filter_map(|ready| ready.record_row()).collect()
}

fn replaced<'r>(jobs: &[&'r PreparedChange]) -> Vec<(&'r Etag, &'r RecordRow)> {
    let both = |ready: &&'r PreparedChange| Some((ready.expected()?, ready.record_row()?));
    jobs.iter().filter_map(both).collect()
}

fn results<'r>(jobs: &[&'r PreparedChange]) -> Vec<&'r RunResult> {
    jobs.iter().filter_map(|ready| ready.new_result()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_stays_so_when_the_question_about_the_rest_fails() {
        let places = Places::after([1, 3].into(), Err(sqlx::Error::PoolClosed));
        assert_eq!(places.done, [1, 3].into());
        assert_eq!(places.taken, [].into());
        let places = Places::after([1, 3].into(), Ok([1, 2, 3].into()));
        assert_eq!(places.taken, [2].into());
    }
}
