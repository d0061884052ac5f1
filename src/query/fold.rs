//! Rows that are read for an answer which is made of many of them.

use std::{num::NonZeroU32, sync::Arc};

use super::{
    Engine, Error,
    item::Item,
    list::run_low_priority,
    scan::{MOST_ROWS, Scan},
};
use hindsight_access::budget::QuotaExceeded;
use hindsight_filter::model::{ParentPattern, Record, RecordName, ResultPattern};
use hindsight_filter::{
    Filter, Order,
    condition::{Column, Condition, Is, Test, Value},
};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;
use hindsight_storage::{AggregateQuery, ListQuery, Priority, Projection, RecordColumns};

/// What is made of rows while they are read.
pub trait Fold: Send + Sized + 'static {
    /// A record, or what columns keep of it.
    type Row;

    /// Takes some more rows; false if no more are wanted.
    fn add(&mut self, rows: Vec<Self::Row>) -> bool;
    /// About how many bytes of memory it takes.
    fn bytes(&self) -> usize;
    /// Which columns it looks at, if its rows are of columns.
    fn projection(&self) -> Projection {
        Projection::ALL
    }
}

impl Engine {
    /// Hands the records of `scope` that pass `condition`, or what columns keep of them, to `fold`, in the
    /// order of storing; says whether it had all of them, and not only as many as it wanted or one call
    /// may read. Every test of `condition` must be one that the store answers exactly.
    ///
    /// It fails if the caller has no memory left or read enough, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn fold<F>(
        &self,
        scope: ResultPattern,
        condition: Condition,
        fold: F,
    ) -> Result<(F, bool), Error>
    where
        F: Fold,
        F::Row: Item,
    {
        let order = Order::by(Column::CreateTime, false);
        let query = ListQuery::whole_rows(scope, condition, order, Priority::Low);
        let engine = self.clone();
        let work = async move { engine.fold_here(None, query, fold).await };
        run_low_priority("reading runs", Box::pin(work)).await
    }

    /// Hands what columns keep of the records of `scope` that match `filter` to `fold`, those that
    /// were stored last first; says whether it had all of them, as [`Engine::fold`] does.
    ///
    /// It fails if the caller has no memory left or read enough, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn fold_columns<F: Fold<Row = RecordColumns>>(
        &self,
        scope: ResultPattern,
        filter: Arc<Filter>,
        fold: F,
    ) -> Result<(F, bool), Error> {
        self.store().refresh_indexes().await?;
        let split = self.split(&filter).await?;
        let filter = split.residual.then_some(filter);
        let query =
            ListQuery::whole_rows(scope, split.condition, Order::newest_first(), Priority::Low);
        let engine = self.clone();
        let work = async move { engine.fold_here(filter, query, fold).await };
        run_low_priority("reading runs", Box::pin(work)).await
    }

    async fn fold_here<F>(
        &self,
        filter: Option<Arc<Filter>>,
        mut query: ListQuery,
        mut fold: F,
    ) -> Result<(F, bool), Error>
    where
        F: Fold,
        F::Row: Item,
    {
        // A filter looks at any column.
        if filter.is_none() {
            query.projection = fold.projection();
        }
        let budget = self.scan_budget();
        let mut scan = Scan::<F::Row>::new(&**self.store(), self.quota(), filter, query, budget);
        let mut kept = self.quota().expect(0).await?;
        let mut had_all = true;
        scan.takes_turns = true;
        while let Some(chunk) = scan.next(MOST_ROWS as usize).await? {
            if !scan.filters() {
                self.quota().scanned(chunk.len() as u64)?;
            }
            let rows = chunk.into_iter().map(|listed| listed.item).collect();
            let turn = self.quota().turn().await;
            let adding = low_priority::block(move |_| {
                let _turn = turn;
                let goes_on = fold.add(rows);
                (fold, goes_on)
            });
            let (next, goes_on) = adding.await.map_err(broken)?;
            fold = next;
            if !self.quota().holds(&mut kept, fold.bytes()) {
                return Err(QuotaExceeded::Memory.into());
            }
            had_all = goes_on && !scan.is_over();
            if !had_all {
                break;
            }
        }
        self.quota().keep(kept);
        Ok((fold, had_all))
    }

    /// The first record that passes `condition`, with its payload. Every test of `condition` must be
    /// one that the store answers exactly.
    ///
    /// It fails if the store does not answer.
    pub async fn first(
        &self,
        scope: ResultPattern,
        condition: Condition,
        order: Order,
    ) -> Result<Option<Record>, Error> {
        let mut held = self.quota().expect(usize::MAX).await?;
        let query: ListQuery = ListQuery::whole_rows(scope, condition, order, Priority::Normal);
        let found = self.store().list_records(&query).await?.into_iter().next();
        let found = found.map(|listed| listed.item);
        self.quota()
            .was_read(&mut held, found.as_ref().map_or(0, Record::weight))?;
        self.quota().keep(held);
        Ok(found)
    }

    /// The records of these names that are there, with their payloads, in no order.
    ///
    /// It fails if the store does not answer.
    pub async fn named(&self, names: Vec<RecordName>) -> Result<Vec<Record>, Error> {
        let Some(most) = u32::try_from(names.len()).ok().and_then(NonZeroU32::new) else {
            return Ok(Vec::new());
        };
        let mut held = self.quota().expect(usize::MAX).await?;
        let texts = names.iter().map(|name| Value::Text(name.to_string()));
        let condition = Condition::Test(Test {
            column: Column::RecordName,
            is: Is::OneOf(texts.collect()),
            negated: false,
        });
        let mut parents = names.iter().map(|name| name.result().parent());
        let first = parents.next().cloned();
        let parent = first.filter(|first| parents.all(|parent| parent == first));
        let scope = ResultPattern {
            parent: parent.map_or(ParentPattern::Any, ParentPattern::Exact),
            id: None,
        };
        let query = ListQuery {
            limit: most,
            ..ListQuery::whole_rows(scope, condition, Order::newest_first(), Priority::Normal)
        };
        let found = self.store().list_records(&query).await?.into_iter();
        let found: Vec<Record> = found.map(|listed| listed.item).collect();
        let weight = found.iter().map(Record::weight).sum();
        self.quota().was_read(&mut held, weight)?;
        self.quota().keep(held);
        Ok(found)
    }

    /// The names of the first `most` records that pass `condition`, of which no payload is read. Every
    /// test of `condition` must be one that the store answers exactly.
    ///
    /// It fails if the store does not answer.
    pub async fn names(
        &self,
        scope: ResultPattern,
        condition: Condition,
        order: Order,
        most: NonZeroU32,
    ) -> Result<Vec<RecordName>, Error> {
        let query = ListQuery {
            limit: most,
            bodies: false,
            ..ListQuery::whole_rows(scope, condition, order, Priority::Normal)
        };
        let found = self.store().list_records(&query).await?.into_iter();
        Ok(found.map(|listed| listed.item.name).collect())
    }

    /// How many records pass `condition`, and how many of those pass each of `counts`. Every test
    /// must be one that the store answers exactly.
    ///
    /// It fails if the store does not answer.
    pub async fn count(
        &self,
        scope: ResultPattern,
        condition: Condition,
        counts: Vec<Condition>,
    ) -> Result<(u64, Vec<u64>), Error> {
        let none = vec![0; counts.len()];
        let query = AggregateQuery {
            scope,
            condition,
            keys: Vec::new(),
            counts,
            amounts: Vec::new(),
            priority: Priority::Low,
        };
        let store = Arc::clone(self.store());
        let work = async move { Ok(store.aggregate(&query).await?) };
        let groups = run_low_priority("counting", Box::pin(work)).await?;
        let first = groups.into_iter().next();
        Ok(first.map_or((0, none), |group| (group.sums.rows, group.sums.counts)))
    }

    /// Does `work` on a thread of low priority, when it is the caller's turn.
    ///
    /// It fails if the work breaks off.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.quota().turn().await;
        let done = low_priority::block(move |_| {
            let _turn = turn;
            work()
        });
        done.await.map_err(broken)
    }
}

fn broken(broken: low_priority::Broken) -> Error {
    let source = broken.into();
    let what = "reading runs";
    storage::Error::Unavailable { what, source }.into()
}
