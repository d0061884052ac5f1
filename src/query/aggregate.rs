//! Adding up records: by the store if it answers the whole question, else here, from payloads.

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use super::{Engine, Error, filter_batch::TURN, list::run_low_priority, scan::MOST_ROWS};
use hindsight_filter::measure::{Group, Key, Tally};
use hindsight_filter::model::{Record, ResultPattern};
use hindsight_filter::{
    Body, Filter, Order, Row, Term,
    columns::{ObjectColumns, columns_of, of_record},
    condition::{Ability, Column, Condition},
};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;
use hindsight_storage::{AggregateQuery, GroupKey, ListQuery, Listed, Priority, Store, Summed};

/// What is asked of records in groups.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Of which parents and results.
    pub scope: ResultPattern,
    /// Filter that a record must match to be in a group.
    pub filter: Arc<Filter>,
    /// What makes a group.
    pub keys: Vec<Grouping>,
    /// How many records pass each. Tests must be of columns whose values fit them.
    pub counts: Vec<Condition>,
    /// Numbers to add up.
    pub amounts: Vec<Summed>,
}

/// Something that the records of a group share.
#[derive(Debug, Clone)]
pub enum Grouping {
    /// A key that the store keeps, so that no payload is read for it.
    Stored(GroupKey),
    /// What a payload must be read for.
    Term(Term),
}

impl Grouping {
    /// By a term: by its column, if it has one.
    #[must_use]
    pub fn by(term: Term) -> Self {
        match term.column() {
            Some(column) => Self::Stored(GroupKey::Column(column)),
            None => Self::Term(term),
        }
    }
}

impl Engine {
    /// The groups, in the order of their keys.
    ///
    /// # Errors
    /// If there are too many groups, if more payloads than the budget would be read, or if the
    /// store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn aggregate(&self, ask: Aggregate) -> Result<Vec<Group>, Error> {
        self.store().refresh_indexes().await?;
        let engine = self.clone();
        let work = Box::pin(async move { engine.add_up(ask).await });
        run_low_priority("adding up", work).await
    }

    async fn add_up(&self, ask: Aggregate) -> Result<Vec<Group>, Error> {
        let store = &**self.store();
        let split = ask.filter.split(&|test| store.ability(test));
        let keys: Option<Vec<_>> = ask.keys.iter().map(stored).collect();
        let query = AggregateQuery {
            scope: ask.scope,
            condition: split.condition,
            counts: ask.counts,
            amounts: ask.amounts,
            keys: keys.clone().unwrap_or_default(),
            priority: Priority::Low,
        };
        let counted = query.counts.iter().all(|condition| exact(condition, store));
        if keys.is_some() && counted && !split.residual {
            return Ok(store.aggregate(&query).await?);
        }
        self.aggregate_here(&ask.filter, split.residual, ask.keys, query)
            .await
    }

    async fn aggregate_here(
        &self,
        filter: &Arc<Filter>,
        residual: bool,
        keys: Vec<Grouping>,
        query: AggregateQuery,
    ) -> Result<Vec<Group>, Error> {
        let mut tally = Tally::new(query.shape());
        let (scope, condition) = (query.scope.clone(), query.condition.clone());
        let rows = ListQuery::whole_rows(scope, condition, Order::newest_first(), query.priority);
        let mut scan = self.scan::<Record>(filter, residual, rows);
        let mut state = (keys, query);
        while let Some(chunk) = scan.next(MOST_ROWS as usize).await? {
            if !scan.filters() {
                self.quota().scanned(chunk.len() as u64)?;
            }
            (state, tally) = self.add_rows(chunk, state, tally).await?;
            if scan.is_over() {
                return Err(Error::Measured {
                    scanned: self.scan_budget(),
                });
            }
        }
        Ok(tally.finish())
    }
}

type Asked = (Vec<Grouping>, AggregateQuery);

impl Engine {
    /// Adds rows up, turn by turn. Reading payloads is work for a thread that may be kept busy.
    async fn add_rows(
        &self,
        rows: Vec<Listed<Record>>,
        mut asked: Asked,
        mut tally: Tally,
    ) -> Result<(Asked, Tally), Error> {
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let turn = self.quota().turn().await;
            let adding = low_priority::block(move |stop| {
                let _turn = turn;
                let began = Instant::now();
                for listed in rows.by_ref() {
                    add(&listed, &asked, &mut tally, stop)?;
                    if began.elapsed() >= TURN {
                        break;
                    }
                }
                Ok::<_, Error>((rows, asked, tally))
            });
            let added = adding.await.map_err(|broken| storage::Error::Unavailable {
                what: "adding up",
                source: broken.into(),
            })?;
            (rows, asked, tally) = added?;
        }
        Ok((asked, tally))
    }
}

fn stored(key: &Grouping) -> Option<GroupKey> {
    match key {
        Grouping::Stored(key) => Some(key.clone()),
        Grouping::Term(_) => None,
    }
}

/// Whether the store answers every test of a condition exactly.
fn exact(condition: &Condition, store: &dyn Store) -> bool {
    match condition {
        Condition::All | Condition::Nothing => true,
        Condition::And(parts) | Condition::Or(parts) => parts.iter().all(|part| exact(part, store)),
        Condition::Test(test) => store.ability(test) == Ability::Exact,
    }
}

fn add(
    row: &Listed<Record>,
    (keys, query): &Asked,
    tally: &mut Tally,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let (record, tier) = (&row.item, row.tier);
    let body = Body::of(record);
    let object = match (&record.data, body.json()) {
        (Some(data), Some(json)) => columns_of(&data.data_type, json),
        _ => ObjectColumns::default(),
    };
    let column = |column: &Column| of_record(record, tier, &object, column);
    let row = Row::Record {
        record,
        tier,
        body: &body,
    };
    let key = |key: &Grouping| match key {
        Grouping::Stored(key) => Ok(key.of(&column)),
        Grouping::Term(term) => term.value(&row, stop),
    };
    let keys: Result<Vec<Key>, _> = keys.iter().map(key).collect();
    let added = query.add(tally, keys?, &column);
    Ok(added.map_err(storage::Error::from)?)
}
