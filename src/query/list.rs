//! One page of a list.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
};

use super::{Error, Tokens, token::Binding};
use tracing::Instrument as _;

use crate::{
    background,
    budget::{Payer, Turn},
    filter::{Filter, Order, Position, Row},
    model::{Record, Resource, ResultPattern, RunResult},
    storage::{self, ListQuery, Listed, Store},
};

/// Rows fetched at once while a page is filled; it grows while rows turn out to be small. Payloads
/// are fetched with their rows, so a chunk ends with the row that brings it to [`CHUNK_BYTES`].
const FIRST_CHUNK: u32 = 256;
pub(super) const MOST_ROWS: u32 = 1_000;
const CHUNK_BYTES: usize = 4 << 20;

/// A page of more rows is long work, as is one whose rows are judged here.
const LARGE_PAGE: u32 = 200;

/// Rows that are not worth a second thread.
const FEW_ROWS: usize = 64;

/// Answers lists from one store.
#[derive(Debug, Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    tokens: Tokens,
    /// Most rows one call may read to find its page.
    scan_budget: u64,
    /// Most payload bytes one page may hold; it ends early, with a token, rather than grow.
    page_bytes: usize,
    /// Who pays for what filters read.
    payer: Payer,
}

/// What a list is asked for.
#[derive(Debug)]
pub struct List<'a> {
    /// Which parents and results.
    pub scope: ResultPattern,
    /// Which rows.
    pub filter: &'a Filter,
    /// In which order.
    pub order: Order,
    /// Most rows wanted.
    pub size: NonZeroU32,
    /// Token of the page before; empty for the first.
    pub token: &'a str,
    /// The method and parent that the token belongs to.
    pub method: &'static str,
}

/// One page.
#[derive(Debug)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Token of the next page; empty on the last.
    pub next: String,
}

/// What lists need to know of a row.
pub(super) trait Item: Send + Sized + 'static {
    fn fetch(
        store: &dyn Store,
        query: &ListQuery,
    ) -> impl Future<Output = Result<Vec<Listed<Self>>, Error>> + Send;
    fn weight(&self) -> usize;
    fn matches(&self, filter: &Filter) -> Result<bool, Error>;
}

impl Item for RunResult {
    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_results(query).await?)
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    fn matches(&self, filter: &Filter) -> Result<bool, Error> {
        Ok(filter.matches(&Row::Result(self))?)
    }
}

impl Item for Record {
    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_records(query).await?)
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    fn matches(&self, filter: &Filter) -> Result<bool, Error> {
        let body = filter.body(self);
        Ok(filter.matches(&Row::Record {
            record: self,
            body: &body,
        })?)
    }
}

impl Engine {
    /// An engine over `store`.
    pub fn new(store: Arc<dyn Store>, tokens: Tokens, scan_budget: u64, page_bytes: usize) -> Self {
        Self {
            store,
            tokens,
            scan_budget,
            page_bytes,
            payer: Payer::default(),
        }
    }

    /// The same engine, at the expense of `payer`.
    #[must_use]
    pub fn paid_by(&self, payer: &Payer) -> Self {
        Self {
            payer: payer.clone(),
            ..self.clone()
        }
    }

