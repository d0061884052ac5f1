//! One page of a list.

use std::{num::NonZeroU32, sync::Arc};

use tracing::Instrument as _;

use super::{Error, Tokens, item::Item, scan::Scan, token::Binding};
use hindsight_access::budget::{QuotaExceeded, QuotaGuard};
use hindsight_filter::model::{Record, Resource, ResultPattern, RunResult};
use hindsight_filter::{Filter, Order, Split};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;
use hindsight_storage::{ListQuery, Listed, Priority, RecordColumns, Store};

/// A page of more rows is expensive, as is one whose rows are filtered here.
pub const LARGE_PAGE: u32 = 200;

/// Longest filter that is split where its request arrives, in bytes.
const SHORT: usize = 1_000;

/// Answers lists from one store.
#[derive(Debug, Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    tokens: Tokens,
    /// Most rows one call may read to find its page.
    scan_budget: u64,
    /// Most payload bytes one page may hold; it ends early, with a token, rather than grow.
    page_bytes: usize,
    /// Most bytes a row may have that is sent.
    message_bytes: usize,
    /// Who pays for what filters read.
    quota: QuotaGuard,
}

/// A list that is understood, as the engine runs it.
#[derive(Debug)]
pub struct List {
    /// Which parents and results.
    pub scope: ResultPattern,
    /// Parsed filter that each row of the list must match.
    pub filter: Arc<Filter>,
    /// Order of rows across all pages; tokens are bound to it.
    pub order: Order,
    /// Most rows of the page, which may end with fewer.
    pub size: NonZeroU32,
    /// Token of the page before; empty for the first.
    pub token: String,
    /// Whether records come with their payloads. A filter that needs payloads reads them all the same.
    pub payloads: bool,
    /// The method and parent that the token belongs to.
    pub method: &'static str,
}

/// Rows of one page, with the token that continues the list.
#[derive(Debug)]
pub struct Page<T> {
    /// Matching rows in list order; fewer than asked for if reading ended early.
    pub items: Vec<T>,
    /// Token of the next page; empty on the last.
    pub next: String,
    /// What is probably wrong with a filter that nothing matches.
    pub advice: Vec<String>,
}

impl Engine {
    /// An engine over `store`.
    pub fn new(store: Arc<dyn Store>, tokens: Tokens, scan_budget: u64, page_bytes: usize) -> Self {
        Self {
            store,
            tokens,
            scan_budget,
            page_bytes,
            message_bytes: usize::MAX,
            quota: QuotaGuard::default(),
        }
    }

    /// The same engine, for messages of so many bytes at most.
    #[must_use]
    pub fn sending(self, message_bytes: usize) -> Self {
        Self {
            message_bytes,
            ..self
        }
    }

    /// Confirms that a record fits into a message.
    ///
    /// # Errors
    /// If it does not, which names it.
    pub fn fits(&self, record: &Record) -> Result<(), Error> {
        if record.weight() <= self.message_bytes {
            return Ok(());
        }
        Err(Error::TooLarge {
            name: record.name.to_string(),
            bytes: record.weight(),
            limit: self.message_bytes,
        })
    }

    /// The same engine, at the expense of `quota`.
    #[must_use]
    pub fn with_quota(&self, quota: &QuotaGuard) -> Self {
        Self {
            quota: quota.clone(),
            ..self.clone()
        }
    }

