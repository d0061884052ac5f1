//! What requests select rows by, and where their texts are read.

use std::{num::NonZeroU32, sync::Arc};

use super::{Error, Service};
use crate::query::List;
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{
    ClusterNames, CostBudget, Filter, FilterError, Language, Selection, parse_order,
};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;

/// Longest texts that are read where their request arrives, in bytes.
const SHORT: usize = 1_000;

/// What a request selects rows by, as it comes from outside; all of it must hold. Blank texts
/// select every row.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// Filter expression in `language`; blank selects every row.
    pub filter: String,
    /// The name of its language; empty means the one that is configured.
    pub language: String,
    /// A Kubernetes label selector.
    pub labels: String,
    /// A Kubernetes field selector.
    pub fields: String,
}

impl Selector {
    pub(super) fn len(&self) -> usize {
        self.filter.len() + self.labels.len() + self.fields.len()
    }

    /// Reads it as what selects rows of `resource`, at the expense of `budget`.
    pub(super) fn parse(
        &self,
        reading: &Reading,
        resource: Resource,
        budget: &mut CostBudget,
    ) -> Result<Arc<Filter>, Error> {
        let selection = Selection {
            filter: &self.filter,
            language: reading.language,
            labels: &self.labels,
            fields: &self.fields,
        };
        let filter = Filter::select_within(&selection, resource, budget)?;
        Ok(Arc::new(filter.with_clusters(&reading.clusters)))
    }
}

/// How texts that select rows are read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    language: Language,
    pub(super) clusters: Arc<ClusterNames>,
}

/// What a list is asked for, as it comes from outside.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// What rows of the list must match, as texts that are not parsed yet.
    pub selector: Selector,
    /// Fields with directions, between commas.
    pub order_by: String,
    /// Most rows of a page.
    pub size: NonZeroU32,
    /// Token of the page before; empty for the first.
    pub token: String,
    /// Whether records come with their payloads.
    pub payloads: bool,
}

impl Service {
    /// How a selector is read.
    pub(super) fn reading(&self, selector: &Selector) -> Result<Reading, Error> {
        let language = match selector.language.trim() {
            "" => self.language,
            name => name
                .parse::<Language>()
                .map_err(|e| Error::Invalid(e.to_string()))?,
        };
        Ok(Reading {
            language,
            clusters: Arc::clone(&self.clusters),
        })
    }

    /// Reads what a request selects rows of `resource` by.
    pub(super) async fn filter(
        &self,
        quota: &QuotaGuard,
        selector: Selector,
        resource: Resource,
    ) -> Result<Arc<Filter>, Error> {
        let (reading, bytes) = (self.reading(&selector)?, selector.len());
        let read = move |budget: &mut CostBudget| selector.parse(&reading, resource, budget);
        understood(quota, read, bytes).await
    }

    /// Reads a request for a page of rows of `resource` in `scope`, by the name of its method.
    pub(super) async fn list(
        &self,
        quota: &QuotaGuard,
        request: ListRequest,
        resource: Resource,
        scope: ResultPattern,
        method: &'static str,
    ) -> Result<List, Error> {
        Ok(List {
            scope,
            filter: self.filter(quota, request.selector, resource).await?,
            order: parse_order(&request.order_by, resource)?,
            size: request.size,
            token: request.token,
            payloads: request.payloads,
            method,
        })
    }
}

/// What `read` makes of texts of so many bytes, all at the expense of one budget: here where they
/// turn out to cost little, and otherwise at low priority, when it is the caller's turn.
pub(super) async fn understood<T: Send + 'static>(
    quota: &QuotaGuard,
    read: impl Fn(&mut CostBudget) -> Result<T, Error> + Send + 'static,
    bytes: usize,
) -> Result<T, Error> {
    if bytes <= SHORT {
        match read(&mut CostBudget::small()) {
            Err(Error::Filter(FilterError::TooCostly { .. })) => {}
            understood => return understood,
        }
    }
    let turn = quota.turn().await;
    let reading = low_priority::block(move |stop| {
        let _turn = turn;
        read(&mut CostBudget::of_request(stop))
    });
    reading
        .await
        .map_err(|broken| storage::Error::Unavailable {
            what: "reading a filter",
            source: broken.into(),
        })?
}
