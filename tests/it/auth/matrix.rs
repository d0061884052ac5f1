//! The matrix: method by identity by parent by mode by protocol. What is expected follows from a
//! table of rights; what the table does not cover is in `open.txt`.

mod cases;
mod clients;
mod files;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use hindsight_proto::FILE_DESCRIPTOR_SET;
use http_body_util::Full;
use hyper::Request;
use prost_reflect::DescriptorPool;

use super::{GROUP, cluster};
use crate::support::{Database, TestServer, http::Http};
use cases::{CASES, Case};

use clients::Clients;

pub use cases::record;

const SERVICE: &str = "tekton.results.v1alpha2.Results";
const QUERIES: &str = "hindsight.v1.Queries";
const RUNS: &str = "hindsight.v1.Runs";
const ARCHIVE: &str = "hindsight.v1.Archive";
const HOLDS: &str = "hindsight.v1.Holds";
const LOGS: &str = "hindsight.v1.Logs";
const TEXTS: &str = "tekton.results.v1alpha2.Logs";

/// The list of what is stored of logs, beside that of `tekton.results.v1alpha2.Logs` of the same name.
const STORED_LOGS: &str = "hindsight.v1.Logs/ListLogs";

/// What a method is called in its service.
fn called(method: &str) -> &str {
    method.rsplit('/').next().unwrap_or(method)
}

/// The service that a method belongs to.
fn service(method: &str) -> &'static str {
    match method {
        "Aggregate" | "Explain" => QUERIES,
        "DiffRuns" | "ExplainFailure" | "GetRunTree" | "ListFlaky" | "ListRegressions"
        | "ListRuns" | "Suggest" | "WatchRuns" => RUNS,
        "ListArchiveFiles" => ARCHIVE,
        "CreateHold" | "DeleteHold" | "ListHolds" => HOLDS,
        "DescribeLog" | "ReadLog" | STORED_LOGS => LOGS,
        "DeleteLog" | "GetLog" | "ListLogs" => TEXTS,
        _ => SERVICE,
    }
}

const PARENTS: [&str; 4] = ["ci", "dev", "cluster/east/namespace/ci", "-"];
const READ: &[&str] = &["get", "list"];
const WRITE: &[&str] = &["get", "list", "create", "update"];
const ALL: &[&str] = &["get", "list", "create", "update", "delete"];
const BOTH: &[&str] = &["results", "records"];
const EVERY: &[&str] = &["results", "records", "logs"];

/// Somebody, by their token, and what they may do where; `*` is everywhere.
pub struct Identity {
    pub token: Option<&'static str>,
    pub verbs: &'static [&'static str],
    pub resources: &'static [&'static str],
    pub parent: &'static str,
}

const fn identity(
    token: &'static str,
    verbs: &'static [&'static str],
    resources: &'static [&'static str],
    parent: &'static str,
) -> Identity {
    Identity {
        token: Some(token),
        verbs,
        resources,
        parent,
    }
}

pub const IDENTITIES: &[Identity] = &[
    Identity {
        token: None,
        verbs: &[],
        resources: &[],
        parent: "",
    },
    identity("stranger", &[], &[], ""),
    identity("guest", &[], BOTH, "ci"),
    identity("reader", READ, BOTH, "ci"),
    identity("writer", WRITE, EVERY, "ci"),
    identity("owner", ALL, EVERY, "ci"),
    identity("appender", &["create"], &["records"], "ci"),
    identity("auditor", READ, BOTH, "*"),
    identity("root", ALL, EVERY, "*"),
];

impl Identity {
    /// The user in a file of users.
    pub fn in_file(&self) -> Option<String> {
        let token = self.token?;
        let hash = hindsight_access::auth::token_hash(token);
        let (parent, verbs, resources) = (self.parent, self.verbs, self.resources);
        Some(format!(
            "[[users]]\nname = '{token}'\nsha256 = ['{hash}']\n[[users.grants]]\n\
             parents = ['{parent}']\nverbs = {verbs:?}\nresources = {resources:?}\n"
        ))
    }

    /// The gRPC code of a refusal; none if they may.
    fn refusal(&self, case: &Case, parent: &str) -> Option<i32> {
        let allowed = self.verbs.contains(&case.verb)
            && self.resources.contains(&case.resource)
            && (self.parent == "*" || self.parent == parent);
        match self.token {
            None | Some("stranger") => Some(16),
            Some(_) if allowed => None,
            Some(_) => Some(7),
        }
    }
}

/// Asks everything of a server that was given what `given` is about.
async fn check(server: &TestServer, refusal: impl Fn(&Identity, &Case, &str) -> Option<i32>) {
    check_with(server, HashMap::new(), refusal).await;
}

