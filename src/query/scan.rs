//! Rows of a list as they are read and filtered, in chunks that have their memory.

use std::{num::NonZeroU32, sync::Arc};

use super::{Error, filter_batch::filter_batch, item::Item};
use hindsight_access::budget::{MemoryPermit, QuotaExceeded, QuotaGuard};
use hindsight_filter::{Filter, Position};
use hindsight_storage::{ListQuery, Listed, Store};

/// Rows fetched at once while a page is filled; it grows while rows turn out to be small. A chunk ends
/// with the row that brings it to so many bytes.
const FIRST_CHUNK: u32 = 256;
/// Chunks are few, because each reads columns of whole archive files, and sorts all rows of the list in other orders
/// than that of time.
pub(super) const MOST_ROWS: u32 = 16_000;
const CHUNK_BYTES: usize = 4 << 20;
/// The same of payloads that stay packed until they are filtered, each by itself: with fewer
/// chunks, filtering waits less for reading.
const SEALED_BYTES: usize = 16 << 20;

/// A walk over the rows of a list, in chunks. Where rows are filtered, the next chunk
/// is read meanwhile.
pub(super) struct Scan<'a, T: Item> {
    store: &'a dyn Store,
    quota: &'a QuotaGuard,
    /// What is left to evaluate on each row.
    filter: Option<Arc<Filter>>,
    /// Continues after the last row read.
    query: ListQuery,
    /// The last row given out or filtered.
    pub(super) after: Option<Position>,
    scanned: u64,
    /// Most rows that may be read; one more tells whether there are others.
    budget: u64,
    /// How many bytes of payloads end a chunk.
    chunk_bytes: usize,
    /// What a row turned out to weigh.
    row_bytes: usize,
    /// How many rows the next chunk to be filtered has at most. The first are little more than are
    /// wanted, because columns have mostly left out what does not match; then four times as many.
    most: usize,
    /// Whether all rows were read.
    ended: bool,
    /// Rows that were read and not filtered.
    ahead: Option<(Vec<Listed<T::Encoded>>, MemoryPermit)>,
    /// Whether a chunk waits for its turn among the long calls.
    pub(super) takes_turns: bool,
    /// Memory of the rows that were given out last.
    held: MemoryPermit,
    /// Whether memory of rows given out before is kept.
    keeps: bool,
}

impl<'a, T: Item> Scan<'a, T> {
    /// A walk over the first `budget` rows of `query`, charged to `quota`; `filter` is evaluated on each.
    pub(super) fn new(
        store: &'a dyn Store,
        quota: &'a QuotaGuard,
        filter: Option<Arc<Filter>>,
        query: ListQuery,
        budget: u64,
    ) -> Self {
        let chunk_bytes = match &filter {
            Some(_) => SEALED_BYTES,
            None => CHUNK_BYTES,
        };
        Self {
            store,
            quota,
            takes_turns: filter.is_some(),
            filter,
            after: query.after.clone(),
            query: ListQuery {
                max_bytes: Some(chunk_bytes),
                ..query
            },
            scanned: 0,
            budget,
            chunk_bytes,
            row_bytes: chunk_bytes / FIRST_CHUNK as usize,
            most: 0,
            ended: false,
            ahead: None,
            held: MemoryPermit::default(),
            keeps: false,
        }
    }
}

