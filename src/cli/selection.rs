//! Which rows a command is about: a filter, and selectors beside it.

use clap::Args;
use tonic::metadata::AsciiMetadataValue;

use super::{caret::wrong_filter, failure::Failure};
use hindsight_filter::model::Resource;
use hindsight_filter::{Filter, run_filter};
use hindsight_proto::metadata::{FIELD_SELECTOR, FILTER_LANGUAGE, LABEL_SELECTOR};

/// Which rows a command is about, by filter and selectors.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// CEL expression that rows must match
    #[arg(
        short,
        long,
        value_name = "CEL",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) filter: String,

    /// Labels that records must have, as for kubectl: `app=shop,env in (a,b),!keep`
    #[arg(
        short = 'l',
        long,
        value_name = "LABELS",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) selector: String,

    /// Fields that rows must have: `metadata.name=build,status.phase!=Failed`
    #[arg(
        long,
        value_name = "FIELDS",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) field_selector: String,
}

impl Selection {
    /// The request with the selectors beside it. Filters are in CEL here, whatever the server
    /// is configured for.
    pub(super) fn request<T>(&self, message: T) -> Result<tonic::Request<T>, Failure> {
        let mut request = tonic::Request::new(message);
        let beside = [
            (FILTER_LANGUAGE, "cel", "--filter"),
            (LABEL_SELECTOR, &self.selector, "--selector"),
            (FIELD_SELECTOR, &self.field_selector, "--field-selector"),
        ];
        for (key, text, flag) in beside {
            if text.trim().is_empty() {
                continue;
            }
            let text = AsciiMetadataValue::try_from(text.as_bytes()).map_err(|_control| {
                Failure::usage(format!("{flag} contains a control character"))
            })?;
            request.metadata_mut().insert(key, text);
        }
        Ok(request)
    }

    /// The filter as it is sent: runs are the records of the kinds that are runs.
    ///
    /// It is checked before it is wrapped, so that errors point at what was typed, and nothing
    /// typed can reach out of the brackets.
    pub(super) fn record_filter(&self, only_runs: bool) -> Result<String, Failure> {
        if !only_runs {
            return Ok(self.filter.clone());
        }
        Filter::compile(&self.filter, Resource::Records)
            .map_err(|error| wrong_filter("--filter ", &self.filter, &error))?;
        let types = run_filter();
        Ok(if self.filter.trim().is_empty() {
            types
        } else {
            format!("({}\n) && {types}", self.filter)
        })
    }
}
