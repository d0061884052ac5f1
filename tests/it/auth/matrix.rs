//! The matrix: method by identity by parent by mode by door. What is expected follows from a
//! table of rights; what the table does not cover is in `open.txt`.

mod files;

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use hindsight_proto::FILE_DESCRIPTOR_SET;
use http_body_util::Full;
use hyper::Request;
use prost_reflect::{DescriptorPool, DynamicMessage, prost::Message as _};
use serde_json::{Value, json};

use super::{GROUP, bearer, cluster};
use crate::support::{
    Database, TestServer,
    http::{Http, Reply, target},
};

const SERVICE: &str = "tekton.results.v1alpha2.Results";
const QUERIES: &str = "hindsight.v1.Queries";

/// The service that a method belongs to.
fn service(method: &str) -> &'static str {
    match method {
        "Aggregate" | "Explain" => QUERIES,
        _ => SERVICE,
    }
}

const PARENTS: [&str; 4] = ["ci", "dev", "cluster/east/namespace/ci", "-"];
const READ: &[&str] = &["get", "list"];
const WRITE: &[&str] = &["get", "list", "create", "update"];
const ALL: &[&str] = &["get", "list", "create", "update", "delete"];
const BOTH: &[&str] = &["results", "records"];

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
    identity("writer", WRITE, BOTH, "ci"),
    identity("owner", ALL, BOTH, "ci"),
    identity("appender", &["create"], &["records"], "ci"),
    identity("auditor", READ, BOTH, "*"),
    identity("root", ALL, BOTH, "*"),
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

/// A method, what it takes, how it is asked about the thing `id` below a parent, and what is
/// answered when there is no such thing.
struct Case {
    method: &'static str,
    verb: &'static str,
    resource: &'static str,
    grpc: fn(&str, &str) -> Value,
    rest: fn(&str, &str) -> (&'static str, String, Value),
    missing: &'static [i32],
}

fn result(parent: &str, id: &str) -> String {
    format!("{parent}/results/{id}")
}

pub fn record(parent: &str, id: &str) -> String {
    format!("{parent}/results/{id}/records/{id}")
}

/// What a create calls the thing that others do not find.
fn made(id: &str) -> &str {
    if id == "gone" { "made" } else { id }
}

fn data(name: &str) -> Value {
    json!({"name": name, "data": {"type": "t", "value": "e30="}})
}

const CASES: &[Case] = &[
    Case {
        method: "CreateResult",
        verb: "create",
        resource: "results",
        grpc: |p, id| json!({"parent": p, "result": {"name": result(p, made(id))}}),
        rest: |p, id| {
            let body = json!({"name": result(p, made(id))});
            ("POST", format!("{p}/results"), body)
        },
        missing: &[0, 6],
    },
    Case {
        method: "UpdateResult",
        verb: "update",
        resource: "results",
        grpc: |p, id| json!({"name": result(p, id), "result": {"name": result(p, id)}}),
        rest: |p, id| ("PATCH", result(p, id), json!({})),
        missing: &[5],
    },
    Case {
        method: "GetResult",
        verb: "get",
        resource: "results",
        grpc: |p, id| json!({"name": result(p, id)}),
        rest: |p, id| ("GET", result(p, id), Value::Null),
        missing: &[5],
    },
    Case {
        method: "DeleteResult",
        verb: "delete",
        resource: "results",
        grpc: |p, id| json!({"name": result(p, id)}),
        rest: |p, id| ("DELETE", result(p, id), Value::Null),
        missing: &[5],
    },
    Case {
        method: "ListResults",
        verb: "list",
        resource: "results",
        grpc: |p, _| json!({"parent": p}),
        rest: |p, _| ("GET", format!("{p}/results"), Value::Null),
        missing: &[0],
    },
    Case {
        method: "CreateRecord",
        verb: "create",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id), "record": data(&record(p, id))}),
        rest: |p, id| {
            let path = format!("{p}/results/{id}/records");
            ("POST", path, data(&record(p, id)))
        },
        missing: &[5],
    },
    Case {
        method: "UpdateRecord",
        verb: "update",
        resource: "records",
        grpc: |p, id| json!({"record": data(&record(p, id))}),
        rest: |p, id| ("PATCH", record(p, id), json!({"data": {"type": "t"}})),
        missing: &[5],
    },
    Case {
        method: "GetRecord",
        verb: "get",
        resource: "records",
        grpc: |p, id| json!({"name": record(p, id)}),
        rest: |p, id| ("GET", record(p, id), Value::Null),
        missing: &[5],
    },
    Case {
        method: "ListRecords",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| ("GET", format!("{p}/results/{id}/records"), Value::Null),
        missing: &[0],
    },
    Case {
        method: "DeleteRecord",
        verb: "delete",
        resource: "records",
        grpc: |p, id| json!({"name": record(p, id)}),
        rest: |p, id| ("DELETE", record(p, id), Value::Null),
        missing: &[5],
    },
    // Whoever may list may know how.
    Case {
        method: "Explain",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| {
            let path = format!("{QUERIES}{}/explain", result(p, id));
            ("GET", path, Value::Null)
        },
        missing: &[0],
    },
    // Whoever may list records may count them.
    Case {
        method: "Aggregate",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| {
            let path = format!("{QUERIES}{}/aggregate", result(p, id));
            ("GET", path, Value::Null)
        },
        missing: &[0],
    },
    Case {
        method: "GetRecordListSummary",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id), "summary": "total"}),
        rest: |p, id| {
            let path = format!("{p}/results/{id}/records/summary");
            ("GET", path, Value::Null)
        },
        missing: &[0],
    },
];

