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
    storage::{self, ListQuery, Listed, Sealed, Store},
};

/// Rows fetched at once while a page is filled; it grows while rows turn out to be small. Payloads
/// are fetched with their rows, so a chunk ends with the row that brings it to so many bytes.
const FIRST_CHUNK: u32 = 256;
pub(super) const MOST_ROWS: u32 = 1_000;
const CHUNK_BYTES: usize = 4 << 20;
/// The same of payloads that stay packed until they are judged, each by itself: fewer chunks
/// mean less waiting of those who judge for those who read.
const SEALED_BYTES: usize = 16 << 20;

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
    /// What is probably wrong with a filter that nothing matches.
    pub advice: Vec<String>,
}

/// What lists need to know of a row.
pub(super) trait Item: Send + Sized + 'static {
    /// The row as long as it is not known whether it is wanted.
    type Sealed: Send + 'static;

    fn fetch(
        store: &dyn Store,
        query: &ListQuery,
    ) -> impl Future<Output = Result<Vec<Listed<Self>>, Error>> + Send;
    fn fetch_sealed(
        store: &dyn Store,
        query: &ListQuery,
    ) -> impl Future<Output = Result<Vec<Listed<Self::Sealed>>, Error>> + Send;
    fn weight(&self) -> usize;
    fn sealed_weight(sealed: &Self::Sealed) -> usize;
    /// The row, if it matches.
    fn matching(sealed: Self::Sealed, filter: &Filter) -> Result<Option<Self>, Error>;
}

impl Item for RunResult {
    type Sealed = Self;

    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_results(query).await?)
    }

    async fn fetch_sealed(
        store: &dyn Store,
        query: &ListQuery,
    ) -> Result<Vec<Listed<Self>>, Error> {
        Self::fetch(store, query).await
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    fn sealed_weight(sealed: &Self) -> usize {
        sealed.weight()
    }

    fn matching(result: Self, filter: &Filter) -> Result<Option<Self>, Error> {
        let matches = filter.matches(&Row::Result(&result))?;
        Ok(matches.then_some(result))
    }
}

impl Item for Record {
    type Sealed = Sealed;

    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_records(query).await?)
    }

    async fn fetch_sealed(
        store: &dyn Store,
        query: &ListQuery,
    ) -> Result<Vec<Listed<Sealed>>, Error> {
        Ok(store.list_sealed(query).await?)
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    fn sealed_weight(sealed: &Sealed) -> usize {
        sealed.weight()
    }

    /// A payload that is damaged may look like another, so none is given out, and none is taken
    /// for no JSON, before its digest was compared. Comparing all would take as long as the rest.
    fn matching(sealed: Sealed, filter: &Filter) -> Result<Option<Self>, Error> {
        let record = sealed.look()?;
        let body = filter.body(&record);
        let matches = filter.matches(&Row::Record {
            record: &record,
            body: &body,
        })?;
        if matches || body.is_unreadable() {
            sealed.check(&record)?;
        }
        Ok(matches.then_some(record))
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
        if resource == Resource::Records {
            self.store.refresh_indexes().await?;
        }
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
        let advice = Vec::new();
        Ok(Page {
            items,
            next,
            advice,
        })
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
        let chunk_bytes = if split.residual {
            SEALED_BYTES
        } else {
            CHUNK_BYTES
        };
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
                max_bytes: Some(chunk_bytes),
            },
            after,
            scanned: 0,
            chunk_bytes,
            row_bytes: chunk_bytes / FIRST_CHUNK as usize,
            ended: false,
            ahead: None,
            takes_turns: split.residual,
        }
    }
}

/// A walk over the rows of a list, in chunks. Where rows are judged, the next chunk is read
/// meanwhile.
pub(super) struct Scan<'a, T: Item> {
    store: &'a dyn Store,
    payer: &'a Payer,
    /// What is left to evaluate on each row.
    filter: Option<Filter>,
    /// Continues after the last row read.
    query: ListQuery,
    /// The last row given out or judged.
    after: Option<Position>,
    scanned: u64,
    /// How many bytes of payloads end a chunk.
    chunk_bytes: usize,
    /// What a row turned out to weigh.
    row_bytes: usize,
    /// Whether all rows were read.
    ended: bool,
    /// Rows that were read and not judged.
    ahead: Option<Vec<Listed<T::Sealed>>>,
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
        if self.ended && self.ahead.is_none() {
            return Ok(None);
        }
        let Some(filter) = self.filter.clone() else {
            let limit = self.fitting().min(wanted);
            let rows = T::fetch(self.store, self.chunk(limit)).await?;
            self.was_read(&rows, T::weight, limit);
            self.pass(&rows);
            return Ok(Some(rows));
        };
        let rows = match self.ahead.take() {
            Some(rows) => rows,
            None => self.read().await?,
        };
        self.pass(&rows);
        self.payer.scanned(rows.len() as u64)?;
        let judged = judged(rows, filter, turn);
        // The first chunk is often enough.
        if self.ended || self.scanned <= u64::from(FIRST_CHUNK) {
            return judged.await.map(Some);
        }
        let (judged, read) = tokio::join!(judged, self.read());
        self.ahead = Some(read?);
        judged.map(Some)
    }

    /// Reads the next chunk to be judged: as much as fits, because what is judged lets few rows
    /// through.
    async fn read(&mut self) -> Result<Vec<Listed<T::Sealed>>, Error> {
        let limit = self.fitting();
        let rows = T::fetch_sealed(self.store, self.chunk(limit)).await?;
        self.was_read(&rows, T::sealed_weight, limit);
        Ok(rows)
    }

    /// How many rows are likely to have the bytes of a chunk.
    fn fitting(&self) -> usize {
        (self.chunk_bytes / self.row_bytes.max(1)).clamp(1, MOST_ROWS as usize)
    }

    /// What reads the next chunk.
    fn chunk(&mut self, limit: usize) -> &ListQuery {
        let limit = u32::try_from(limit).unwrap_or(MOST_ROWS);
        self.query.limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        &self.query
    }

    /// Goes on after rows that were read.
    fn was_read<R>(&mut self, rows: &[Listed<R>], weight: impl Fn(&R) -> usize, limit: usize) {
        // Payloads that reach the bytes may have cut the chunk short.
        let bytes: usize = rows.iter().map(|row| weight(&row.item)).sum();
        self.ended = rows.len() < limit && bytes < self.chunk_bytes;
        if let Some(row) = rows.last() {
            self.query.after = Some(row.position.clone());
            self.row_bytes = bytes / rows.len();
        }
    }

    /// Takes rows down as given out or judged.
    fn pass<R>(&mut self, rows: &[Listed<R>]) {
        self.scanned += rows.len() as u64;
        if let Some(row) = rows.last() {
            self.after = Some(row.position.clone());
        }
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
    mut rows: Vec<Listed<T::Sealed>>,
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
            for Listed { item, position } in part {
                if let Some(item) = T::matching(item, &filter)? {
                    matching.push(Listed { item, position });
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
