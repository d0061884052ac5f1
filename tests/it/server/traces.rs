//! Traces: what a collector is told of one run on its way from the cluster to the database.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue},
    response::Response,
    routing::post,
};
use http_body_util::{BodyExt as _, Full};
use kubesim::Sim;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost_reflect::prost::Message as _;
use tokio::net::TcpListener;

use crate::support::{
    Database,
    cluster::free_port,
    http::{Http, target},
    objects::task_run,
    process::{hindsight, watcher},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A span, and the service that told of it.
type Told = (String, Span);

/// A collector that remembers everything.
#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<Vec<Told>>>);

impl Collector {
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let here = self.clone();
        let export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let router = Router::new().route(export, post(async move |body: Bytes| here.take(&body)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn take(&self, body: &Bytes) -> Response {
        let request = ExportTraceServiceRequest::decode(body.slice(5..)).unwrap();
        let mut all = self.0.lock().unwrap();
        for of in request.resource_spans {
            let attributes = of.resource.unwrap().attributes;
            let name = attributes.into_iter().find(|a| a.key == "service.name");
            let Some(Value::StringValue(name)) = name.unwrap().value.unwrap().value else {
                panic!("the service has no name");
            };
            let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
            all.extend(spans.map(|span| (name.clone(), span)));
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let answer = Full::new(Bytes::from_static(&[0; 5]));
        let mut response = Response::new(Body::new(
            answer.with_trailers(async { Some(Ok(trailers)) }),
        ));
        let kind = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", kind);
        response
    }

    /// The names of the spans of each trace, once a trace satisfies `complete`.
    async fn until(&self, complete: impl Fn(&[Told]) -> bool) -> Vec<Told> {
        let looking = async {
            loop {
                let mut traces: BTreeMap<Vec<u8>, Vec<Told>> = BTreeMap::new();
                for told in self.0.lock().unwrap().iter() {
                    traces
                        .entry(told.1.trace_id.clone())
                        .or_default()
                        .push(told.clone());
                }
                if let Some(found) = traces.into_values().find(|spans| complete(spans)) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("there is no such trace: {:?}", self.0.lock().unwrap()))
    }
}

struct Process(Child);

impl Process {
    fn start(mut command: Command) -> Self {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The span of this name, if the trace has one.
fn named<'a>(spans: &'a [Told], service: &str, name: &str) -> Option<&'a Span> {
    let mut found = spans
        .iter()
        .filter(|(of, span)| of == service && span.name == name);
    found.next().map(|(_, span)| span)
}

/// The first span whose parent is this one.
fn below<'a>(spans: &'a [Told], parent: &Span) -> Option<&'a Told> {
    spans
        .iter()
        .find(|(_, span)| span.parent_span_id == parent.span_id)
}

#[tokio::test]
async fn one_trace_leads_from_the_watcher_through_the_server_to_the_database() {
    let collector = Collector::default();
    let endpoint = collector.listen().await;
    let database = Database::sqlite();
    let url = format!("http://127.0.0.1:{}", free_port());
    let mut server = hindsight();
    server
        .args(["serve", "--db", &database.url(), "--metrics-listen", "off"])
        .args(["--listen", url.strip_prefix("http://").unwrap()])
        .args(["--trace-endpoint", &endpoint, "--log-level", "off"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let _server = Process::start(server);

    let sim = Sim::new();
    sim.install_all(kubesim::Crd::tekton());
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    sim.namespace("ci");
    let run = task_run("build", "Succeeded");
    let status = serde_json::json!({"status": run["status"]});
    sim.create(run).unwrap();
    sim.merge("tekton.dev", "taskruns", "ci", "build", status, "x")
        .unwrap();
    let mut program = Command::new(watcher());
    program
        .env_clear()
        .args(["--server", &url, "--metrics-listen", "off"])
        .arg("--kubeconfig")
        .arg(listening.kubeconfig())
        .args(["--trace-endpoint", &endpoint])
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let _watcher = Process::start(program);

    // A span is told of when it ends: `store` may arrive in a batch before that of its call.
    let trace = collector
        .until(|spans| {
            let sink = named(spans, "hindsight-watcher", "sink");
            sink.is_some_and(|sink| below(spans, sink).is_some())
                && named(spans, "hindsight", "store").is_some()
        })
        .await;
    let sink = named(&trace, "hindsight-watcher", "sink").unwrap();
    let (service, rpc) = below(&trace, sink).unwrap();
    assert_eq!((service.as_str(), rpc.name.as_str()), ("hindsight", "rpc"));
}

#[tokio::test]
async fn a_header_over_rest_is_gone_on_with() {
    let collector = Collector::default();
    let endpoint = collector.listen().await;
    let database = Database::sqlite();
    let url = format!("http://127.0.0.1:{}", free_port());
    let mut server = hindsight();
    server
        .args(["serve", "--db", &database.url(), "--metrics-listen", "off"])
        .args(["--listen", url.strip_prefix("http://").unwrap()])
        .args(["--trace-endpoint", &endpoint, "--trace-percent", "0"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let _server = Process::start(server);
    let began = std::time::Instant::now();
    while tokio::net::TcpStream::connect(url.strip_prefix("http://").unwrap())
        .await
        .is_err()
    {
        assert!(began.elapsed() < PATIENCE, "the server starts");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut http = Http::one(&url).await;
    let path = target("ci/results/-/records", &[]);
    let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    http.send("GET", &path, &[("traceparent", header)], "")
        .await
        .ok();
    // Of what begins here nothing is sent.
    http.send("GET", &path, &[], "").await.ok();
    http.send("GET", &path, &[("traceparent", "nonsense")], "")
        .await
        .ok();
    let trace = collector
        .until(|spans| named(spans, "hindsight", "http").is_some())
        .await;
    let names: Vec<_> = ["http", "rpc", "query", "store"]
        .map(|name| named(&trace, "hindsight", name).map(|span| span.parent_span_id.clone()))
        .into();
    assert!(names.iter().all(Option::is_some), "{trace:?}");
    let hex: String = trace[0]
        .1
        .trace_id
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, "0af7651916cd43dd8448eb211c80319c");
    let http = named(&trace, "hindsight", "http").unwrap();
    assert_eq!(http.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    let all = collector.0.lock().unwrap().clone();
    assert!(
        all.iter()
            .all(|(_, span)| span.trace_id == trace[0].1.trace_id),
        "{all:?}"
    );
}

#[test]
fn an_endpoint_that_is_no_address_stops_the_start() {
    let database = Database::sqlite();
    let mut server = hindsight();
    server
        .args(["serve", "--db", &database.url(), "--metrics-listen", "off"])
        .args([
            "--listen",
            "127.0.0.1:0",
            "--trace-endpoint",
            "not an address",
        ]);
    let ended = server.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("`not an address`"), "{said}");
}
