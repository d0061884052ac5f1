//! How long a stream of answers goes on: until the server stops, until its longest time or the deadline of
//! its caller is over, and only while the caller may see what it tells.

use std::{pin::pin, time::Duration};

use tokio::time::{Instant, sleep_until};
use tonic::{Status, metadata::MetadataMap};

use super::{ResultsServer, call::credentials, deadline};
use crate::service::Error;
use hindsight_access::auth::{Credentials, Guarded, Verb};
use hindsight_filter::model::ParentPattern;

/// How long a stream lasts at most.
const LONGEST: Duration = Duration::from_mins(30);
/// How often it is asked whether the caller may still see what the stream tells, or write what it brings.
pub(super) const RECHECK: Duration = Duration::from_secs(10);

/// What ends one stream.
pub(super) struct Lifetime {
    server: ResultsServer,
    credentials: Credentials,
    /// What the caller has to be allowed.
    access: (Verb, Guarded, ParentPattern),
    ends: Instant,
    deadline: Option<Instant>,
    recheck: Instant,
}

/// Why a stream is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The server stops.
    Stopping,
    /// It lasted as long as a stream may.
    Ended,
    /// It passed the deadline of its caller.
    Deadline,
    /// The caller may not see it any more, or there is nothing to tell it from.
    Failed(Error),
}

impl Over {
    /// What the deadline of a caller is on the wire.
    pub(super) fn deadline() -> Status {
        Status::deadline_exceeded("grpc-timeout has passed")
    }
}

impl Lifetime {
    /// That of a stream which was asked for with `metadata` at the time `began`.
    pub(super) fn new(
        server: &ResultsServer,
        metadata: &MetadataMap,
        access: (Verb, Guarded, ParentPattern),
        began: Instant,
    ) -> Self {
        let asked = deadline::asked(metadata.as_ref());
        Self {
            server: server.clone(),
            credentials: credentials(metadata.as_ref()),
            access,
            ends: began + LONGEST,
            deadline: asked.map(|asked| began + asked.min(LONGEST * 2)),
            recheck: began + RECHECK,
        }
    }

    /// What `next` gives, unless the stream is over before that. While it is asked about the caller, `next`
    /// waits, and goes on afterwards where it was.
    pub(super) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, Over> {
        let mut next = pin!(next);
        loop {
            let deadline = self.deadline;
            let deadline = async move {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.server.stopping.cancelled() => return Err(Over::Stopping),
                () = sleep_until(self.ends) => return Err(Over::Ended),
                () = deadline => return Err(Over::Deadline),
                () = sleep_until(self.recheck) => {}
                given = &mut next => return Ok(given),
            }
            self.recheck().await.map_err(Over::Failed)?;
        }
    }

    /// Asks whether the caller may still see what the stream tells, if that was asked long ago.
    pub(super) async fn recheck(&mut self) -> Result<(), Error> {
        if Instant::now() < self.recheck {
            return Ok(());
        }
        self.recheck = Instant::now() + RECHECK;
        let (verb, what, parent) = self.access.clone();
        let allowed = self.server.allow(&self.credentials, verb, what, parent);
        Ok(allowed.await.map(drop)?)
    }
}
