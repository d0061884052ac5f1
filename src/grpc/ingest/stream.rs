//! One stream: what is taken, what is stored together, and how it ends.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use hindsight_proto::{
    Message as _,
    v1::{UpsertOutcome, UpsertRequest, UpsertResponse},
};
use tokio::{sync::mpsc, task::JoinSet};
use tonic::{Status, Streaming};

use super::{
    ResultsServer,
    batch::{self, Taken},
};
use crate::grpc::transport::of_stream;
use hindsight_access::auth::Credentials;
use hindsight_access::budget::Arrival;

/// Most requests that are stored together.
const MOST: usize = 500;
/// Bytes after which nothing more joins them.
const HEAVY: usize = 8 << 20;
/// How many such batches one stream has under way: one is made ready while another is committed.
const BATCHES: usize = 2;
/// How many requests of one stream wait to be stored.
const WAITING: usize = 1000;
/// What a request takes beside its message.
const OVERHEAD: usize = 1 << 10;
/// How long answers wait for a caller that does not read them.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves one stream until it ends.
pub(super) async fn run(
    server: ResultsServer,
    caller: Arc<Credentials>,
    arrival: Arrival,
    requests: Streaming<UpsertRequest>,
    answers: mpsc::Sender<Result<UpsertResponse, Status>>,
) {
    let (taken, arrived) = mpsc::channel(WAITING);
    let taking = tokio::spawn(take(server.clone(), arrival, requests, taken));
    let store = Storing {
        server,
        caller,
        arrived,
        waiting: VecDeque::new(),
        busy: HashSet::new(),
        batches: JoinSet::new(),
    };
    let is_heard = store.run(&answers).await;
    if !is_heard {
        taking.abort();
        return;
    }
    if let Ok(Err(end)) = taking.await
        && answers.send(Err(end)).await.is_err()
    {
        tracing::debug!("the client left before the end of the stream");
    }
}

/// Takes requests while their caller may have more under way; says why it stopped, if not because the caller
/// has no more.
async fn take(
    server: ResultsServer,
    arrival: Arrival,
    mut requests: Streaming<UpsertRequest>,
    taken: mpsc::Sender<Taken>,
) -> Result<(), Status> {
    let stopping = server.stopping.clone();
    let taking = async {
        while let Some(request) = requests.message().await.map_err(of_stream)? {
            let room = arrival.of_message();
            let ongoing = server.metrics.start(batch::METHOD);
            let quota = server.budgets.enter_in_turn(arrival.caller()).await;
            let request = Taken {
                bytes: OVERHEAD + request.encoded_len(),
                request,
                ongoing,
                cost: (room, quota),
            };
            if taken.send(request).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = taking => ended,
        () = stopping.cancelled() => Err(Status::unavailable(
            "the server is stopping; send again what was not answered",
        )),
    }
}

/// One stream: requests that wait, records being stored and batches under way.
struct Storing {
    server: ResultsServer,
    caller: Arc<Credentials>,
    arrived: mpsc::Receiver<Taken>,
    waiting: VecDeque<Taken>,
    /// The names of records that are being stored. A further state of one waits.
    busy: HashSet<String>,
    batches: JoinSet<(Vec<String>, Vec<UpsertOutcome>)>,
}

impl Storing {
    /// Stores and answers until there is no more; says whether the caller still listens.
    async fn run(mut self, answers: &mpsc::Sender<Result<UpsertResponse, Status>>) -> bool {
        let (mut is_open, mut is_heard) = (true, true);
        while is_heard && (is_open || !self.batches.is_empty() || !self.waiting.is_empty()) {
            tokio::select! {
                Some(done) = self.batches.join_next(), if !self.batches.is_empty() => {
                    let (names, outcomes) = done.expect("storing does not panic");
                    for name in names {
                        self.busy.remove(&name);
                    }
                    let answer = answers.send(Ok(UpsertResponse { outcomes }));
                    is_heard = matches!(tokio::time::timeout(PATIENCE, answer).await, Ok(Ok(())));
                }
                request = self.arrived.recv(), if is_open && self.waiting.len() < WAITING => {
                    match request {
                        Some(request) => self.waiting.push_back(request),
                        None => is_open = false,
                    }
                }
            }
            while self.waiting.len() < WAITING
                && let Ok(request) = self.arrived.try_recv()
            {
                self.waiting.push_back(request);
            }
            while self.batches.len() < BATCHES && self.begin() {}
        }
        // What was begun is finished even after the caller is gone.
        while self.batches.join_next().await.is_some() {}
        is_heard
    }

    /// Begins to store what waits; false if there is nothing that could be begun.
    fn begin(&mut self) -> bool {
        let (mut batch, mut names, mut bytes) = (Vec::new(), Vec::new(), 0);
        while batch.len() < MOST
            && bytes < HEAVY
            && let Some(next) = self.waiting.front()
            && !self.busy.contains(next.name())
            && let Some(next) = self.waiting.pop_front()
        {
            bytes += next.bytes;
            self.busy.insert(next.name().to_owned());
            names.push(next.name().to_owned());
            batch.push(next);
        }
        if batch.is_empty() {
            return false;
        }
        let (server, caller) = (self.server.clone(), Arc::clone(&self.caller));
        self.batches
            .spawn(async move { (names, batch::store(&server, &caller, batch).await) });
        true
    }
}
