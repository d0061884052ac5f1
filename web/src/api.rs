//! Calls of the gRPC services, with the credentials of the caller of a page. They are authorized,
//! limited and counted like calls that come in at the port.

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use hindsight_proto::MAX_MESSAGE_BYTES;
use hindsight_proto::metadata::{IMPERSONATE, REQUEST_ID};
use hindsight_proto::v1::logs_client::LogsClient;
use hindsight_proto::v1::queries_client::QueriesClient;
use hindsight_proto::v1::runs_client::RunsClient;
use hindsight_proto::v1::{
    AggregateRequest, AggregateResponse, DescribeLogRequest, DiffRunsRequest,
    ExplainFailureRequest, FailureExplanation, GetRunTreeRequest, ListFlakyRequest,
    ListFlakyResponse, ListRegressionsRequest, ListRegressionsResponse, ListRunsRequest,
    ListRunsResponse, LogDescription, ReadLogRequest, ReadLogResponse, RunDiff, RunTree,
    SearchLogsRequest, SearchLogsResponse, SuggestRequest, SuggestResponse,
};
use hindsight_proto::v1alpha2::logs_client::LogsClient as TextsClient;
use hindsight_proto::v1alpha2::results_client::ResultsClient;
use hindsight_proto::v1alpha2::{GetLogRequest, GetRecordRequest, Record};
use jiff::Timestamp;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

/// Changes that an explanation of a failure has at most; many are one change in several places.
const CHANGES: i32 = 200;

/// How long a page waits for a call, or for the beginning of its stream.
const DEADLINE: Duration = Duration::from_secs(30);

/// Says whose requests are.
pub trait Callers: Debug + Send + Sync + 'static {
    /// The name of the caller that these headers show, from this address. Fails if there is none, as
    /// calls with the same metadata do.
    fn identify<'a>(
        &'a self,
        metadata: &'a HeaderMap,
        source: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<String, Status>>;
}

/// A sign-in that was begun at a provider. All but its address stays in the browser that began.
#[derive(Clone)]
pub struct Begun {
    /// Where the browser goes.
    pub location: String,
    /// What the provider sends back with its answer.
    pub state: String,
    /// What the provider puts into its token.
    pub nonce: String,
    /// What shows that a code is redeemed by the one who began.
    pub verifier: String,
}

impl Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

/// What a provider answers by the browser; empty where it says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// What is redeemed for a token.
    pub code: &'a str,
    /// The issuer that answers.
    pub issuer: &'a str,
    /// Why there is no code.
    pub error: &'a str,
    /// The same in words.
    pub description: &'a str,
}

/// Signs callers in elsewhere. Failures are in words for the person who tries.
pub trait SignIn: Debug + Send + Sync + 'static {
    /// The host at which callers sign in.
    fn host(&self) -> &str;

    /// Begins a sign-in that ends at the address `back`.
    fn begin<'a>(&'a self, back: &'a str) -> BoxFuture<'a, Result<Begun, Status>>;

    /// A bearer token for the answer to a sign-in that was begun with this nonce, this verifier and
    /// this address, and the time at which the token ends.
    fn finish<'a>(
        &'a self,
        secrets: (&'a str, &'a str),
        back: &'a str,
        answer: Returned<'a>,
    ) -> BoxFuture<'a, Result<(String, Timestamp), Status>>;

    /// Where a browser ends its session there, and comes back to `back`; none if it cannot.
    fn sign_out<'a>(&'a self, back: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Why a call has no answer.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) kind: Kind,
    /// What the server says.
    pub(crate) message: String,
}

/// What a caller can do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Invalid,
    Unauthenticated,
    Denied,
    NotFound,
    /// What is asked for does not fit in a message.
    Large,
    TooMuch,
    Late,
    Unavailable,
    Broken,
}

/// What a client and a server say of a message that they do not take or send for its size.
const LARGE: [&str; 2] = ["decoded message length too large", "too large: "];

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let is_large = LARGE.iter().any(|text| status.message().contains(text));
        let kind = match status.code() {
            Code::OutOfRange | Code::ResourceExhausted if is_large => Kind::Large,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => Kind::Invalid,
            Code::Unauthenticated => Kind::Unauthenticated,
            Code::PermissionDenied => Kind::Denied,
            Code::NotFound => Kind::NotFound,
            Code::ResourceExhausted => Kind::TooMuch,
            Code::DeadlineExceeded | Code::Cancelled => Kind::Late,
            Code::Unavailable => Kind::Unavailable,
            _ => Kind::Broken,
        };
        Self {
            kind,
            message: status.message().to_owned(),
        }
    }
}

/// The services as one caller may use them.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    runs: RunsClient<Router>,
    queries: QueriesClient<Router>,
    results: ResultsClient<Router>,
    logs: LogsClient<Router>,
    texts: TextsClient<Router>,
    metadata: HeaderMap,
}

/// A result of a call.
pub(crate) type Answer<T> = Result<T, Refusal>;

/// Answers that come one after the other; the first error is the last.
pub(crate) type Answers<T> = BoxStream<'static, Answer<T>>;

