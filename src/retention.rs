//! Retention: results whose runs ended long enough ago are deleted, by the policies of a file.
//!
//! A pass looks at all results, oldest first, and decides by what `policy` says; a plan is a pass that deletes
//! nothing. Nothing is remembered between passes: what is left of one that was cut off is found by the next.

mod file;
mod metrics;
mod pass;
mod policy;
mod schedule;
mod upstream;
mod version;

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use hindsight_access::{RequestContext, auth::Caller};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::low_priority::{self, Broken};
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::{Archive, ArchiveIndex, Maintenance, Store};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use file::{FileError, Rules};
pub use pass::{Deletion, Mode, Stage, Totals};
pub use upstream::converted;

use self::metrics::Metrics;
use crate::service::{self, Service};

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store did not answer, or refused.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// The thread that works at low priority ended before its work did.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl From<hindsight_storage::Error> for Error {
    fn from(error: hindsight_storage::Error) -> Self {
        Self::Service(error.into())
    }
}

/// What results are read from and deleted through.
#[derive(Debug, Clone)]
pub struct Source {
    /// Deletes, and writes that to the audit log.
    pub service: Service,
    /// Lists results and records.
    pub store: Arc<dyn Store>,
    /// Says which results are in which file of the archive.
    pub index: Arc<dyn ArchiveIndex>,
    /// The archive, if there is one.
    pub archive: Option<Archive>,
    /// Says how much a result takes, and whose turn it is.
    pub maintenance: Arc<dyn Maintenance>,
    /// The time from which ages count.
    pub clock: Arc<dyn Clock>,
}

/// Policies over a store.
#[derive(Debug, Clone)]
pub struct Retention {
    rules: Arc<Rules>,
    source: Source,
    metrics: Metrics,
    by: RequestContext,
}

impl Retention {
    /// Reads the file of policies. It fails if it cannot be used.
    pub fn load(path: &Path, source: Source, registry: &mut Registry) -> Result<Self, FileError> {
        Ok(Self::new(Rules::read(path)?, source, registry))
    }

    /// A retention with rules that were read already.
    pub fn new(rules: Rules, source: Source, registry: &mut Registry) -> Self {
        Self {
            rules: Arc::new(rules),
            source,
            metrics: Metrics::new(registry),
            by: RequestContext::default(),
        }
    }

    /// The same, whose deletes are this caller's in the audit log.
    #[must_use]
    pub fn on_behalf_of(self, name: impl Into<String>) -> Self {
        let caller = Caller {
            name: name.into(),
            by: None,
        };
        let by = RequestContext::of(Arc::new(caller));
        Self { by, ..self }
    }

    /// Looks at every result once, at low priority, and tells which are due, or were deleted. It ends early once
    /// `stop` is cancelled. It fails if the store cannot be read or written; what was told is done.
    pub async fn pass(
        &self,
        mode: Mode,
        told: mpsc::Sender<Deletion>,
        stop: CancellationToken,
    ) -> Result<Totals, Error> {
        let pass = pass::Pass::new(self.clone(), mode, told, stop);
        low_priority::run(Box::pin(pass.go())).await?
    }
}
