//! Evaluates a filter on the rows of a chunk, on all cores.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::{Error, item::Item};
use hindsight_access::budget::{FairPermit, QuotaGuard};
use hindsight_filter::Filter;
use hindsight_runtime::{cores::cores, low_priority};
use hindsight_storage as storage;
use hindsight_storage::Listed;

/// How long a filter is evaluated before it is the turn of the next caller.
pub(super) const TURN: Duration = Duration::from_millis(50);
/// Rows that are not worth a second thread.
const FEW_ROWS: usize = 64;

/// Rows that one thread evaluates the filter on, and those of them that match so far.
struct Share<T: Item> {
    rows: std::vec::IntoIter<Listed<T::Encoded>>,
    matching: Vec<Listed<T>>,
}

impl<T: Item> Share<T> {
    /// Filters rows until the turn is over, and one in any case.
    fn filter(mut self, filter: &Filter, stop: &CancellationToken) -> Result<Self, Error> {
        let began = Instant::now();
        for row in self.rows.by_ref() {
            if let Some(item) = T::matching(row.item, row.tier, filter, stop)? {
                self.matching.push(Listed {
                    item,
                    position: row.position,
                    tier: row.tier,
                });
            }
            if began.elapsed() >= TURN {
                break;
            }
        }
        Ok(self)
    }
}

/// Those of the rows that match, in order. Reading payloads is work for threads that may be
/// kept busy, one on each core, as long as a turn lasts.
pub(super) async fn filter_batch<T: Item>(
    mut rows: Vec<Listed<T::Encoded>>,
    filter: Arc<Filter>,
    quota: &QuotaGuard,
    mut turn: Option<Arc<FairPermit>>,
) -> Result<Vec<Listed<T>>, Error> {
    let cores = cores();
    let share = rows.len().div_ceil(cores).max(FEW_ROWS);
    let mut shares = Vec::with_capacity(cores);
    while !rows.is_empty() {
        let rest = rows.split_off(share.min(rows.len()));
        shares.push(Share {
            rows: std::mem::replace(&mut rows, rest).into_iter(),
            matching: Vec::new(),
        });
    }
    loop {
        let filtering = shares.into_iter().map(|share| {
            let (filter, turn) = (Arc::clone(&filter), turn.clone());
            low_priority::block(move |stop| {
                // It is over when the thread is done, also if the caller goes away before.
                let _turn = turn;
                share.filter(&filter, stop)
            })
        });
        let filtered = futures::future::try_join_all(filtering).await;
        shares = filtered
            .map_err(|broken| storage::Error::Unavailable {
                what: "evaluating a filter",
                source: broken.into(),
            })?
            .into_iter()
            .collect::<Result<_, Error>>()?;
        if shares.iter().all(|share| share.rows.len() == 0) {
            return Ok(shares
                .into_iter()
                .flat_map(|share| share.matching)
                .collect());
        }
        if turn.take().is_some() {
            turn = quota.turn().await.map(Arc::new);
        }
    }
}
