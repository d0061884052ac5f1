//! A stream of upserts, and who waits for an answer on it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use hindsight_proto::v1::{UpsertOutcome, UpsertRequest};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::QUEUE;
use crate::Ingest;

/// One stream, as long as it lasts.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) requests: mpsc::Sender<UpsertRequest>,
    pub(super) pending: Arc<Pending>,
}

type Waiting = HashMap<u64, oneshot::Sender<Result<UpsertOutcome, Status>>>;

/// Who waits for an answer; none once the stream has ended.
#[derive(Debug)]
pub(super) struct Pending(Mutex<Option<Waiting>>);

/// Forgets a request once its caller has gone.
pub(super) struct Entry<'p> {
    pub(super) id: u64,
    pub(super) pending: &'p Pending,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.pending.take(self.id);
    }
}

impl Line {
    pub(super) fn open(mut ingest: Ingest) -> Self {
        let (requests, sending) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending(Mutex::new(Some(Waiting::new()))));
        let waiting = Arc::clone(&pending);
        tokio::spawn(async move {
            let answering = async {
                let answers = ingest.upsert(ReceiverStream::new(sending)).await?;
                let mut answers = answers.into_inner();
                while let Some(answer) = answers.message().await? {
                    for outcome in answer.outcomes {
                        if let Some(caller) = waiting.take(outcome.id) {
                            // One that went away wants no answer.
                            drop(caller.send(Ok(outcome)));
                        }
                    }
                }
                Ok(())
            };
            let ended: Result<(), Status> = answering.await;
            waiting.end(&ended.err().unwrap_or_else(broken));
        });
        Self { requests, pending }
    }
}

impl Pending {
    /// Adds one who waits, unless the stream has ended.
    pub(super) fn add(
        &self,
        id: u64,
        answer: &mut Option<oneshot::Sender<Result<UpsertOutcome, Status>>>,
    ) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *waiting, answer.take()) {
            (Some(waiting), Some(answer)) => {
                waiting.insert(id, answer);
                true
            }
            (_, given) => {
                *answer = given;
                false
            }
        }
    }

    fn take(&self, id: u64) -> Option<oneshot::Sender<Result<UpsertOutcome, Status>>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.remove(&id)
    }

    /// Tells everybody how the stream ended.
    fn end(&self, status: &Status) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, caller) in waiting.take().into_iter().flatten() {
            drop(caller.send(Err(status.clone())));
        }
    }
}

pub(super) fn broken() -> Status {
    Status::unavailable("the stream ended before the answer")
}
