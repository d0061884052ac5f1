//! What requests select rows by, and where their texts are read.

use super::{Error, Service};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::Resource;
use hindsight_filter::{CostBudget, Filter, FilterError, Language, Selection};
use hindsight_runtime::low_priority;
use hindsight_storage as storage;

/// Longest texts that are read where their request arrives, in bytes.
const SHORT: usize = 1_000;

/// What a request selects rows by, as it comes from outside; all of it must hold. Blank texts
/// select every row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selected<'a> {
    /// The filter.
    pub filter: &'a str,
    /// The name of its language; empty means the one that is configured.
    pub language: &'a str,
    /// A Kubernetes label selector.
    pub labels: &'a str,
    /// A Kubernetes field selector.
    pub fields: &'a str,
}

/// The same, kept until there is time to read it.
#[derive(Debug)]
pub(super) struct Texts {
    filter: String,
    language: Language,
    labels: String,
    fields: String,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.filter.len() + self.labels.len() + self.fields.len()
    }

    /// Reads them as what selects rows of `resource`, at the expense of `budget`.
    pub(super) fn filter(
        &self,
        resource: Resource,
        budget: &mut CostBudget,
    ) -> Result<Filter, Error> {
        let selection = Selection {
            filter: &self.filter,
            language: self.language,
            labels: &self.labels,
            fields: &self.fields,
        };
        Ok(Filter::select_within(&selection, resource, budget)?)
    }
}

impl Service {
    pub(super) fn texts(&self, selected: &Selected<'_>) -> Result<Texts, Error> {
        let language = match selected.language.trim() {
            "" => self.language,
            name => name
                .parse::<Language>()
                .map_err(|e| Error::Invalid(e.to_string()))?,
        };
        Ok(Texts {
            filter: selected.filter.to_owned(),
            language,
            labels: selected.labels.to_owned(),
            fields: selected.fields.to_owned(),
        })
    }

    /// Reads what a request selects rows of `resource` by.
    pub(super) async fn filter(
        &self,
        quota: &QuotaGuard,
        selected: &Selected<'_>,
        resource: Resource,
    ) -> Result<Filter, Error> {
        let texts = self.texts(selected)?;
        let read = move |budget: &mut CostBudget| texts.filter(resource, budget);
        understood(quota, read, selected.len()).await
    }
}

impl Selected<'_> {
    fn len(&self) -> usize {
        self.filter.len() + self.labels.len() + self.fields.len()
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