    /// The same engine over another store.
    #[must_use]
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }

    /// What seals page tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// One page of results.
    ///
    /// # Errors
    /// If the token is wrong, the budget is spent, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn results(&self, list: List) -> Result<Page<RunResult>, Error> {
        self.page(list, Resource::Results).await
    }

    /// One page of records.
    ///
    /// # Errors
    /// If the token is wrong, the budget is spent, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn records(&self, list: List) -> Result<Page<Record>, Error> {
        self.page(list, Resource::Records).await
    }

    /// One page of records with what columns keep of their payloads.
    ///
    /// It fails if the token is wrong, the budget is spent, or the store does not answer.
    #[tracing::instrument(name = "query", skip_all)]
    pub async fn columns(&self, list: List) -> Result<Page<RecordColumns>, Error> {
        self.page(list, Resource::Records).await
    }

    async fn page<T: Item>(&self, list: List, resource: Resource) -> Result<Page<T>, Error> {
        if resource == Resource::Records {
            self.store.refresh_indexes().await?;
        }
        let split = self.split(&list.filter).await?;
        let is_cheap = list.filter.text().len() <= SHORT && list.size.get() <= LARGE_PAGE;
        if is_cheap && !split.residual {
            return self.walk(list, split, resource, Priority::Normal).await;
        }
        let engine = self.clone();
        let work = async move { engine.walk(list, split, resource, Priority::Low).await };
        run_low_priority("listing", Box::pin(work)).await
    }

    async fn walk<T: Item>(
        &self,
        list: List,
        split: Split,
        resource: Resource,
        priority: Priority,
    ) -> Result<Page<T>, Error> {
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
        let after = match list.token.as_str() {
            "" => None,
            token => Some(self.tokens.open(token, &binding)?),
        };
        let query = ListQuery {
            after,
            bodies: list.payloads || split.residual,
            ..ListQuery::whole_rows(list.scope, split.condition, list.order.clone(), priority)
        };
        let mut scan = self.scan::<T>(&list.filter, split.residual, query);
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut last = None;
        let wanted = list.size.get() as usize;
        scan.takes_turns |= list.size.get() > LARGE_PAGE;
        let more = loop {
            let room = wanted - items.len();
            let chunk = match scan.next(room + 1).await {
                // What was found is worth more than a refusal.
                Err(Error::Quota(QuotaExceeded::Memory)) if last.is_some() => break true,
                chunk => chunk?,
            };
            let Some(chunk) = chunk else {
                break false;
            };
            let mut full = false;
            for Listed {
                mut item, position, ..
            } in chunk
            {
                if item.weight() > self.message_bytes {
                    // An error here would end every list that comes by.
                    item.leave_out_payload(self.message_bytes);
                }
                bytes += item.weight();
                if items.len() == wanted || (!items.is_empty() && bytes > self.page_bytes) {
                    full = true;
                    break;
                }
                items.push(item);
                last = Some(position);
            }
            scan.keep();
            if full {
                break true;
            }
            if scan.is_over() {
                if items.is_empty() {
                    return Err(Error::Budget {
                        scanned: self.scan_budget,
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
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Who pays for what is read.
    pub(super) fn quota(&self) -> &QuotaGuard {
        &self.quota
    }

    /// Most bytes of one page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Most rows that one call may read.
    pub fn scan_budget(&self) -> u64 {
        self.scan_budget
    }

    /// The same engine, which reads so many rows at most.
    #[must_use]
    pub fn within(self, rows: u64) -> Self {
        Self {
            scan_budget: self.scan_budget.min(rows),
            ..self
        }
    }

    /// What the store answers of a filter. A long one is split at low priority.
    pub(super) async fn split(&self, filter: &Arc<Filter>) -> Result<Split, Error> {
        let (store, filter) = (Arc::clone(&self.store), Arc::clone(filter));
        let is_short = filter.text().len() <= SHORT;
        let split = move || filter.split(&|test| store.ability(test));
        match is_short {
            true => Ok(split()),
            false => run_low_priority("splitting a filter", async move { Ok(split()) }).await,
        }
    }

    /// A walk over the rows of `query` that match; with a `residual` the filter is
    /// evaluated on each.
    pub(super) fn scan<T: Item>(
        &self,
        filter: &Arc<Filter>,
        residual: bool,
        query: ListQuery,
    ) -> Scan<'_, T> {
        let filter = residual.then(|| Arc::clone(filter));
        Scan::new(&*self.store, &self.quota, filter, query, self.scan_budget)
    }
}

/// Does `work` at low priority, so that it does not delay cheap queries.
pub(super) async fn run_low_priority<T: Send + 'static>(
    what: &'static str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let done = low_priority::run(work.in_current_span()).await;
    done.unwrap_or_else(|broken| {
        let source = broken.into();
        Err(storage::Error::Unavailable { what, source }.into())
    })
}
