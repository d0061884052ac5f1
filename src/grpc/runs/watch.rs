//! Messages of `hindsight.v1.Runs/WatchRuns`, to types and back, and when such a stream ends.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, stream};
use hindsight_proto::v1::{RunEvent, WatchRunsRequest, run_event::Kind};
use hindsight_storage::ChangedRecord;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, metadata::MetadataMap};

use super::{
    super::{
        ResultsServer,
        lifetime::{Lifetime, Over},
        selector::selector,
        status::status,
    },
    list::{Labels, label_keys, run_row},
};
use crate::service::{Error, RunWatch, WatchAsk};
use hindsight_access::auth::Verb;
use hindsight_filter::model::Resource;

const METHOD: &str = "WatchRuns";
/// How long nothing is sent.
const SILENCE: Duration = Duration::from_secs(30);

/// The events of one call.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<RunEvent, Status>> + Send>>;

pub(super) async fn watch_runs(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: WatchRunsRequest,
) -> Result<Events, Error> {
    let began = Instant::now();
    let (by, grant, of) = server.grant_list(&metadata, &request.parent).await?;
    let keys = label_keys("label_keys", request.label_keys)?;
    let after = match request.cursor.trim() {
        "" => None,
        cursor => Some(server.service.place_of(cursor)?),
    };
    let ask = WatchAsk {
        selector: selector(&metadata, request.filter)?,
        query: request.query,
        time_zone: request.time_zone,
        after,
    };
    let runs = server.service.watch_runs(&by, &grant, of.id, ask).await?;
    let access = (Verb::List, Resource::Records.into(), of.parent);
    let watching = Watching {
        lifetime: Lifetime::new(server, &metadata, access, began),
        server: server.clone(),
        keys,
        runs,
        silent_until: began + SILENCE,
        begins: after.is_none(),
        is_over: false,
    };
    Ok(Box::pin(stream::unfold(watching, Watching::step)))
}

/// A stream that is under way.
struct Watching {
    lifetime: Lifetime,
    server: ResultsServer,
    keys: Vec<String>,
    runs: RunWatch,
    silent_until: Instant,
    /// Whether the first bookmark is still to be sent.
    begins: bool,
    is_over: bool,
}

impl Watching {
    /// The next event, and the stream after it.
    async fn step(mut self) -> Option<(Result<RunEvent, Status>, Self)> {
        if self.is_over {
            return None;
        }
        if std::mem::take(&mut self.begins) {
            return Some((Ok(self.bookmark()), self));
        }
        let sent = match self.wait().await {
            Ok(Some(change)) => Ok(self.changed(&change)),
            Ok(None) => Ok(self.bookmark()),
            Err(Over::Stopping | Over::Ended) => {
                self.is_over = true;
                Ok(self.bookmark())
            }
            Err(Over::Deadline) => {
                self.is_over = true;
                Err(Over::deadline())
            }
            Err(Over::Failed(error)) => {
                self.is_over = true;
                Err(status(METHOD, &error))
            }
        };
        self.silent_until = Instant::now() + SILENCE;
        Some((sent, self))
    }

    /// What comes next, or that nothing did for a while.
    async fn wait(&mut self) -> Result<Option<Arc<ChangedRecord>>, Over> {
        let (runs, silent_until) = (&mut self.runs, self.silent_until);
        let next = async {
            tokio::select! {
                biased;
                change = runs.next() => change.map(Some),
                () = sleep_until(silent_until) => Ok(None),
            }
        };
        self.lifetime.wait(next).await?.map_err(Over::Failed)
    }

    fn bookmark(&mut self) -> RunEvent {
        let place = self.runs.position();
        RunEvent {
            kind: Kind::Bookmark.into(),
            run: None,
            cursor: self.server.service.cursor(place),
        }
    }

    fn changed(&self, change: &ChangedRecord) -> RunEvent {
        let run = run_row(&self.server, change.columns.clone(), Labels::Of(&self.keys));
        RunEvent {
            kind: Kind::Changed.into(),
            run: Some(run),
            cursor: self.server.service.cursor(change.position),
        }
    }
}
