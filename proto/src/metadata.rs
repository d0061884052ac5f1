//! Names in the metadata of calls; over REST they are headers.

/// Name of the request, in both directions.
pub const REQUEST_ID: &str = "x-request-id";

/// Beginning of the names that say for whom the caller acts.
pub const IMPERSONATE: &str = "impersonate-";

/// Language of the filter, if it is not that of the server's configuration.
pub const FILTER_LANGUAGE: &str = "hindsight-filter-language";

/// Label selector, beside the filter.
pub const LABEL_SELECTOR: &str = "hindsight-label-selector";

/// Field selector, beside the filter.
pub const FIELD_SELECTOR: &str = "hindsight-field-selector";

/// Which records lists look at: [`DATABASE`] leaves out those in files of the archive.
pub const TIER: &str = "hindsight-tier";

/// Value of [`TIER`].
pub const DATABASE: &str = "database";

/// Warning of a reply, for what its caller should know beside it; it may be there several times.
pub const WARNING: &str = "hindsight-warning";
