//! The stream of `UpdateLog`: one log, in parts.

use hindsight_proto::v1alpha2::{Log, LogSummary};
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};

use super::of;
use crate::grpc::{
    ResultsServer, call::credentials, convert, lifetime::RECHECK, status::status,
    transport::of_stream,
};
use crate::service::{Error, Upload};
use hindsight_access::auth::{Guarded, Verb};
use hindsight_access::budget::Arrival;
use hindsight_filter::model::LogName;

const METHOD: &str = "UpdateLog";

pub(super) async fn update_log(
    server: &ResultsServer,
    request: Request<Streaming<Log>>,
) -> Result<Response<LogSummary>, Status> {
    let (metadata, _, mut parts) = request.into_parts();
    let arrival =
        Arrival::current().ok_or_else(|| Status::internal("the stream was not authenticated"))?;
    let streaming = arrival.streams();
    let _streaming = streaming.map_err(|exceeded| status(METHOD, &exceeded))?;
    let ongoing = server.metrics.start(METHOD);
    let refused = |error: Error| status(METHOD, &error);
    let outcome = async {
        let mut upload: Option<Upload> = None;
        let mut asked = Instant::now();
        loop {
            let part = match next(server, &mut parts).await {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(broken) => {
                    if let Some(upload) = upload {
                        let why =
                            Error::Invalid(format!("the upload broke off: {}", broken.message()));
                        upload.failed(why).await;
                    }
                    return Err(broken);
                }
            };
            let _room = arrival.of_message();
            let under_way = match &mut upload {
                Some(upload) => upload,
                none => none.insert(
                    begin(server, &metadata, &part.name)
                        .await
                        .map_err(refused)?,
                ),
            };
            let outcome = async {
                same(under_way.name(), &part.name)?;
                if asked.elapsed() >= RECHECK {
                    let caller = credentials(metadata.as_ref());
                    let parent = of(under_way.name());
                    server
                        .allow(&caller, Verb::Update, Guarded::Logs, parent)
                        .await?;
                    asked = Instant::now();
                }
                under_way.add(part.data).await
            };
            let outcome = outcome.await;
            if let Err(error) = outcome {
                let error = match upload {
                    Some(upload) => upload.failed(error).await,
                    None => error,
                };
                return Err(refused(error));
            }
        }
        let upload = upload.ok_or_else(|| {
            refused(Error::Invalid(
                "the stream has no message; send one with the name of the log, and its bytes"
                    .to_owned(),
            ))
        })?;
        let (record, bytes) = upload.finish().await.map_err(refused)?;
        Ok(LogSummary {
            record: record.to_string(),
            bytes_received: bytes,
        })
    };
    let outcome = outcome.await;
    ongoing.finish(
        outcome
            .as_ref()
            .map_or_else(|status| status.code().into(), |_| 0),
    );
    outcome.map(Response::new)
}

async fn next(server: &ResultsServer, parts: &mut Streaming<Log>) -> Result<Option<Log>, Status> {
    tokio::select! {
        part = parts.message() => part.map_err(of_stream),
        () = server.stopping.cancelled() => Err(Status::unavailable(
            "the server is stopping; send the log again",
        )),
    }
}

async fn begin(
    server: &ResultsServer,
    metadata: &MetadataMap,
    name: &str,
) -> Result<Upload, Error> {
    let name: LogName = convert::name("name", name)?;
    let (by, grant) = server.grant_change(metadata, Verb::Update, &name).await?;
    let begun = server.service.begin_upload(&by, &grant, name.clone()).await;
    server
        .service
        .audited(&by, Verb::Update, &name, begun)
        .await
}

/// A stream is about one log.
fn same(name: &LogName, given: &str) -> Result<(), Error> {
    if given.is_empty() || given == name.to_string() {
        return Ok(());
    }
    let shown: String = given.chars().take(200).collect();
    Err(Error::Invalid(format!(
        "name: `{shown}` is another log than `{name}`; a stream is about one log"
    )))
}
