//! A server asked by REST and by gRPC, which must agree.

use std::collections::HashMap;

use hindsight_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, DynamicMessage, prost::Message as _};
use serde_json::Value;

use super::{Identity, QUERIES, called, service};
use crate::{
    auth::{bearer, matrix::cases::Case},
    support::{
        TestServer,
        http::{Http, Reply, target},
    },
};

/// A request message on the wire, read from JSON.
fn framed(pool: &DescriptorPool, method: &str, request: Value) -> Vec<u8> {
    let service = pool.get_service_by_name(service(method)).unwrap();
    let mut methods = service.methods();
    let method = methods.find(|m| m.name() == called(method)).unwrap();
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

pub(super) struct Clients {
    /// What identities show instead of their names.
    pub(super) tokens: HashMap<&'static str, String>,
    pool: DescriptorPool,
    grpc: Http,
    rest: Http,
}

impl Clients {
    pub(super) async fn to(server: &TestServer) -> Self {
        Self {
            tokens: HashMap::new(),
            pool: DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap(),
            grpc: Http::two(&server.url).await,
            rest: Http::one(&server.url).await,
        }
    }

    /// Asks by REST and by gRPC, which must agree; returns the code and the text.
    pub(super) async fn ask(
        &mut self,
        case: &Case,
        who: &Identity,
        parent: &str,
        id: &str,
    ) -> (i32, String) {
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
        let path = format!("/{}/{}", service(case.method), called(case.method));
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
        // What was created by one protocol exists for the other.
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