impl<T: Item> Scan<'_, T> {
    /// Whether rows are filtered here, which is paid for as they are read.
    pub(super) fn filters(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether there are more rows than it may read.
    pub(super) fn is_over(&self) -> bool {
        self.scanned > self.budget
    }

    /// The matching rows of the next chunk; `None` after the last.
    pub(super) async fn next(&mut self, wanted: usize) -> Result<Option<Vec<Listed<T>>>, Error> {
        self.held = MemoryPermit::default();
        if self.ended && self.ahead.is_none() {
            return Ok(None);
        }
        let room = match self.ahead {
            None => Some(self.room().await?),
            Some(_) => None,
        };
        let turn = if self.takes_turns {
            self.quota.turn().await.map(Arc::new)
        } else {
            None
        };
        let Some(filter) = self.filter.clone() else {
            let mut held = room.unwrap_or_default();
            let limit = self.fitting().min(wanted);
            let rows = T::fetch(self.store, self.chunk(limit)).await?;
            self.was_read(&rows, T::weight, limit, &mut held)?;
            self.held = held;
            self.pass(&rows);
            return Ok(Some(rows));
        };
        self.most = self.most.max(wanted + wanted / 4 + 8);
        let (rows, mut held) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.read(room.unwrap_or_default()).await?,
        };
        self.pass(&rows);
        self.quota.scanned(rows.len() as u64)?;
        let filtering = filter_batch::<T>(rows, filter, self.quota, turn);
        // The first chunk is often enough.
        let goes_on = !self.ended && !self.is_over() && self.scanned > u64::from(FIRST_CHUNK);
        let more = goes_on
            .then(|| self.quota.expect_more(self.chunk_bytes))
            .flatten();
        let matching = match more {
            None => filtering.await?,
            Some(room) => {
                let (matching, read) = tokio::join!(filtering, self.read(room));
                self.ahead = Some(read?);
                matching?
            }
        };
        let bytes = matching.iter().map(|row| row.item.weight()).sum();
        if !self.quota.holds(&mut held, bytes) {
            return Err(QuotaExceeded::Memory.into());
        }
        self.held = held;
        Ok(Some(matching))
    }

    /// Memory for the next chunk. Who keeps some already does not wait for others like that.
    async fn room(&mut self) -> Result<MemoryPermit, Error> {
        if !self.keeps {
            return Ok(self.quota.expect(self.chunk_bytes).await?);
        }
        let room = self.quota.expect_more(self.chunk_bytes);
        room.ok_or_else(|| QuotaExceeded::Memory.into())
    }

    /// Keeps the memory of the rows that were given out last until the answer is gone.
    pub(super) fn keep(&mut self) {
        self.keeps |= !self.held.is_empty();
        self.quota.keep(std::mem::take(&mut self.held));
    }

    /// Reads the next chunk to be filtered: as much as fits, because few of its rows will match.
    async fn read(
        &mut self,
        mut held: MemoryPermit,
    ) -> Result<(Vec<Listed<T::Encoded>>, MemoryPermit), Error> {
        let limit = self.fitting().min(self.most);
        self.most = self.most.saturating_mul(4);
        let rows = T::fetch_encoded(self.store, self.chunk(limit)).await?;
        self.was_read(&rows, T::encoded_weight, limit, &mut held)?;
        Ok((rows, held))
    }

    /// How many rows are likely to have the bytes of a chunk, of those that may be read.
    fn fitting(&self) -> usize {
        let left = self.budget.saturating_sub(self.scanned).saturating_add(1);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let fitting = self.chunk_bytes / self.row_bytes.max(1);
        fitting.clamp(1, MOST_ROWS as usize).min(left)
    }

    /// What reads the next chunk.
    fn chunk(&mut self, limit: usize) -> &ListQuery {
        let limit = u32::try_from(limit).unwrap_or(MOST_ROWS);
        self.query.limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        &self.query
    }

    /// Goes on after rows that were read.
    fn was_read<R>(
        &mut self,
        rows: &[Listed<R>],
        weight: impl Fn(&R) -> usize,
        limit: usize,
        held: &mut MemoryPermit,
    ) -> Result<(), Error> {
        // Rows that reach the bytes may have cut the chunk short.
        let bytes: usize = rows.iter().map(|row| weight(&row.item)).sum();
        self.ended = rows.len() < limit && bytes < self.chunk_bytes;
        if let Some(row) = rows.last() {
            self.query.after = Some(row.position.clone());
            self.row_bytes = bytes / rows.len();
        }
        Ok(self.quota.was_read(held, bytes)?)
    }

    /// Takes rows down as given out or filtered.
    fn pass<R>(&mut self, rows: &[Listed<R>]) {
        self.scanned += rows.len() as u64;
        if let Some(row) = rows.last() {
            self.after = Some(row.position.clone());
        }
    }
}