/// A request message on the wire, read from JSON.
fn framed(pool: &DescriptorPool, method: &str, request: Value) -> Vec<u8> {
    let service = pool.get_service_by_name(service(method)).unwrap();
    let method = service.methods().find(|m| m.name() == method).unwrap();
    let message = DynamicMessage::deserialize(method.input(), request).unwrap();
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.encoded_len()).unwrap().to_be_bytes());
    frame.extend(message.encode_to_vec());
    frame
}

/// Code and text of an answer.
fn told(reply: &Reply) -> (i32, String) {
    let code = reply
        .header("grpc-status")
        .map_or(0, |c| c.parse().unwrap());
    let text = reply.header("grpc-message").unwrap_or_default();
    let text = percent_encoding::percent_decode_str(text).decode_utf8();
    (code, text.unwrap().into_owned())
}

struct Doors {
    /// What identities show instead of their names.
    tokens: HashMap<&'static str, String>,
    pool: DescriptorPool,
    grpc: Http,
    rest: Http,
}

impl Doors {
    async fn to(server: &TestServer) -> Self {
        Self {
            tokens: HashMap::new(),
            pool: DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap(),
            grpc: Http::two(&server.url).await,
            rest: Http::one(&server.url).await,
        }
    }

    /// Asks at both doors, which must agree; returns the code and the text.
    async fn ask(&mut self, case: &Case, who: &Identity, parent: &str, id: &str) -> (i32, String) {
        let shown = |name: &&str| {
            self.tokens
                .get(name)
                .map_or(*name, String::as_str)
                .to_owned()
        };
        let token = who.token.as_ref().map(shown).map(|token| bearer(&token));
        let with = |kind: &'static str| {
            let mut headers = vec![("content-type", kind), ("te", "trailers")];
            headers.extend(token.iter().map(|token| ("authorization", token.as_str())));
            headers
        };
        let body = framed(&self.pool, case.method, (case.grpc)(parent, id));
        let path = format!("/{}/{}", service(case.method), case.method);
        let headers = with("application/grpc");
        let reply = self.grpc.send("POST", &path, &headers, body).await;
        let (code, text) = told(&reply);

        let (verb, path, body) = (case.rest)(parent, id);
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let query: &[_] = if case.method == "GetRecordListSummary" {
            &[("summary", "total")]
        } else {
            &[]
        };
        let path = match path.strip_prefix(QUERIES) {
            Some(rest) => format!("/apis/hindsight.dev/v1/parents/{rest}"),
            None => target(&path, query),
        };
        let headers = with("application/json");
        let reply = self.rest.send(verb, &path, &headers, body).await;
        let what = format!("{} by {:?} at {path}", case.method, who.token);
        let seen = if reply.status == 200 {
            0
        } else {
            reply.json()["code"].as_i64().unwrap()
        };
        // What was created at one door exists at the other.
        let created = case.method == "CreateResult" && code == 0 && seen == 6;
        assert!(
            seen == i64::from(code) || created,
            "{what}: {code} and {seen}"
        );
        if matches!(code, 7 | 16) {
            assert_eq!(reply.json()["message"], text, "{what}");
            assert_eq!(reply.status, if code == 7 { 403 } else { 401 }, "{what}");
            let asks = reply.header("www-authenticate");
            assert_eq!(asks, (code == 16).then_some("Bearer"), "{what}");
        }
        (code, text)
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
    let mut doors = Doors::to(server).await;
    doors.tokens = tokens;
    for case in CASES {
        for parent in PARENTS.iter().filter(|p| **p != "-" || case.verb == "list") {
            for who in IDENTITIES {
                let what = format!("{} by {:?} on {parent}", case.method, who.token);
                let gone = doors.ask(case, who, parent, "gone").await;
                match refusal(who, case, parent) {
                    None => assert!(case.missing.contains(&gone.0), "{what}: {gone:?}"),
                    Some(code) => {
                        assert_eq!(gone.0, code, "{what}: {gone:?}");
                        // What is there is refused in the same words as what is not.
                        let kept = doors.ask(case, who, parent, "kept").await;
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
            assert_eq!(doors.ask(case, root, parent, "kept").await.0, 0, "{parent}");
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
        .map(|case| format!("/{}/{}", service(case.method), case.method))
        // A stream, which is asked item by item in `upserts.rs`.
        .chain(["/hindsight.v1.Ingest/Upsert".to_owned()])
        .collect();
    assert_eq!(offered, known);
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
