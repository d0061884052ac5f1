//! A results server on a socket, with just enough of the API; it can be killed and started
//! again on its port, and remembers what it had acknowledged.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use super::LogStore;
use async_trait::async_trait;
use hindsight_proto::names::RecordName;
use hindsight_proto::v1::logs_server::LogsServer;
use hindsight_proto::v1alpha2::{
    CreateRecordRequest, CreateResultRequest, DeleteRecordRequest, DeleteResultRequest,
    GetRecordRequest, GetResultRequest, ListRecordsRequest, ListRecordsResponse,
    ListResultsRequest, ListResultsResponse, Record, RecordListSummary, RecordListSummaryRequest,
    Result as RunResult, UpdateRecordRequest, UpdateResultRequest,
    results_server::{Results, ResultsServer},
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Server, ServerTlsConfig},
};

type Answer<T> = Result<Response<T>, Status>;

#[derive(Debug, Default)]
struct Tables {
    results: BTreeMap<String, RunResult>,
    records: BTreeMap<String, Record>,
    /// What callers said who they are.
    tokens: Vec<String>,
    writes: u64,
    /// Every call, in order.
    calls: Vec<&'static str>,
    /// Says of a new record of so many bytes that it is refused.
    refusal: Option<Refusal>,
}

/// Why a record of so many bytes is refused, if it is.
pub(crate) type Refusal = fn(usize) -> Option<Status>;

/// The server; it runs until it is killed.
pub(crate) struct RpcServer {
    tables: Arc<Mutex<Tables>>,
    logs: LogStore,
    pub(crate) addr: SocketAddr,
    runtime: Option<Runtime>,
    tls: Option<ServerTlsConfig>,
}

#[derive(Debug, Clone)]
struct Service(Arc<Mutex<Tables>>);

impl RpcServer {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// One that speaks TLS alone.
    pub(crate) fn start_with(tls: Option<ServerTlsConfig>) -> Self {
        let addr = "127.0.0.1:0".parse().unwrap();
        let mut server = Self {
            tables: Arc::default(),
            logs: LogStore::default(),
            addr,
            runtime: None,
            tls,
        };
        server.up();
        server
    }

    pub(crate) fn up(&mut self) {
        let runtime = Runtime::new().unwrap();
        let (told, addr) = std::sync::mpsc::channel();
        let wanted = self.addr;
        let service = ResultsServer::new(Service(Arc::clone(&self.tables)));
        let logs = LogsServer::new(self.logs.clone()).max_decoding_message_size(32 << 20);
        let mut builder = Server::builder();
        if let Some(tls) = self.tls.clone() {
            builder = builder.tls_config(tls).unwrap();
        }
        runtime.spawn(async move {
            let listener = TcpListener::bind(wanted).await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            let incoming = TcpListenerStream::new(listener);
            builder
                .add_service(service)
                .add_service(logs)
                .serve_with_incoming(incoming)
                .await
                .unwrap();
        });
        self.addr = addr.recv().unwrap();
        self.runtime = Some(runtime);
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// The logs that are stored.
    pub(crate) fn logs(&self) -> &LogStore {
        &self.logs
    }

    /// The stored object of the run with this UID.
    pub(crate) fn copy(&self, uid: &str) -> Option<Value> {
        let end = format!("/records/{uid}");
        let tables = self.tables.lock().unwrap();
        let (_, record) = tables
            .records
            .iter()
            .find(|(name, _)| name.ends_with(&end))?;
        Some(serde_json::from_slice(&record.data.as_ref()?.value).unwrap())
    }

    pub(crate) fn records(&self) -> usize {
        self.tables.lock().unwrap().records.len()
    }

    /// The calls since this was asked last.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.tables.lock().unwrap().calls)
    }

    /// Everything that is stored of a result and of a record.
    pub(crate) fn rows(&self, record: &RecordName) -> (Option<RunResult>, Option<Record>) {
        let tables = self.tables.lock().unwrap();
        (
            tables.results.get(&record.result().to_string()).cloned(),
            tables.records.get(&record.to_string()).cloned(),
        )
    }

