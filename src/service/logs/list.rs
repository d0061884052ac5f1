//! Lists of what is stored of logs, page by page.

use std::num::NonZeroU32;

use hindsight_filter::Order;
use hindsight_storage::{ListedLog, StoredLog};

use crate::query::{Binding, Error as QueryError, LARGE_PAGE};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_filter::model::ResultPattern;

/// What tokens are bound to; the list of records of logs has the short name.
const METHOD: &str = "hindsight.v1.Logs/ListLogs";
/// Most logs and results without any that are read at once.
const MOST_ROWS: usize = 1_000;
/// What so many take in memory at most, as far as is known before they are read.
const CHUNK_BYTES: usize = 1 << 20;

/// The logs of one page of a list, and where the next begins.
#[derive(Debug, Default)]
pub struct StoredLogs {
    /// Those of the newest results first.
    pub logs: Vec<StoredLog>,
    /// The token of the next page; empty on the last.
    pub next: String,
}

impl Service {
    /// A page of what is stored of the logs of results within the parent that `grant` is for.
    pub async fn list_stored_logs(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        size: NonZeroU32,
        token: &str,
    ) -> Result<StoredLogs, Error> {
        let parent = grant.scope(Verb::List, Guarded::Logs)?.clone();
        let scope = ResultPattern { parent, id: result };
        let (parent, order) = (scope.to_string(), Order::newest_first());
        let binding = Binding::unfiltered(METHOD, &parent, &order);
        let tokens = self.engine.tokens();
        let mut after = match token {
            "" => None,
            token => Some(tokens.open(token, &binding).map_err(QueryError::from)?),
        };
        let mut page = StoredLogs::default();
        let wanted = size.get() as usize;
        let (mut most, mut scanned, mut bytes) = (wanted.saturating_add(1), 0, 0);
        let mut room = Some(by.quota.expect(CHUNK_BYTES).await?);
        let more = loop {
            // What was found is worth more than a refusal.
            let Some(mut held) = room else { break true };
            let _turn = match size.get() > LARGE_PAGE {
                true => by.quota.turn().await,
                false => None,
            };
            most = most.min(MOST_ROWS);
            let rows = NonZeroU32::try_from(u32::try_from(most).unwrap_or(u32::MAX));
            let rows = rows.unwrap_or(NonZeroU32::MIN);
            let rows = self
                .logs
                .store
                .list_logs(&scope, after.as_ref(), rows)
                .await?;
            let read = rows.iter().map(weight).sum();
            by.quota.was_read(&mut held, read)?;
            let is_last = rows.len() < most;
            scanned += rows.len() as u64;
            let mut is_full = false;
            for row in rows {
                let more = weight(&row);
                if let Some(log) = row.log {
                    is_full = page.logs.len() == wanted
                        || (!page.logs.is_empty() && bytes + more > self.engine.page_bytes());
                    if is_full {
                        break;
                    }
                    bytes += more;
                    page.logs.push(log);
                }
                after = Some(row.position);
            }
            by.quota.keep(held);
            if is_full || is_last || scanned >= self.engine.scan_budget() {
                break is_full || !is_last;
            }
            most = most.saturating_mul(2);
            room = by.quota.expect_more(CHUNK_BYTES);
        };
        page.next = match after {
            Some(position) if more => tokens.seal(&position, &binding),
            _ => String::new(),
        };
        Ok(page)
    }
}

/// About how many bytes a row takes.
fn weight(row: &ListedLog) -> usize {
    let names = row.log.as_ref().map_or(0, |log| {
        let run = &log.key.run;
        let name = run.result().parent().as_str().len() + run.result().id().len() + run.id().len();
        name + log.key.source.pod.len() + log.key.source.container.len()
    });
    size_of::<ListedLog>() + 2 * names
}
