//! The object store that the configuration names.

use std::sync::Arc;

use crate::config::Config;
use hindsight_storage as storage;
use hindsight_storage::objects::{Depot, Settings};

/// The object store for big payloads, if one is configured.
///
/// # Errors
/// [`storage::Error::Unfit`] if it cannot be used.
pub fn depot(config: &Config) -> Result<Option<Arc<Depot>>, storage::Error> {
    let url = config.objects_url.as_ref().map(|url| url.as_str());
    url.map(|url| depot_at(config, url)).transpose()
}

/// The same at another place.
///
/// # Errors
/// [`storage::Error::Unfit`] if it cannot be used.
pub fn depot_at(config: &Config, url: &str) -> Result<Arc<Depot>, storage::Error> {
    Depot::open(&Settings {
        url: url.to_owned(),
        above: config.objects_above.as_usize(),
        keep: config.objects_keep.get(),
        options: config.cloud(),
    })
}
