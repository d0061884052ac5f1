//! The systems that the configuration names for logs that are not stored.

use std::sync::Arc;

use hindsight_runtime::error::report;
use hindsight_storage::objects::ForeignObjects;

use crate::{
    config::{Config, ObjectFormat},
    homes::{self, Loki, LokiSettings, ObjectLogs},
    service::{LogHome, LogHomes},
};

/// What is asked for logs, the objects first. It fails with what is wrong with a setting.
pub(super) fn homes(config: &Config) -> Result<LogHomes, String> {
    let mut all: Vec<Arc<dyn LogHome>> = Vec::new();
    if let Some(url) = &config.logs_objects_url {
        let objects = ForeignObjects::open(url.as_str(), &config.cloud());
        let objects = objects.map_err(|error| report(&error))?;
        let format = match config.logs_objects_format {
            ObjectFormat::Text => homes::ObjectFormat::Text,
            ObjectFormat::Json => homes::ObjectFormat::Json,
        };
        let paths = config.logs_objects_paths.0.clone();
        all.push(Arc::new(ObjectLogs::new(objects, paths, format)));
    }
    if let Some(url) = &config.logs_loki_url {
        let settings = LokiSettings {
            url: url.as_str().to_owned(),
            query: config.logs_loki_query.clone().unwrap_or_default().0,
            delay: config.logs_loki_delay.get(),
            token_file: config.logs_loki_token_file.clone(),
            ca: config.logs_loki_ca.clone(),
            tenant: config.logs_loki_tenant.clone(),
        };
        all.push(Arc::new(Loki::new(settings)?));
    }
    let timeout = config.logs_home_timeout.get();
    let most = config.logs_home_bytes.as_usize();
    Ok(LogHomes::new(all, timeout, most))
}
