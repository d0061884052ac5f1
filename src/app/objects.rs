//! The object store that the configuration names.

use std::sync::Arc;

use crate::config::{Config, ObjectsUrl};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use hindsight_storage as storage;
use hindsight_storage::{
    objects::{Bucket, ForeignObjects, ObjectBackend, Settings},
    resolve::{Options, Schema},
    tekton::ForeignLogs,
};

/// The object store for big payloads, if one is configured.
///
/// # Errors
/// [`storage::Error::Incompatible`] if it cannot be used.
pub fn object_backend(config: &Config) -> Result<Option<Arc<ObjectBackend>>, storage::Error> {
    let url = config.objects_url.as_ref().map(|url| url.as_str());
    url.map(|url| object_backend_at(config, url)).transpose()
}

/// How commands open the database that is configured: with its buckets, and only if its schema is the current one.
///
/// # Errors
/// [`storage::Error::Incompatible`] if a bucket cannot be used.
pub fn command_options(config: &Config) -> Result<Options, storage::Error> {
    Ok(Options {
        schema: Schema::Require,
        depot: object_backend(config)?,
        archive: archive_bucket(config)?,
        ..Options::default()
    })
}

/// The files of the archive, if there is one. It fails with [`storage::Error::Incompatible`] if it cannot be used.
pub(super) fn archive_bucket(config: &Config) -> Result<Option<Arc<Bucket>>, storage::Error> {
    let open = |url: &ObjectsUrl| {
        Bucket::open(&Settings {
            url: url.as_str().to_owned(),
            above: 0,
            log_above: 0,
            keep: None,
            options: config.cloud(),
        })
    };
    config.archive_url.as_ref().map(open).transpose()
}

/// The same at another place.
///
/// # Errors
/// [`storage::Error::Incompatible`] if it cannot be used.
pub fn object_backend_at(config: &Config, url: &str) -> Result<Arc<ObjectBackend>, storage::Error> {
    ObjectBackend::open(&Settings {
        url: url.to_owned(),
        above: config.objects_above.as_usize(),
        log_above: config.objects_log_above.as_usize(),
        keep: config.objects_keep.get(),
        options: config.cloud(),
    })
}

/// Logs that Tekton Results wrote at another place, with what must not be stored of them. It fails if the place
/// cannot be used.
pub fn foreign_logs(config: &Config, url: &str) -> Result<ForeignLogs, storage::Error> {
    Ok(ForeignLogs {
        objects: ForeignObjects::open(url, &config.cloud())?,
        redaction: config.logs_redact.clone().unwrap_or_default().compiled(),
        now: SystemClock.now(),
    })
}
