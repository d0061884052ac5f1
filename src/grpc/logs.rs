//! Logs: `hindsight.v1.Logs`, and `Logs` of `tekton.results.v1alpha2` and `v1alpha3`.

mod append;
mod read;
mod tekton;
mod upload;

use hindsight_proto::v1::{self as pb, logs_server::Logs};
use hindsight_storage::{LogKey, StoredLog};
use jiff::Timestamp;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};

use super::{ResultsServer, call::credentials, convert, selector::selector};
use crate::service::{Error, LogHit, SearchAsk, page_size};
use hindsight_access::RequestContext;
use hindsight_access::auth::{self, Grant, Guarded, Verb};
use hindsight_filter::model::{LogName, ParentPattern, Resource, ResultPattern};

/// Lines of a page of a search where the request does not say.
const USUAL_PAGE: u32 = 100;
/// Most lines of one.
const MOST_PAGE: u32 = 1000;

#[tonic::async_trait]
impl Logs for ResultsServer {
    type ReadLogStream = read::Messages;

    async fn append_log(
        &self,
        request: Request<Streaming<pb::AppendLogRequest>>,
    ) -> Result<Response<pb::AppendLogResponse>, Status> {
        append::append_log(self, request).await
    }

    async fn describe_log(
        &self,
        request: Request<pb::DescribeLogRequest>,
    ) -> Result<Response<pb::LogDescription>, Status> {
        self.answer("DescribeLog", request, |metadata, request| async move {
            let name: LogName = convert::name("name", &request.name)?;
            let parent = of(&name);
            let (by, grant) = self
                .grant(&metadata, Verb::Get, Guarded::Logs, parent)
                .await?;
            let found = self
                .service
                .describe_log(&by, &grant, &name, request.only_stored);
            let found = found.await?;
            let containers = found.sources.into_iter().map(|log| pb::LogContainer {
                is_elsewhere: !found.is_stored,
                ..container(log)
            });
            Ok(pb::LogDescription {
                containers: containers.collect(),
                link: found.link.unwrap_or_default(),
            })
        })
        .await
    }

    async fn list_logs(
        &self,
        request: Request<pb::ListLogsRequest>,
    ) -> Result<Response<pb::ListLogsResponse>, Status> {
        self.answer("ListLogs", request, |metadata, request| async move {
            let ResultPattern { parent, id } = convert::name("parent", request.parent.trim())?;
            let size = page_size(request.page_size)?;
            let (by, grant) = self
                .grant(&metadata, Verb::List, Guarded::Logs, parent)
                .await?;
            let token = &request.page_token;
            let page = self
                .service
                .list_stored_logs(&by, &grant, id, size, token)
                .await?;
            Ok(pb::ListLogsResponse {
                containers: page.logs.into_iter().map(container).collect(),
                next_page_token: page.next,
            })
        })
        .await
    }

    async fn read_log(
        &self,
        request: Request<pb::ReadLogRequest>,
    ) -> Result<Response<Self::ReadLogStream>, Status> {
        self.answer("ReadLog", request, |metadata, request| async move {
            read::read_log(self, metadata, request).await
        })
        .await
    }

    async fn search_logs(
        &self,
        request: Request<pb::SearchLogsRequest>,
    ) -> Result<Response<pb::SearchLogsResponse>, Status> {
        self.answer("SearchLogs", request, |metadata, request| async move {
            let scope: ResultPattern = convert::name("parent", request.parent.trim())?;
            let size = match u32::try_from(request.page_size) {
                Ok(0) => USUAL_PAGE,
                Ok(size) if size <= MOST_PAGE => size,
                _ => {
                    return Err(Error::Invalid(format!(
                        "page_size of {} is out of range: want 1 to {MOST_PAGE}, or 0 for {USUAL_PAGE}",
                        request.page_size
                    )));
                }
            };
            let parent = || scope.parent.clone();
            let (by, logs) = self.grant(&metadata, Verb::Get, Guarded::Logs, parent()).await?;
            let records = self.may_list(&metadata, &by, parent()).await?;
            let ask = SearchAsk {
                selector: selector(&metadata, request.filter)?,
                pattern: request.pattern,
                regex: request.regex,
                ignore_case: request.ignore_case,
                size: size.try_into().unwrap_or(std::num::NonZeroU32::MIN),
                token: request.page_token,
            };
            let found = self.service.search_logs(&by, &[logs, records], scope.clone(), ask).await?;
            Ok(pb::SearchLogsResponse {
                matches: found.hits.into_iter().map(hit).collect(),
                next_page_token: found.next,
                scanned_bytes: i64::try_from(found.scanned).unwrap_or(i64::MAX),
            })
        })
        .await
    }
}

impl ResultsServer {
    /// Asks whether a caller who was admitted may list records, too.
    async fn may_list(
        &self,
        metadata: &MetadataMap,
        by: &RequestContext,
        parent: ParentPattern,
    ) -> Result<Grant, Error> {
        let place = format!("{parent}/results/-/records/-");
        let credentials = credentials(metadata.as_ref());
        let (list, records) = (Verb::List, Resource::Records);
        let allowed = self.allow(&credentials, list, records, parent).await;
        if let Err(why @ auth::Error::Denied { .. }) = &allowed {
            let why = Error::from(why.clone());
            let service = &self.service;
            service.audit_denied_read(by, list, &place, &why).await;
        }
        allowed.map_err(Error::from)
    }
}

/// The parent of a log.
fn of(name: &LogName) -> ParentPattern {
    ParentPattern::Exact(name.record().result().parent().clone())
}

fn source(source: hindsight_storage::LogSource) -> pb::LogSource {
    pb::LogSource {
        pod: source.pod,
        container: source.container,
        restart: source.restart,
    }
}

fn log_name(key: &LogKey) -> String {
    LogName::from(key.run.clone()).to_string()
}

fn time(us: i64) -> Option<prost_types::Timestamp> {
    Timestamp::from_microsecond(us).ok().map(convert::from_time)
}

fn container(log: StoredLog) -> pb::LogContainer {
    pb::LogContainer {
        name: log_name(&log.key),
        source: Some(source(log.key.source)),
        lines: log.lines,
        bytes: log.bytes,
        first_time: log.first_us.and_then(time),
        last_time: log.last_us.and_then(time),
        sealed: log.sha256.is_some(),
        sha256: log.sha256.unwrap_or_default(),
        holes: log.holes,
        is_elsewhere: false,
    }
}

fn hit(hit: LogHit) -> pb::LogMatch {
    let place = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
    pb::LogMatch {
        name: log_name(&hit.key),
        source: Some(source(hit.key.source)),
        line: hit.line,
        time: time(hit.time_us),
        match_start: place(hit.found.start),
        match_end: place(hit.found.end),
        text: hit.text,
    }
}
