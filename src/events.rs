//! Events: what becomes of runs, posted as CloudEvents to the receivers that the operator configured.
//!
//! Each receiver has a cursor in the feed of changes, which the database keeps and one server at a
//! time holds. It moves on behind what the receiver has acknowledged, so that every event is delivered
//! at least once, in order for each run, over restarts of servers and outages of receivers.

mod client;
mod delivery;
mod event;
mod metrics;
mod receivers;
mod sender;
mod told;
mod verdict;

use std::{path::Path, sync::Arc};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use receivers::FileError;

use self::{client::Client, event::Origin, metrics::Metrics, receivers::Receivers, sender::Sender};
use crate::service::{self, Service};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::{Maintenance, Store};

/// Why events cannot be sent as they are configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of receivers, or one that it names, cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A query is wrong.
    #[error("receiver `{receiver}`: query")]
    Query {
        /// The name of the receiver.
        receiver: String,
        /// What is wrong with it.
        #[source]
        source: service::Error,
    },
}

/// What events are made from, and where cursors are kept.
#[derive(Debug, Clone)]
pub struct Source {
    /// Tells of changes of runs.
    pub service: Service,
    /// Knows where the feed begins.
    pub store: Arc<dyn Store>,
    /// Keeps the cursor of each receiver.
    pub maintenance: Arc<dyn Maintenance>,
    /// The time of events that no run has.
    pub clock: Arc<dyn Clock>,
    /// The address of the web UI in links; without one there are no links.
    pub pages: Option<String>,
}

/// The senders of all receivers.
#[derive(Debug)]
pub struct Events(Vec<Sender>);

impl Events {
    /// Reads the file of receivers and what it names. It fails if any of them cannot be used.
    pub async fn load(path: &Path, source: Source, registry: &mut Registry) -> Result<Self, Error> {
        let file = Receivers::read(path)?;
        let metrics = Metrics::new(registry);
        let origin = Arc::new(Origin {
            source: file.source,
            pages: source.pages.clone(),
        });
        let mut senders = Vec::new();
        for receiver in file.receivers {
            let filter = source.service.filter_of_runs(&receiver.query).await;
            let filter = filter.map_err(|error| Error::Query {
                receiver: receiver.name.clone(),
                source: error,
            })?;
            let client = Client::new(&receiver)?;
            let metrics = metrics.of(&receiver.name);
            let origin = Arc::clone(&origin);
            let source = source.clone();
            senders.push(Sender::new(
                receiver, client, filter, source, origin, metrics,
            ));
        }
        Ok(Self(senders))
    }

    /// Sends until `stopping`, and then no longer than requests that are under way take.
    pub async fn run(self, stopping: CancellationToken) {
        let mut senders = JoinSet::new();
        for sender in self.0 {
            senders.spawn(sender.run(stopping.clone()));
        }
        senders.join_all().await;
    }
}
