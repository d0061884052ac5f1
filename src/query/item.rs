//! The kinds of rows that lists are of, and what of them differs: how they are read, what they
//! weigh, and how a filter is evaluated on them.

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Error;
use hindsight_filter::model::{Record, RunResult, Tier};
use hindsight_filter::{Filter, Row};
use hindsight_storage::{EncodedRecord, ListQuery, Listed, RecordColumns, Store};

/// What lists need to know of a row.
pub trait Item: Send + Sized + 'static {
    /// The row as long as it is not known whether it is wanted.
    type Encoded: Send + 'static;

    fn fetch(
        store: &dyn Store,
        query: &ListQuery,
    ) -> impl Future<Output = Result<Vec<Listed<Self>>, Error>> + Send;
    fn fetch_encoded(
        store: &dyn Store,
        query: &ListQuery,
    ) -> impl Future<Output = Result<Vec<Listed<Self::Encoded>>, Error>> + Send;
    fn weight(&self) -> usize;
    /// Makes it small enough for a message.
    fn leave_out_payload(&mut self, limit: usize);
    fn encoded_weight(encoded: &Self::Encoded) -> usize;
    /// The row, which is kept in `tier`, if it matches.
    fn matching(
        encoded: Self::Encoded,
        tier: Tier,
        filter: &Filter,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, Error>;
}

impl Item for RunResult {
    type Encoded = Self;

    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_results(query).await?)
    }

    async fn fetch_encoded(
        store: &dyn Store,
        query: &ListQuery,
    ) -> Result<Vec<Listed<Self>>, Error> {
        Self::fetch(store, query).await
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    /// A result has no payload, so it stays as it is.
    fn leave_out_payload(&mut self, _limit: usize) {}

    fn encoded_weight(encoded: &Self) -> usize {
        encoded.weight()
    }

    fn matching(
        result: Self,
        _tier: Tier,
        filter: &Filter,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, Error> {
        let matches = filter.matches_until(&Row::Result(&result), stop)?;
        Ok(matches.then_some(result))
    }
}

impl Item for Record {
    type Encoded = EncodedRecord;

    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_records(query).await?)
    }

    async fn fetch_encoded(
        store: &dyn Store,
        query: &ListQuery,
    ) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        Ok(store.list_encoded(query).await?)
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    fn leave_out_payload(&mut self, limit: usize) {
        let bytes = self.weight();
        let name = &self.name;
        tracing::warn!(%name, bytes, limit, "a list leaves out a payload above max_message_bytes");
        if let Some(data) = &mut self.data {
            data.value = Bytes::new();
        }
    }

    fn encoded_weight(encoded: &EncodedRecord) -> usize {
        encoded.weight()
    }

    /// A payload that is damaged may look like another, so none is given out, and none is taken
    /// for no JSON, before its digest was compared. Comparing all would take as long as the rest.
    fn matching(
        encoded: EncodedRecord,
        tier: Tier,
        filter: &Filter,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, Error> {
        let record = encoded.decode_unverified()?;
        let body = filter.body(&record);
        let row = Row::Record {
            record: &record,
            tier,
            body: &body,
        };
        let matches = filter.matches_until(&row, stop)?;
        if matches || body.is_unreadable() {
            encoded.verify(&record)?;
        }
        Ok(matches.then_some(record))
    }
}

/// Payloads are read only to be filtered by what has no column.
impl Item for RecordColumns {
    type Encoded = EncodedRecord;

    async fn fetch(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        Ok(store.list_columns(query).await?)
    }

    async fn fetch_encoded(
        store: &dyn Store,
        query: &ListQuery,
    ) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        Record::fetch_encoded(store, query).await
    }

    fn weight(&self) -> usize {
        Self::weight(self)
    }

    /// There is none.
    fn leave_out_payload(&mut self, _limit: usize) {}

    fn encoded_weight(encoded: &EncodedRecord) -> usize {
        encoded.weight()
    }

    fn matching(
        encoded: EncodedRecord,
        tier: Tier,
        filter: &Filter,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, Error> {
        Ok(Record::matching(encoded, tier, filter, stop)?.map(Self::of))
    }
}
