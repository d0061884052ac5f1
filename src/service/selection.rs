//! What requests select rows by.

use super::{Error, Service};
use crate::{
    filter::{Filter, Language, Selection},
    model::Resource,
};

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

impl Service {
    /// Reads what a request selects rows of `resource` by.
    pub(super) fn filter(
        &self,
        selected: &Selected<'_>,
        resource: Resource,
    ) -> Result<Filter, Error> {
        let language = match selected.language.trim() {
            "" => self.language,
            name => name
                .parse::<Language>()
                .map_err(|e| Error::Invalid(e.to_string()))?,
        };
        let selection = Selection {
            filter: selected.filter,
            language,
            labels: selected.labels,
            fields: selected.fields,
        };
        Ok(Filter::select(&selection, resource)?)
    }
}