/// The same, where identities show other tokens than their names.
async fn check_with(
    server: &TestServer,
    tokens: HashMap<&'static str, String>,
    refusal: impl Fn(&Identity, &Case, &str) -> Option<i32>,
) {
    let mut clients = Clients::to(server).await;
    clients.tokens = tokens;
    for case in CASES {
        for parent in PARENTS.iter().filter(|p| **p != "-" || case.lists()) {
            for who in IDENTITIES {
                let what = format!("{} by {:?} on {parent}", case.method, who.token);
                let gone = clients.ask(case, who, parent, "gone").await;
                match refusal(who, case, parent) {
                    None => assert!(case.missing.contains(&gone.0), "{what}: {gone:?}"),
                    Some(code) => {
                        assert_eq!(gone.0, code, "{what}: {gone:?}");
                        // What is there is refused in the same words as what is not.
                        let kept = clients.ask(case, who, parent, "kept").await;
                        assert_eq!(kept, gone, "{what}");
                    }
                }
            }
        }
    }
    // Nothing that was refused has happened.
    let token = Some("root");
    let root = IDENTITIES.iter().find(|who| who.token == token).unwrap();
    for method in ["GetResult", "GetRecord"] {
        let case = CASES.iter().find(|case| case.method == method).unwrap();
        for parent in &PARENTS[..3] {
            assert_eq!(
                clients.ask(case, root, parent, "kept").await.0,
                0,
                "{parent}"
            );
        }
    }
    answers_everybody(server).await;
}

/// Paths and methods that ask for no token.
fn open() -> Vec<&'static str> {
    include_str!("open.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect()
}

async fn answers_everybody(server: &TestServer) {
    let mut rest = Http::one(&server.url).await;
    for path in open() {
        if path.starts_with("/grpc.") {
            // Streams do not end; their beginning is enough.
            let Http::Two(mut sender) = Http::two(&server.url).await else {
                unreachable!("two is two");
            };
            let request = Request::post(format!("http://localhost{path}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(Full::new(Bytes::from_static(&[0; 5])))
                .unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.headers().get("grpc-status"), None, "{path}");
        } else {
            let reply = rest.send("GET", path, &[], "").await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        }
    }
}

/// A result and a record `kept` below every parent.
pub async fn given(database: &Database) {
    let server = TestServer::start(database).await;
    for parent in &PARENTS[..3] {
        server
            .given_record(&record(parent, "kept"), "t", b"{}")
            .await;
    }
    server.stop().await;
}

#[test]
fn every_method_is_in_the_matrix_or_among_the_exceptions() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let offered: BTreeSet<_> = pool
        .services()
        .flat_map(|service| {
            let name = service.full_name().to_owned();
            let paths = service
                .methods()
                .map(move |m| format!("/{name}/{}", m.name()));
            paths.collect::<Vec<_>>()
        })
        .collect();
    let known: BTreeSet<_> = CASES
        .iter()
        .map(|case| format!("/{}/{}", service(case.method), called(case.method)))
        .collect();
    // A stream, which is asked item by item in `upserts.rs`; and logs in `tests/it/logs/search.rs`.
    let exceptions = [
        "/hindsight.v1.Ingest/Upsert",
        "/hindsight.v1.Logs/AppendLog",
        "/hindsight.v1.Logs/SearchLogs",
        "/tekton.results.v1alpha2.Logs/UpdateLog",
        "/tekton.results.v1alpha3.Logs/GetLog",
    ];
    let exceptions = exceptions.map(str::to_owned);
    assert_eq!(offered, &known | &exceptions.into());
}

#[tokio::test]
async fn without_access_control_everybody_may_do_everything() {
    let database = Database::sqlite();
    given(&database).await;
    let server = TestServer::start(&database).await;
    check(&server, |_, _, _| None).await;
    server.stop().await;
}

#[tokio::test]
async fn the_roles_of_a_cluster_decide() {
    let database = Database::sqlite();
    given(&database).await;
    let (sim, listening) = cluster().await;
    for who in IDENTITIES {
        let Some(token) = who.token.filter(|token| *token != "stranger") else {
            continue;
        };
        sim.policy().token(token, token, &[]);
        for verb in who.verbs {
            for resource in who.resources {
                sim.policy().allow(token, verb, GROUP, resource, who.parent);
            }
        }
    }
    let kubeconfig = listening.kubeconfig().display().to_string();
    let more = [("auth", "kubernetes"), ("auth_kubeconfig", &kubeconfig)];
    let server = TestServer::start_with(&database, &more).await;
    check(&server, Identity::refusal).await;
    server.stop().await;
}