    /// One page of results.
    ///
    /// # Errors
    /// If the token is wrong, the budget is spent, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn results(&self, list: List<'_>) -> Result<Page<RunResult>, Error> {
        self.page(list, Resource::Results).await
    }

    /// One page of records.
    ///
    /// # Errors
    /// If the token is wrong, the budget is spent, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn records(&self, list: List<'_>) -> Result<Page<Record>, Error> {
        self.page(list, Resource::Records).await
    }

    async fn page<T: Item>(&self, list: List<'_>, resource: Resource) -> Result<Page<T>, Error> {
        let judges = list.filter.split(&|test| self.store.ability(test)).residual;
        if list.size.get() <= LARGE_PAGE && !judges {
            return self.walk(list, resource).await;
        }
        let (engine, filter, token) = (self.clone(), list.filter.clone(), list.token.to_owned());
        let List {
            scope,
            order,
            size,
            method,
            ..
        } = list;
        let work = async move {
            let list = List {
                scope,
                filter: &filter,
                order,
                size,
                token: &token,
                method,
            };
            engine.walk(list, resource).await
        };
        behind("listing", Box::pin(work)).await
    }

    async fn walk<T: Item>(&self, list: List<'_>, resource: Resource) -> Result<Page<T>, Error> {
        let parent = match resource {
            Resource::Results => list.scope.parent.to_string(),
            Resource::Records => list.scope.to_string(),
        };
        let binding = Binding {
            method: list.method,
            parent: &parent,
            filter: list.filter.text(),
            order: &list.order,
        };
        let after = match list.token {
            "" => None,
            token => Some(self.tokens.open(token, &binding)?),
        };
        let mut scan = self.scan::<T>(list.scope, list.filter, list.order.clone(), after);
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut last = None;
        let wanted = list.size.get() as usize;
        scan.takes_turns |= list.size.get() > LARGE_PAGE;
        let more = loop {
            let room = wanted - items.len();
            let Some(chunk) = scan.next(room + 1).await? else {
                break false;
            };
            let mut full = false;
            for Listed { item, position } in chunk {
                bytes += item.weight();
                if items.len() == wanted || (!items.is_empty() && bytes > self.page_bytes) {
                    full = true;
                    break;
                }
                items.push(item);
                last = Some(position);
            }
            if full {
                break true;
            }
            if scan.is_over(self.scan_budget) {
                if items.is_empty() {
                    return Err(Error::Budget {
                        scanned: scan.scanned,
                    });
                }
                last = scan.after;
                break true;
            }
        };
        let next = match last {
            Some(position) if more => self.tokens.seal(&position, &binding),
            _ => String::new(),
        };
        Ok(Page { items, next })
    }

    /// The store that is asked.
    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Who pays for what is read.
    pub(super) fn payer(&self) -> &Payer {
        &self.payer
    }

    /// Most rows that one call may read.
    pub(super) fn scan_budget(&self) -> u64 {
        self.scan_budget
    }

    /// A walk over the rows that match.
    pub(super) fn scan<'a, T: Item>(
        &'a self,
        scope: ResultPattern,
        filter: &'a Filter,
        order: Order,
        after: Option<Position>,
    ) -> Scan<'a, T> {
        let split = filter.split(&|test| self.store.ability(test));
        Scan {
            store: &*self.store,
            payer: &self.payer,
            filter: split.residual.then(|| filter.clone()),
            query: ListQuery {
                scope,
                condition: split.condition,
                order,
                after: after.clone(),
                limit: NonZeroU32::MIN,
                bodies: true,
                max_bytes: Some(CHUNK_BYTES),
            },
            after,
            scanned: 0,
            row_bytes: CHUNK_BYTES / FIRST_CHUNK as usize,
            ended: false,
            ahead: None,
            takes_turns: split.residual,
        }
    }
}

/// A walk over the rows of a list, in chunks. Where rows are judged, the next chunk is read
/// meanwhile.
pub(super) struct Scan<'a, T> {
    store: &'a dyn Store,
    payer: &'a Payer,
    /// What is left to evaluate on each row.
    filter: Option<Filter>,
    /// Continues after the last row read.
    query: ListQuery,
    /// The last row given out or judged.
    after: Option<Position>,
    scanned: u64,
    /// What a row turned out to weigh.
    row_bytes: usize,
    /// Whether all rows were read.
    ended: bool,
    /// Rows that were read and not judged.
    ahead: Option<Vec<Listed<T>>>,
    /// Whether a chunk waits for its turn among the long calls.
    takes_turns: bool,
}

