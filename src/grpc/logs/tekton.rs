//! `Logs` of `tekton.results.v1alpha2` and `v1alpha3`: logs as whole texts, and the records that tell of them.

use std::pin::Pin;

use futures::{Stream, stream};
use hindsight_proto::{api::HttpBody, v1alpha2 as pb, v1alpha3};
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};

use super::{of, upload};
use crate::grpc::{
    ResultsServer, convert, fields, lifetime::Lifetime, selector::selector, status::status,
};
use crate::service::{Error, ListRequest, LogText, page_size};
use hindsight_access::auth::{Guarded, Verb};
use hindsight_filter::model::{LogName, ResultPattern};

const METHOD: &str = "GetLog";
/// What logs are; bytes come as they are stored, whatever they are.
const TEXT: &str = "text/plain; charset=utf-8";
/// What upstream calls the times that logs are ordered by.
const TIMES: [(&str, &str); 2] = [
    ("created_time", "create_time"),
    ("updated_time", "update_time"),
];

/// A log in parts.
pub(super) type Parts = Pin<Box<dyn Stream<Item = Result<HttpBody, Status>> + Send>>;

#[tonic::async_trait]
impl pb::logs_server::Logs for ResultsServer {
    type GetLogStream = Parts;

    async fn get_log(
        &self,
        request: Request<pb::GetLogRequest>,
    ) -> Result<Response<Parts>, Status> {
        self.answer(METHOD, request, |metadata, request| async move {
            get_log(self, metadata, &request.name).await
        })
        .await
    }

    async fn list_logs(
        &self,
        request: Request<pb::ListRecordsRequest>,
    ) -> Result<Response<pb::ListRecordsResponse>, Status> {
        self.answer("ListLogs", request, |metadata, request| async move {
            let ResultPattern { parent, id } = convert::name("parent", request.parent.trim())?;
            let (by, grant) = self
                .grant(&metadata, Verb::List, Guarded::Logs, parent)
                .await?;
            let list = ListRequest {
                selector: selector(&metadata, request.filter)?,
                order_by: order(&request.order_by),
                size: page_size(request.page_size)?,
                token: request.page_token,
                payloads: fields::want_payloads(&metadata),
            };
            let page = self.service.list_logs(&by, &grant, id, list).await?;
            let records = page.items.into_iter().map(|record| {
                let name = LogName::from(record.name.clone()).to_string();
                pb::Record {
                    name,
                    ..convert::from_record(record)
                }
            });
            Ok(pb::ListRecordsResponse {
                records: records.collect(),
                next_page_token: page.next,
            })
        })
        .await
    }

    async fn update_log(
        &self,
        request: Request<Streaming<pb::Log>>,
    ) -> Result<Response<pb::LogSummary>, Status> {
        upload::update_log(self, request).await
    }

    async fn delete_log(
        &self,
        request: Request<pb::DeleteLogRequest>,
    ) -> Result<Response<()>, Status> {
        self.answer("DeleteLog", request, |metadata, request| async move {
            let name: LogName = convert::name("name", &request.name)?;
            let (by, grant) = self.grant_change(&metadata, Verb::Delete, &name).await?;
            self.service.delete_log(&by, &grant, &name).await
        })
        .await
    }
}

#[tonic::async_trait]
impl v1alpha3::logs_server::Logs for ResultsServer {
    type GetLogStream = Parts;

    async fn get_log(
        &self,
        request: Request<v1alpha3::GetLogRequest>,
    ) -> Result<Response<Parts>, Status> {
        self.answer(METHOD, request, |metadata, request| async move {
            get_log(self, metadata, &request.name).await
        })
        .await
    }
}

async fn get_log(
    server: &ResultsServer,
    metadata: MetadataMap,
    name: &str,
) -> Result<Parts, Error> {
    let began = Instant::now();
    let name: LogName = convert::name("name", name)?;
    let (by, grant) = server
        .grant(&metadata, Verb::Get, Guarded::Logs, of(&name))
        .await?;
    let mut text = server.service.log_text(&by, &grant, &name).await?;
    // What cannot be read says so before the answer begins. An empty log is one empty part.
    let first = text.next().await?.unwrap_or_default();
    let access = (Verb::Get, Guarded::Logs, of(&name));
    let sending = Sending {
        lifetime: Lifetime::new(server, &metadata, access, began),
        text: Some(text),
        first: Some(first),
    };
    Ok(Box::pin(stream::unfold(sending, Sending::step)))
}

/// A log that is sent.
struct Sending {
    /// A slow reader may lose the right to read while parts are left.
    lifetime: Lifetime,
    /// None after it failed.
    text: Option<LogText>,
    first: Option<bytes::Bytes>,
}

impl Sending {
    async fn step(mut self) -> Option<(Result<HttpBody, Status>, Self)> {
        let part = |data| HttpBody {
            content_type: TEXT.to_owned(),
            data,
            extensions: Vec::new(),
        };
        if let Some(first) = self.first.take() {
            return Some((Ok(part(first)), self));
        }
        let (text, lifetime) = (self.text.as_mut()?, &mut self.lifetime);
        let next = async {
            lifetime.recheck().await?;
            text.next().await
        };
        match next.await {
            Ok(data) => Some((Ok(part(data?)), self)),
            Err(error) => {
                self.text = None;
                Some((Err(status(METHOD, &error)), self))
            }
        }
    }
}

/// An order of logs in our words.
fn order(asked: &str) -> String {
    let keys = asked.split(',').map(|key| {
        let (field, rest) = match key.trim().split_once(' ') {
            Some((field, rest)) => (field, rest),
            None => (key.trim(), ""),
        };
        let known = TIMES.iter().find(|(theirs, _)| *theirs == field);
        let field = known.map_or(field, |(_, ours)| *ours);
        format!("{field} {rest}").trim().to_owned()
    });
    keys.collect::<Vec<_>>().join(", ")
}