impl Api {
    /// The services that `grpc` routes calls to, for a caller with this metadata.
    pub(crate) fn new(grpc: &Router, metadata: HeaderMap) -> Self {
        let runs = RunsClient::new(grpc.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let results = ResultsClient::new(grpc.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self {
            runs,
            queries: QueriesClient::new(grpc.clone()),
            results,
            logs: LogsClient::new(grpc.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            texts: TextsClient::new(grpc.clone()),
            metadata,
        }
    }

    /// What calls carry.
    pub(crate) fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let metadata = MetadataMap::from_headers(self.metadata.clone());
        Request::from_parts(metadata, tonic::Extensions::default(), message)
    }

    pub(crate) async fn list_runs(&self, ask: ListRunsRequest) -> Answer<ListRunsResponse> {
        answer(self.runs.clone().list_runs(self.request(ask))).await
    }

    pub(crate) async fn aggregate(&self, ask: AggregateRequest) -> Answer<AggregateResponse> {
        answer(self.queries.clone().aggregate(self.request(ask))).await
    }

    pub(crate) async fn suggest(&self, ask: SuggestRequest) -> Answer<SuggestResponse> {
        answer(self.runs.clone().suggest(self.request(ask))).await
    }

    /// A run and what is below it; of TaskRuns that succeeded no more than lists know if it is `brief`.
    pub(crate) async fn tree(&self, name: &str, brief: bool) -> Answer<RunTree> {
        let ask = GetRunTreeRequest {
            name: name.to_owned(),
            steps: true,
            brief,
        };
        answer(self.runs.clone().get_run_tree(self.request(ask))).await
    }

    pub(crate) async fn failure(&self, name: &str) -> Answer<FailureExplanation> {
        let ask = ExplainFailureRequest {
            name: name.to_owned(),
            limit: CHANGES,
            log_lines: 0,
        };
        answer(self.runs.clone().explain_failure(self.request(ask))).await
    }

    pub(crate) async fn diff(&self, a: &str, b: &str) -> Answer<RunDiff> {
        let ask = DiffRunsRequest {
            a: a.to_owned(),
            b: b.to_owned(),
            ..DiffRunsRequest::default()
        };
        answer(self.runs.clone().diff_runs(self.request(ask))).await
    }

    pub(crate) async fn flaky(&self, ask: ListFlakyRequest) -> Answer<ListFlakyResponse> {
        answer(self.runs.clone().list_flaky(self.request(ask))).await
    }

    pub(crate) async fn regressions(
        &self,
        ask: ListRegressionsRequest,
    ) -> Answer<ListRegressionsResponse> {
        answer(self.runs.clone().list_regressions(self.request(ask))).await
    }

    pub(crate) async fn record(&self, name: &str) -> Answer<Record> {
        let ask = GetRecordRequest {
            name: name.to_owned(),
        };
        answer(self.results.clone().get_record(self.request(ask))).await
    }

    /// What there is of the logs of a run.
    pub(crate) async fn log(&self, record: &str) -> Answer<LogDescription> {
        let ask = DescribeLogRequest {
            name: log_of(record),
            only_stored: false,
        };
        answer(self.logs.clone().describe_log(self.request(ask))).await
    }

    pub(crate) async fn lines(&self, ask: ReadLogRequest) -> Answer<Answers<ReadLogResponse>> {
        let pieces = answer(self.logs.clone().read_log(self.request(ask))).await?;
        Ok(pieces.map(|piece| piece.map_err(Refusal::from)).boxed())
    }

    pub(crate) async fn search(&self, ask: SearchLogsRequest) -> Answer<SearchLogsResponse> {
        answer(self.logs.clone().search_logs(self.request(ask))).await
    }

    /// The log of a run as one text.
    pub(crate) async fn log_text(&self, record: &str) -> Answer<Answers<Bytes>> {
        let ask = GetLogRequest {
            name: log_of(record),
        };
        let parts = answer(self.texts.clone().get_log(self.request(ask))).await?;
        let bytes = |part: Result<_, Status>| {
            let hindsight_proto::api::HttpBody { data, .. } = part?;
            Ok(data)
        };
        Ok(parts.map(bytes).boxed())
    }
}

fn answer<T>(
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> impl Future<Output = Answer<T>> {
    let answer = tokio::time::timeout(DEADLINE, Box::pin(call));
    let late = || Status::deadline_exceeded(format!("no answer within {DEADLINE:?}"));
    async move { Ok(answer.await.map_err(|_elapsed| late())??.into_inner()) }
}

/// The name of the log of a record.
pub(crate) fn log_of(record: &str) -> String {
    match record.rsplit_once("/records/") {
        Some((result, id)) => format!("{result}/logs/{id}"),
        None => record.to_owned(),
    }
}

/// What calls carry for a request that names its caller by headers.
pub(crate) fn metadata_of(headers: &HeaderMap, id: &HeaderValue) -> HeaderMap {
    let mut metadata = HeaderMap::new();
    for (name, value) in headers {
        if *name == header::AUTHORIZATION || name.as_str().starts_with(IMPERSONATE) {
            metadata.append(name, value.clone());
        }
    }
    metadata.insert(HeaderName::from_static(REQUEST_ID), id.clone());
    metadata
}

/// What calls carry for a caller who signed in with `token`; none if no header can carry it.
pub(crate) fn metadata_with(token: &str, id: &HeaderValue) -> Option<HeaderMap> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    bearer.set_sensitive(true);
    let mut metadata = HeaderMap::new();
    metadata.insert(header::AUTHORIZATION, bearer);
    metadata.insert(HeaderName::from_static(REQUEST_ID), id.clone());
    Some(metadata)
}

#[cfg(test)]
impl Api {
    /// Services that no call reaches.
    pub(crate) fn sample() -> Self {
        Self::new(&Router::new(), HeaderMap::new())
    }
}