impl<T: Item> Scan<'_, T> {
    /// How many rows it read.
    pub(super) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Whether rows are judged here, which is paid for as they are read.
    pub(super) fn judges(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether it read more than `budget`, or would have to.
    pub(super) fn is_over(&self, budget: u64) -> bool {
        let ended = self.ended && self.ahead.is_none();
        self.scanned > budget || (self.scanned == budget && !ended)
    }

    /// The matching rows of the next chunk; `None` after the last.
    pub(super) async fn next(&mut self, wanted: usize) -> Result<Option<Vec<Listed<T>>>, Error> {
        let turn = if self.takes_turns {
            self.payer.turn().await.map(Arc::new)
        } else {
            None
        };
        let rows = match self.ahead.take() {
            Some(rows) => rows,
            None if self.ended => return Ok(None),
            None => self.read(wanted).await?,
        };
        self.scanned += rows.len() as u64;
        if let Some(row) = rows.last() {
            self.after = Some(row.position.clone());
        }
        let Some(filter) = self.filter.clone() else {
            return Ok(Some(rows));
        };
        self.payer.scanned(rows.len() as u64)?;
        let judged = judged(rows, filter, turn);
        // The first chunk is often enough.
        if self.ended || self.scanned <= u64::from(FIRST_CHUNK) {
            return judged.await.map(Some);
        }
        let (judged, read) = tokio::join!(judged, self.read(wanted));
        self.ahead = Some(read?);
        judged.map(Some)
    }

    /// Reads the next chunk.
    async fn read(&mut self, wanted: usize) -> Result<Vec<Listed<T>>, Error> {
        let fitting = (CHUNK_BYTES / self.row_bytes.max(1)).clamp(1, MOST_ROWS as usize);
        // What is judged lets few rows through, so that what is wanted says nothing then.
        let limit = if self.filter.is_some() {
            fitting
        } else {
            fitting.min(wanted)
        };
        let limit = u32::try_from(limit).unwrap_or(MOST_ROWS);
        self.query.limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let rows = T::fetch(self.store, &self.query).await?;
        // Payloads that reach the bytes may have cut the chunk short.
        let bytes: usize = rows.iter().map(|row| row.item.weight()).sum();
        self.ended = rows.len() < limit as usize && bytes < CHUNK_BYTES;
        if let Some(row) = rows.last() {
            self.query.after = Some(row.position.clone());
            self.row_bytes = bytes / rows.len();
        }
        Ok(rows)
    }
}

/// Does `work` behind all that is short.
pub(super) async fn behind<T: Send + 'static>(
    what: &'static str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let done = background::run(work.in_current_span()).await;
    done.unwrap_or_else(|broken| {
        let source = broken.into();
        Err(storage::Error::Unavailable { what, source }.into())
    })
}

/// Those of the rows that match, in order. Reading payloads is work for threads that may be
/// kept busy, one on each core.
async fn judged<T: Item>(
    mut rows: Vec<Listed<T>>,
    filter: Filter,
    turn: Option<Arc<Turn>>,
) -> Result<Vec<Listed<T>>, Error> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = rows.len().div_ceil(cores).max(FEW_ROWS);
    let mut parts = Vec::with_capacity(cores);
    while !rows.is_empty() {
        let rest = rows.split_off(share.min(rows.len()));
        let part = std::mem::replace(&mut rows, rest);
        let (filter, turn) = (filter.clone(), turn.clone());
        parts.push(tokio::task::spawn_blocking(move || {
            // It is worked to the end, also if the caller goes away.
            let _turn = turn;
            let mut matching = Vec::new();
            for row in part {
                if row.item.matches(&filter)? {
                    matching.push(row);
                }
            }
            Ok::<_, Error>(matching)
        }));
    }
    let mut matching = Vec::new();
    for part in parts {
        // Only a server that stops gives up such work.
        let part = part.await.map_err(|error| storage::Error::Unavailable {
            what: "evaluating a filter",
            source: error.into(),
        })?;
        matching.extend(part?);
    }
    Ok(matching)
}