    /// From now on new records are judged so.
    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        self.tables.lock().unwrap().refusal = refusal;
    }

    pub(crate) fn tokens(&self) -> Vec<String> {
        self.tables.lock().unwrap().tokens.clone()
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Service {
    fn tables<T>(&self, request: &Request<T>, call: &'static str) -> MutexGuard<'_, Tables> {
        let mut tables = self.0.lock().unwrap();
        tables.calls.push(call);
        if let Some(token) = request.metadata().get("authorization") {
            let token = token.to_str().unwrap().to_owned();
            if !tables.tokens.contains(&token) {
                tables.tokens.push(token);
            }
        }
        tables
    }
}

impl Tables {
    fn etag(&mut self) -> String {
        self.writes += 1;
        self.writes.to_string()
    }
}

fn get<T: Clone>(rows: &BTreeMap<String, T>, name: &str) -> Answer<T> {
    let missing = || Status::not_found(format!("`{name}` is not there"));
    rows.get(name)
        .cloned()
        .map(Response::new)
        .ok_or_else(missing)
}

fn check(is: &str, wanted: &str) -> Result<(), Status> {
    if wanted.is_empty() || is == wanted {
        Ok(())
    } else {
        Err(Status::failed_precondition("somebody was faster"))
    }
}

#[async_trait]
impl Results for Service {
    async fn create_result(&self, request: Request<CreateResultRequest>) -> Answer<RunResult> {
        let mut tables = self.tables(&request, "create_result");
        let mut result = request.into_inner().result.unwrap();
        if tables.results.contains_key(&result.name) {
            return Err(Status::already_exists(result.name));
        }
        result.etag = tables.etag();
        tables.results.insert(result.name.clone(), result.clone());
        Ok(Response::new(result))
    }

    async fn update_result(&self, request: Request<UpdateResultRequest>) -> Answer<RunResult> {
        let mut tables = self.tables(&request, "update_result");
        let request = request.into_inner();
        let old = get(&tables.results, &request.name)?.into_inner();
        check(&old.etag, &request.etag)?;
        let etag = tables.etag();
        let result = RunResult {
            etag,
            ..request.result.unwrap()
        };
        tables.results.insert(request.name, result.clone());
        Ok(Response::new(result))
    }

    async fn get_result(&self, request: Request<GetResultRequest>) -> Answer<RunResult> {
        let tables = self.tables(&request, "get_result");
        get(&tables.results, &request.into_inner().name)
    }

    async fn create_record(&self, request: Request<CreateRecordRequest>) -> Answer<Record> {
        let mut tables = self.tables(&request, "create_record");
        let request = request.into_inner();
        get(&tables.results, &request.parent)?;
        let mut record = request.record.unwrap();
        let size = record.data.as_ref().map_or(0, |data| data.value.len());
        if let Some(status) = tables.refusal.and_then(|refusal| refusal(size)) {
            return Err(status);
        }
        if tables.records.contains_key(&record.name) {
            return Err(Status::already_exists(record.name));
        }
        record.etag = tables.etag();
        tables.records.insert(record.name.clone(), record.clone());
        Ok(Response::new(record))
    }

    async fn update_record(&self, request: Request<UpdateRecordRequest>) -> Answer<Record> {
        let mut tables = self.tables(&request, "update_record");
        let request = request.into_inner();
        let mut record = request.record.unwrap();
        check(
            &get(&tables.records, &record.name)?.into_inner().etag,
            &request.etag,
        )?;
        record.etag = tables.etag();
        tables.records.insert(record.name.clone(), record.clone());
        Ok(Response::new(record))
    }

    async fn get_record(&self, request: Request<GetRecordRequest>) -> Answer<Record> {
        let tables = self.tables(&request, "get_record");
        get(&tables.records, &request.into_inner().name)
    }

    async fn delete_result(&self, _: Request<DeleteResultRequest>) -> Answer<()> {
        Err(Status::unimplemented("not asked for"))
    }

    async fn list_results(&self, _: Request<ListResultsRequest>) -> Answer<ListResultsResponse> {
        Err(Status::unimplemented("not asked for"))
    }

    async fn list_records(&self, _: Request<ListRecordsRequest>) -> Answer<ListRecordsResponse> {
        Err(Status::unimplemented("not asked for"))
    }

    async fn delete_record(&self, _: Request<DeleteRecordRequest>) -> Answer<()> {
        Err(Status::unimplemented("not asked for"))
    }

    async fn get_record_list_summary(
        &self,
        _: Request<RecordListSummaryRequest>,
    ) -> Answer<RecordListSummary> {
        Err(Status::unimplemented("not asked for"))
    }
}
