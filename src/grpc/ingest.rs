//! `hindsight.v1.Ingest`: many records over one stream, each answered when it is durable.
//!
//! Two tasks a stream: one takes requests, as many as there is room for; the other stores what
//! has arrived, while more arrives. Nothing waits for a batch to fill: a lone request is stored
//! at once, and the more callers are in a hurry, the more share a commit.
//!
//! A caller that does not read its answers stops being read itself, and is let go after a while.

mod batch;
mod stream;

use std::sync::Arc;

use hindsight_proto::v1::{UpsertRequest, UpsertResponse, ingest_server::Ingest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{ResultsServer, call::credentials, status::status};
use hindsight_access::budget::Arrival;

/// How many messages with answers may wait for the caller to read them.
const ANSWERS: usize = 8;

#[tonic::async_trait]
impl Ingest for ResultsServer {
    type UpsertStream = ReceiverStream<Result<UpsertResponse, Status>>;

    async fn upsert(
        &self,
        request: Request<Streaming<UpsertRequest>>,
    ) -> Result<Response<Self::UpsertStream>, Status> {
        let (metadata, _, requests) = request.into_parts();
        let arrival = Arrival::current()
            .ok_or_else(|| Status::internal("the stream was not authenticated"))?;
        let streaming = arrival.streams();
        let streaming = streaming.map_err(|exceeded| status(batch::METHOD, &exceeded))?;
        let (answers, answered) = mpsc::channel(ANSWERS);
        let caller = Arc::new(credentials(metadata.as_ref()));
        let stored = stream::run(self.clone(), caller, arrival, requests, answers);
        tokio::spawn(async move {
            stored.await;
            drop(streaming);
        });
        Ok(Response::new(ReceiverStream::new(answered)))
    }
}
