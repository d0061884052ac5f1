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
        ResultsServer, call::credentials, convert, deadline, selector::selector, status::status,
    },
    list::{label_keys, run_row},
};
use crate::service::{Error, RunWatch, WatchAsk};
use hindsight_access::auth::{Credentials, Verb};
use hindsight_filter::model::{ParentPattern, Resource, ResultPattern};

const METHOD: &str = "WatchRuns";
/// How long a stream lasts at most.
const LIFETIME: Duration = Duration::from_mins(30);
/// How often it is asked whether the caller may still see the runs.
const RECHECK: Duration = Duration::from_secs(10);
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
    let ResultPattern { parent, id } = convert::name("parent", request.parent.trim())?;
    let (by, grant) = server
        .grant(&metadata, Verb::List, Resource::Records, parent.clone())
        .await?;
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
    let runs = server.service.watch_runs(&by, &grant, id, ask).await?;
    let asked = deadline::asked(metadata.as_ref());
    let watching = Watching {
        credentials: credentials(metadata.as_ref()),
        server: server.clone(),
        parent,
        keys,
        runs,
        ends: began + LIFETIME,
        deadline: asked.map(|asked| began + asked.min(LIFETIME * 2)),
        recheck: began + RECHECK,
        silent_until: began + SILENCE,
        begins: after.is_none(),
        is_over: false,
    };
    Ok(Box::pin(stream::unfold(watching, Watching::step)))
}

/// A stream that is under way.
struct Watching {
    server: ResultsServer,
    credentials: Credentials,
    parent: ParentPattern,
    keys: Vec<String>,
    runs: RunWatch,
    ends: Instant,
    deadline: Option<Instant>,
    recheck: Instant,
    silent_until: Instant,
    /// Whether the first bookmark is still to be sent.
    begins: bool,
    is_over: bool,
}

/// What a stream waits for.
enum Came {
    Change(Result<Arc<ChangedRecord>, Error>),
    Recheck,
    Silence,
    End,
    Deadline,
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
        loop {
            let sent = match self.wait().await {
                Came::Recheck => {
                    self.recheck = Instant::now() + RECHECK;
                    match self.is_still_allowed().await {
                        Ok(()) => continue,
                        Err(error) => Err(self.failed(&error)),
                    }
                }
                Came::Change(Ok(change)) => Ok(self.changed(&change)),
                Came::Change(Err(error)) => Err(self.failed(&error)),
                Came::Silence => Ok(self.bookmark()),
                Came::End => {
                    self.is_over = true;
                    Ok(self.bookmark())
                }
                Came::Deadline => {
                    self.is_over = true;
                    Err(Status::deadline_exceeded("grpc-timeout has passed"))
                }
            };
            self.silent_until = Instant::now() + SILENCE;
            return Some((sent, self));
        }
    }

    async fn wait(&mut self) -> Came {
        let deadline = self.deadline;
        let deadline = async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.server.stopping.cancelled() => Came::End,
            () = sleep_until(self.ends) => Came::End,
            () = deadline => Came::Deadline,
            () = sleep_until(self.recheck) => Came::Recheck,
            change = self.runs.next() => Came::Change(change),
            () = sleep_until(self.silent_until) => Came::Silence,
        }
    }

    async fn is_still_allowed(&self) -> Result<(), Error> {
        let parent = self.parent.clone();
        let allowed = self
            .server
            .allow(&self.credentials, Verb::List, Resource::Records, parent);
        allowed.await?;
        Ok(())
    }

    fn failed(&mut self, error: &Error) -> Status {
        self.is_over = true;
        status(METHOD, error)
    }

    fn bookmark(&mut self) -> RunEvent {
        RunEvent {
            kind: Kind::Bookmark.into(),
            run: None,
            cursor: written(self.runs.position()),
        }
    }

    fn changed(&self, change: &ChangedRecord) -> RunEvent {
        let run = run_row(&self.server, change.columns.clone(), &self.keys);
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
