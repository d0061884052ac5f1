//! Retention, of a server and of a command.

use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{assembly, error::Error, live, objects::object_backend};
use crate::{
    config::Config,
    query::Tokens,
    retention::{Retention, Source},
    service::Service,
};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::resolve::Opened;

/// How long a delete that is under way may keep a server that is done.
const LAST_DELETE: Duration = Duration::from_secs(10);
/// In whose name a server deletes.
const CALLER: &str = "hindsight:retention";

/// The policies that are configured, if there are.
pub(super) fn retention(
    config: &Config,
    service: &Service,
    opened: &Opened,
    clock: &Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<Option<Retention>, Error> {
    let Some(path) = &config.retention_file else {
        return Ok(None);
    };
    let source = Source {
        service: service.clone(),
        store: Arc::clone(&opened.store),
        index: Arc::clone(&opened.index),
        archive: opened.archive.clone(),
        maintenance: Arc::clone(&opened.maintenance),
        clock: Arc::clone(clock),
    };
    let retention = Retention::load(path, source, registry).map_err(Error::Retention)?;
    Ok(Some(retention.on_behalf_of(CALLER)))
}

/// Passes from now on; what is returned is over once that has ended after `stopping`.
pub(super) fn passing(
    retention: Option<Retention>,
    stopping: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let passing =
        retention.map(|it| AbortOnDropHandle::new(tokio::spawn(it.run(stopping.clone()))));
    async move {
        if let Some(passing) = passing
            && tokio::time::timeout(LAST_DELETE, passing).await.is_err()
        {
            tracing::warn!("a pass of retention was cut off; the next one goes on");
        }
    }
}

/// The policies of a configuration over its database, and what closes that; none if no file has any. It fails if
/// the file, the database or the audit log cannot be used.
pub async fn retention_of(
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<Option<(Retention, Opened)>, Error> {
    let unusable = |source| Error::Store {
        db: config.db.to_string(),
        source,
    };
    let mut registry = Registry::default();
    let audit = live::audit(config, &mut registry).map_err(Error::Audit)?;
    let objects = object_backend(config).map_err(unusable)?;
    let opened = assembly::store(config, objects).await.map_err(unusable)?;
    // No page is read of lists that have tokens.
    let engine = assembly::engine(config, Arc::clone(&opened.store), Tokens::new(&[]));
    let service = assembly::service(config, &opened, engine, &clock, &mut registry)?;
    let service = service.with_audit(audit);
    let retention = retention(config, &service, &opened, &clock, &mut registry)?;
    Ok(retention.map(|retention| (retention, opened)))
}
