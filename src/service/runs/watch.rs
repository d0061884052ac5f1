//! Runs that are followed: changes of the feed that a caller asked for and may see.

use std::{collections::VecDeque, sync::Arc};

use hindsight_filter::{
    Filter, Order, Position, Row, Split,
    columns::of_record,
    condition::{Ability, Column, Test},
    model::{ParentPattern, Resource, ResultPattern, Tier},
    order::KeyValue,
    run_filter,
};
use hindsight_storage as storage;
use hindsight_storage::{ChangedRecord, FeedPosition};

use super::selected::Selected;
use crate::query::{self, Binding, TokenError};
use crate::service::{
    Error, Selector, Service,
    feed::{Batch, Follower},
};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_access::budget::QuotaGuard;
use hindsight_runtime::low_priority;

const RECORDS: Resource = Resource::Records;
/// Memory for a payload that a filter reads.
const PAYLOAD: usize = 4 << 20;

/// Which runs are followed, and from where.
#[derive(Debug, Clone)]
pub struct WatchAsk {
    /// What selects records.
    pub selector: Selector,
    /// Words or CEL that runs must match, too.
    pub query: String,
    /// Zone of the dates in `query`; empty is UTC.
    pub time_zone: String,
    /// The place after which changes are told; none: from now on.
    pub after: Option<FeedPosition>,
}

/// The changes of runs that one call asked for.
#[derive(Debug)]
pub struct RunWatch {
    service: Service,
    quota: QuotaGuard,
    scope: ResultPattern,
    filter: Arc<Filter>,
    /// What of the filter columns answer.
    split: Split,
    follower: Follower,
    pending: VecDeque<Arc<ChangedRecord>>,
    /// The place up to which changes were told or passed over.
    position: FeedPosition,
    /// The batch that `pending` is left of.
    batch: Option<Batch>,
}

impl Service {
    /// Follows the runs among the records of the results called `result` (`None`: of every result)
    /// under the parent that `grant` is for. It fails if a text of the request is wrong, or changes
    /// after the place are not kept any more.
    pub async fn watch_runs(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: WatchAsk,
    ) -> Result<RunWatch, Error> {
        let parent = grant.scope(Verb::List, RECORDS)?.clone();
        let selected = Selected {
            selector: ask.selector,
            query: ask.query,
            time_zone: ask.time_zone,
            runs: run_filter(),
        };
        let (filter, _) = self.selected(&by.quota, selected).await?;
        let quota = by.quota.part();
        let caller = &by.caller.name;
        let follower = self.feed.follow(caller, ask.after, quota.clone()).await?;
        let scope = ResultPattern { parent, id: result };
        Ok(RunWatch::new(self, scope, filter, follower, ask.after))
    }

    /// A place as clients keep it. It is sealed, because places tell how much is written to all parents.
    pub fn cursor(&self, place: FeedPosition) -> String {
        let position = Position {
            id: place.row,
            keys: vec![Some(KeyValue::Int(place.transaction))],
        };
        self.engine
            .tokens()
            .seal(&position, &feed(&Order::newest_first()))
    }

    /// The place of a cursor, of whichever parent and filter. One that was sealed under another key is of no use any
    /// more.
    pub fn place_of(&self, cursor: &str) -> Result<FeedPosition, Error> {
        let opened = self
            .engine
            .tokens()
            .open(cursor, &feed(&Order::newest_first()));
        let position = match opened {
            Ok(position) => Some(position),
            Err(TokenError::Foreign) => return Err(storage::Error::Expired.into()),
            Err(TokenError::Malformed) => None,
        };
        let place = position.and_then(|position| match position.keys[..] {
            [Some(KeyValue::Int(transaction))] => Some(FeedPosition {
                transaction,
                row: position.id,
            }),
            _ => None,
        });
        place.ok_or_else(|| {
            let why = "cursor: is not one of an event of WatchRuns; list, and follow anew";
            Error::Invalid(why.to_owned())
        })
    }

