//! Storing many runs over one stream: every caller waits for its own run, and whoever waits at
//! the same time shares a commit.
//!
//! A server that has no such stream gets plain calls; it is asked again after a while, because
//! servers are replaced by newer ones.

mod line;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use prost::Message as _;
use tokio::{
    sync::{Semaphore, oneshot},
    time::{Instant, timeout},
};
use tonic::{Code, Status};

use super::{
    Client, Effect, Stored,
    store::{as_record, says_something},
};
use hindsight_proto::{
    MAX_MESSAGE_BYTES,
    v1::{self, ResultState, UpsertOutcome, UpsertRequest, upsert_outcome},
};
use hindsight_run::Upload;
use hindsight_runtime::traces;

use line::{Entry, Line, broken};

/// Bytes of runs that may be sent and not answered; further callers wait.
const ROOM: usize = 64 << 20;
/// What a run takes beside its message.
const OVERHEAD: usize = 1 << 10;
/// How many requests wait for the connection to take them.
const QUEUE: usize = 64;
/// How long a server that knows no streams is not asked again.
const PLAIN: Duration = Duration::from_secs(300);

/// A way to store many runs at once. Clones share one stream, which is opened when first used
/// and again after a loss.
#[derive(Debug, Clone)]
pub struct Batched {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    room: Semaphore,
    ids: AtomicU64,
    line: Mutex<Option<Line>>,
    /// Until when plain calls are made.
    plain: Mutex<Option<Instant>>,
}

impl Batched {
    pub(super) fn new(client: Client) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                room: Semaphore::new(ROOM),
                ids: AtomicU64::new(1),
                line: Mutex::new(None),
                plain: Mutex::new(None),
            }),
        }
    }

    /// Stores a run whose JSON is `value`, as [`Client::store`] does. Call it for many runs at
    /// once; states of one run must be stored one after the other.
    ///
    /// A caller that stops waiting does not stop the write.
    ///
    /// # Errors
    /// What the server answered, or how the stream ended; then the run may or may not be stored,
    /// and storing it again does no harm.
    pub async fn store(&self, upload: &Upload, value: impl Into<Bytes>) -> Result<Stored, Status> {
        self.upsert(upload, value.into(), false).await
    }

    /// As [`Batched::store`], for a run that is probably there.
    ///
    /// # Errors
    /// As [`Batched::store`].
    pub async fn store_again(
        &self,
        upload: &Upload,
        value: impl Into<Bytes>,
    ) -> Result<Stored, Status> {
        self.upsert(upload, value.into(), true).await
    }

    async fn upsert(
        &self,
        upload: &Upload,
        value: Bytes,
        probably_stored: bool,
    ) -> Result<Stored, Status> {
        let inner = &self.inner;
        let request = UpsertRequest {
            id: inner.ids.fetch_add(1, Ordering::Relaxed),
            record: Some(as_record(
                &upload.grouping.record,
                &upload.data_type,
                value.clone(),
            )),
            result: says_something(upload).then(|| ResultState {
                annotations: upload.annotations.clone(),
                summary: upload.summary.clone(),
            }),
            probably_stored,
            traceparent: traces::current().unwrap_or_default(),
        };
        let bytes = request.encoded_len();
        if inner.is_plain() || bytes > MAX_MESSAGE_BYTES {
            return self.alone(upload, &value, probably_stored).await;
        }
        let share = u32::try_from((OVERHEAD + bytes).min(ROOM)).unwrap_or(u32::MAX);
        let asking = async {
            let room = inner.room.acquire_many(share).await;
            let _room = room.expect("the room is never closed");
            inner.ask(request).await
        };
        let answer = timeout(inner.client.deadline, asking).await;
        match answer.unwrap_or_else(|_elapsed| Err(Status::deadline_exceeded("no answer in time")))
        {
            Ok(outcome) => stored(outcome),
            Err(status) if status.code() == Code::Unimplemented => {
                inner.be_plain();
                self.alone(upload, &value, probably_stored).await
            }
            // One of those that were under way was too large for the server; which, shows now.
            Err(status) if matches!(status.code(), Code::ResourceExhausted | Code::OutOfRange) => {
                self.alone(upload, &value, probably_stored).await
            }
            Err(status) => Err(status),
        }
    }

    async fn alone(
        &self,
        upload: &Upload,
        value: &Bytes,
        probably_stored: bool,
    ) -> Result<Stored, Status> {
        let client = &self.inner.client;
        if probably_stored {
            client.store_again(upload, value).await
        } else {
            client.store(upload, value).await
        }
    }
}

impl Inner {
    fn is_plain(&self) -> bool {
        let until = *self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn be_plain(&self) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PLAIN);
    }

    /// Sends a request and waits for its answer.
    async fn ask(&self, request: UpsertRequest) -> Result<UpsertOutcome, Status> {
        let (answer, answered) = oneshot::channel();
        let id = request.id;
        let line = self.line(id, answer);
        let _entry = Entry {
            id,
            pending: &line.pending,
        };
        // If the stream has ended, whoever ended it says why.
        drop(line.requests.send(request).await);
        answered.await.unwrap_or_else(|_dropped| Err(broken()))
    }

    /// The stream, a new one if there is none, on which `answer` is waited for.
    fn line(&self, id: u64, answer: oneshot::Sender<Result<UpsertOutcome, Status>>) -> Line {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = Some(answer);
        if let Some(line) = &*line
            && line.pending.add(id, &mut answer)
        {
            return line.clone();
        }
        let new = Line::open(self.client.ingest.clone());
        new.pending.add(id, &mut answer);
        line.insert(new).clone()
    }
}

fn stored(outcome: UpsertOutcome) -> Result<Stored, Status> {
    match outcome.outcome {
        Some(upsert_outcome::Outcome::Stored(stored)) => Ok(Stored {
            result: effect(stored.result())?,
            record: effect(stored.record())?,
        }),
        Some(upsert_outcome::Outcome::Refused(refused)) => {
            Err(Status::new(Code::from_i32(refused.code), refused.message))
        }
        None => Err(Status::internal(
            "the server gave an answer without outcome",
        )),
    }
}

fn effect(effect: v1::Effect) -> Result<Effect, Status> {
    match effect {
        v1::Effect::Created => Ok(Effect::Created),
        v1::Effect::Updated => Ok(Effect::Updated),
        v1::Effect::Unchanged => Ok(Effect::Unchanged),
        v1::Effect::Unspecified => Err(Status::internal(
            "the server gave an effect that has no name",
        )),
    }
}
