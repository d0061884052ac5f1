//! Messages of `hindsight.v1.Runs/WatchRuns`, to types and back, and when such a stream ends.

use std::{pin::Pin, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{Stream, stream};
use hindsight_proto::v1::{RunEvent, WatchRunsRequest, run_event::Kind};
use hindsight_storage::{ChangedRecord, FeedPosition};
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
/// How a cursor of this form begins.
const FORM: &str = "1.";

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
        cursor => Some(read(cursor)?),
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
        RunEvent {
            kind: Kind::Bookmark.into(),
            run: None,
            cursor: written(self.runs.position()),
        }
    }

    fn changed(&self, change: &ChangedRecord) -> RunEvent {
        let run = run_row(&self.server, change.columns.clone(), Labels::Of(&self.keys));
        RunEvent {
            kind: Kind::Changed.into(),
            run: Some(run),
            cursor: written(change.position),
        }
    }
}

/// A place as clients keep it.
fn written(place: FeedPosition) -> String {
    let numbers = [place.transaction, place.row];
    let bytes = numbers.map(i64::to_be_bytes).concat();
    FORM.to_owned() + &URL_SAFE_NO_PAD.encode(bytes)
}

/// The place of a cursor.
fn read(cursor: &str) -> Result<FeedPosition, Error> {
    let bytes = cursor.strip_prefix(FORM);
    let bytes = bytes.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let number = |half: &[u8]| half.try_into().map(i64::from_be_bytes).ok();
    let place = bytes.and_then(|bytes| {
        let (transaction, row) = bytes.split_at(8);
        let (transaction, row) = (number(transaction)?, number(row)?);
        (transaction >= 0 && row >= 0).then_some(FeedPosition { transaction, row })
    });
    place.ok_or_else(|| {
        Error::Invalid(
            "cursor: is not one of an event of WatchRuns; list, and follow anew".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_place_it_was_made_of() {
        for (transaction, row) in [(0, 0), (7, i64::MAX), (i64::MAX, 1)] {
            let place = FeedPosition { transaction, row };
            assert_eq!(read(&written(place)).unwrap(), place);
        }
        let negative = FORM.to_owned() + &URL_SAFE_NO_PAD.encode([0xff; 16]);
        for odd in [
            "1",
            "1.",
            "2.AAAA",
            "1.AAAA",
            "1.AAAAAAAAAAAAAAAAAAAAAA==",
            "é",
            &negative,
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