    /// The filter of the runs that match words or CEL, for [`Self::follow_runs`].
    pub async fn filter_of_runs(&self, query: &str) -> Result<Arc<Filter>, Error> {
        let selected = Selected {
            selector: Selector::default(),
            query: query.to_owned(),
            time_zone: String::new(),
            runs: run_filter(),
        };
        let (filter, _) = self.selected(&QuotaGuard::default(), selected).await?;
        Ok(filter)
    }

    /// Follows all runs that match a filter, after a place and on behalf of the server itself. It fails
    /// if changes after the place are not kept any more.
    pub async fn follow_runs(
        &self,
        filter: Arc<Filter>,
        after: FeedPosition,
    ) -> Result<RunWatch, Error> {
        let quota = QuotaGuard::default();
        let follower = self.feed.follow("", Some(after), quota).await?;
        let scope = ResultPattern {
            parent: ParentPattern::Any,
            id: None,
        };
        Ok(RunWatch::new(self, scope, filter, follower, Some(after)))
    }
}

/// What all cursors belong to.
fn feed(order: &Order) -> Binding<'_> {
    Binding::unfiltered("WatchRuns", "", order)
}

impl RunWatch {
    fn new(
        service: &Service,
        scope: ResultPattern,
        filter: Arc<Filter>,
        mut follower: Follower,
        after: Option<FeedPosition>,
    ) -> Self {
        let ability = |test: &Test| match test.column {
            Column::Indexed(_) => Ability::None,
            _ => Ability::Exact,
        };
        Self {
            service: service.clone(),
            quota: follower.quota(),
            scope,
            split: filter.split(&ability),
            filter,
            position: match after {
                Some(after) => after,
                None => follower.position(),
            },
            follower,
            pending: VecDeque::new(),
            batch: None,
        }
    }

    /// The place up to which everything was told.
    pub fn position(&mut self) -> FeedPosition {
        if self.pending.is_empty() {
            self.position = self.position.max(self.follower.position());
        }
        self.position
    }

    /// The next change of a run that matches, once there is one. What is given up before it is ready
    /// is not lost.
    pub async fn next(&mut self) -> Result<Arc<ChangedRecord>, Error> {
        loop {
            while let Some(change) = self.pending.front() {
                let matches = self.matches(change).await?;
                let Some(change) = self.pending.pop_front() else {
                    break;
                };
                self.position = change.position;
                if matches {
                    return Ok(change);
                }
            }
            if let Some(batch) = self.batch.take() {
                self.position = batch.end;
            }
            let mut batch = self.follower.next().await?;
            self.pending = std::mem::take(&mut batch.changes);
            self.batch = Some(batch);
        }
    }

    /// What changed is in the database: a change of what is in a file puts it back.
    async fn matches(&self, change: &ChangedRecord) -> Result<bool, Error> {
        let (record, object) = (&change.columns.record, &change.columns.object);
        let column = |column: &Column| of_record(record, Tier::Hot, object, column);
        if !self.is_in_scope(change) || !self.split.condition.passes(&column) {
            return Ok(false);
        }
        if !self.split.residual {
            return Ok(true);
        }
        let mut held = self.quota.expect(PAYLOAD).await?;
        let Some(whole) = self.service.store.record(&record.name).await? else {
            return Ok(false);
        };
        self.quota.was_read(&mut held, whole.weight())?;
        self.quota.scanned(1)?;
        if whole.etag != record.etag {
            // The change that made it so comes later.
            return Ok(false);
        }
        let filter = Arc::clone(&self.filter);
        let judged = low_priority::block(move |stop| {
            let body = filter.body(&whole);
            let row = Row::Record {
                record: &whole,
                tier: Tier::Hot,
                body: &body,
            };
            filter.matches_until(&row, stop)
        });
        let judged = judged.await.map_err(|broken| storage::Error::Unavailable {
            what: "evaluating a filter",
            source: broken.into(),
        })?;
        Ok(judged.map_err(query::Error::from)?)
    }

    fn is_in_scope(&self, change: &ChangedRecord) -> bool {
        let result = change.columns.record.name.result();
        let of_parent = match &self.scope.parent {
            ParentPattern::Any => true,
            ParentPattern::Exact(parent) => result.parent() == parent,
        };
        of_parent && self.scope.id.as_deref().is_none_or(|id| id == result.id())
    }
}
