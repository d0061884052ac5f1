//! gRPC as frames of HTTP/2, seen by a client that is not tonic: what ends a stream, what is in the
//! head, and what is in the trailers.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use hindsight_proto::{Message, v1alpha2 as pb};
use hyper::{HeaderMap, Request};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

use crate::support::{Database, TestServer};

const RESULTS: &str = "/tekton.results.v1alpha2.Results";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// An HTTP/2 connection to the server, without a gRPC client.
struct Raw(SendRequest<Bytes>);

/// One answer, frame by frame.
#[derive(Debug)]
struct Answer {
    head: HeaderMap,
    /// Whether the head ended the stream.
    is_all: bool,
    data: Vec<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Answer {
    /// The status, and whether it stands in a head that is the whole answer.
    fn status(&self) -> (i32, bool) {
        let of = |headers: &HeaderMap| {
            let code = headers.get("grpc-status")?;
            code.to_str().unwrap().parse::<i32>().ok()
        };
        match (of(&self.head), self.trailers.as_ref().and_then(of)) {
            (Some(code), None) => (code, true),
            (None, Some(code)) => (code, false),
            other => panic!("{other:?} in {self:?}"),
        }
    }

    fn message<T: Message + Default>(&self) -> T {
        let all = self.data.concat();
        let (head, message) = all.split_at(5);
        assert_eq!(head[0], 0, "not compressed");
        assert_eq!(
            u32::from_be_bytes(head[1..].try_into().unwrap()) as usize,
            message.len()
        );
        T::decode(message).unwrap()
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut frame).unwrap();
    frame.freeze()
}

impl Raw {
    async fn connect(server: &TestServer) -> Self {
        let address = server.url.strip_prefix("http://").unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    fn request(path: &str, metadata: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::post(format!("http://127.0.0.1{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in metadata {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    async fn call(
        &mut self,
        method: &str,
        metadata: &[(&str, &str)],
        message: &impl Message,
    ) -> Answer {
        let request = Self::request(&format!("{RESULTS}/{method}"), metadata);
        let mut sender = self.0.clone().ready().await.unwrap();
        let (answer, mut body) = sender.send_request(request, false).unwrap();
        body.send_data(framed(message), true).unwrap();
        let (head, mut body) = answer.await.unwrap().into_parts();
        assert_eq!(head.status, 200);
        let is_all = body.is_end_stream();
        let mut data = Vec::new();
        while let Some(chunk) = body.data().await {
            data.push(chunk.unwrap());
        }
        let trailers = body.trailers().await.unwrap();
        Answer {
            head: head.headers,
            is_all,
            data,
            trailers,
        }
    }
}

fn result(name: &str) -> pb::Result {
    pb::Result {
        name: name.to_owned(),
        ..pb::Result::default()
    }
}

type Refused = (&'static str, Answer, i32);

/// Calls each method with its message, which the server refuses with the code.
macro_rules! refusals {
    ($raw:expr, $metadata:expr, $($method:literal $code:literal $message:expr;)*) => {
        vec![$(($method, $raw.call($method, $metadata, &$message).await, $code)),*]
    };
}

async fn refused_results(raw: &mut Raw, metadata: &[(&str, &str)]) -> Vec<Refused> {
    let name = "ci/results/none".to_owned();
    let taken = pb::CreateResultRequest {
        parent: "ci".to_owned(),
        result: Some(result("ci/results/kept")),
    };
    let stale = pb::UpdateResultRequest {
        name: "ci/results/kept".to_owned(),
        etag: "stale".to_owned(),
        ..Default::default()
    };
    let filter = pb::ListResultsRequest {
        parent: "ci".to_owned(),
        filter: "(".to_owned(),
        ..Default::default()
    };
    refusals! { raw, metadata,
        "GetResult" 5 pb::GetResultRequest { name: name.clone() };
        "GetResult" 3 pb::GetResultRequest::default();
        "DeleteResult" 5 pb::DeleteResultRequest { name: name.clone() };
        "CreateResult" 6 taken;
        "UpdateResult" 9 stale;
        "ListResults" 3 filter;
        "NoSuchMethod" 12 pb::GetResultRequest::default();
    }
}

async fn refused_records(raw: &mut Raw, metadata: &[(&str, &str)]) -> Vec<Refused> {
    let name = "ci/results/none/records/none".to_owned();
    let record = Some(pb::Record {
        name: name.clone(),
        ..Default::default()
    });
    let orphan = pb::CreateRecordRequest {
        parent: "ci/results/none".to_owned(),
        record: record.clone(),
    };
    let missing = pb::UpdateRecordRequest {
        record,
        ..Default::default()
    };
    let size = pb::ListRecordsRequest {
        parent: "ci/results/-".to_owned(),
        page_size: -1,
        ..Default::default()
    };
    let item = pb::RecordListSummaryRequest {
        parent: "ci/results/-".to_owned(),
        summary: "x".to_owned(),
        ..Default::default()
    };
    refusals! { raw, metadata,
        "GetRecord" 5 pb::GetRecordRequest { name: name.clone() };
        "DeleteRecord" 5 pb::DeleteRecordRequest { name: name.clone() };
        "CreateRecord" 5 orphan;
        "UpdateRecord" 5 missing;
        "ListRecords" 3 size;
        "GetRecordListSummary" 3 item;
    }
}

#[tokio::test]
async fn a_refusal_is_one_frame_of_headers_with_its_code_whatever_fields_are_asked_for() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    server.given_result("ci/results/kept").await;
    let mut raw = Raw::connect(&server).await;
    for metadata in [&[][..], &[("fields", "name")], &[("fields", "")]] {
        let results = refused_results(&mut raw, metadata).await;
        let records = refused_records(&mut raw, metadata).await;
        for (method, answer, code) in results.into_iter().chain(records) {
            assert_eq!(
                answer.status(),
                (code, true),
                "{method} {metadata:?}: {answer:?}"
            );
            assert!(
                answer.is_all && answer.data.is_empty(),
                "{method} {metadata:?}: {answer:?}"
            );
            assert!(
                answer.head.contains_key("grpc-message") || code == 12,
                "{method}"
            );
            assert_eq!(answer.head["content-type"], "application/grpc", "{method}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_reply_is_a_head_one_message_and_trailers_with_the_status() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    server.given_result("ci/results/kept").await;
    let mut raw = Raw::connect(&server).await;
    let ask = pb::GetResultRequest {
        name: "ci/results/kept".to_owned(),
    };
    for (metadata, has_uid) in [(&[][..], true), (&[("fields", "name,etag")], false)] {
        let answer = raw.call("GetResult", metadata, &ask).await;
        assert_eq!(answer.status(), (0, false), "{answer:?}");
        assert!(!answer.is_all);
        let found: pb::Result = answer.message();
        assert_eq!(found.name, ask.name);
        assert_eq!(!found.uid.is_empty(), has_uid);
    }
    let empty = raw.call("DeleteResult", &[("fields", "name")], &ask).await;
    assert_eq!(empty.status(), (0, false), "{empty:?}");
    assert_eq!(empty.data.concat(), [0; 5], "an empty message is a message");
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_that_may_be_tried_again_says_when_in_its_details() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let users = folder.path().join("users.toml");
    let hash = hindsight_access::auth::token_hash("ann");
    let text = format!(
        "[[users]]\nname = 'ann'\nsha256 = ['{hash}']\ngrants = [{{parents = ['*'], role = 'admin'}}]"
    );
    std::fs::write(&users, text).unwrap();
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", users.to_str().unwrap()),
        ("caller_max_rate", "1"),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let mut raw = Raw::connect(&server).await;
    let ask = pb::GetResultRequest {
        name: "ci/results/none".to_owned(),
    };
    for fields in [&[][..], &[("fields", "name")]] {
        let metadata: Vec<_> = [("authorization", "Bearer ann")]
            .iter()
            .chain(fields)
            .copied()
            .collect();
        let mut refused = raw.call("GetResult", &metadata, &ask).await;
        if refused.status() == (5, true) {
            refused = raw.call("GetResult", &metadata, &ask).await;
        }
        assert_eq!(refused.status(), (8, true), "{refused:?}");
        let details = refused.head["grpc-status-details-bin"].as_bytes();
        let details = tonic_types::pb::Status::decode(&*STANDARD_NO_PAD.decode(details).unwrap());
        let [detail] = details.unwrap().details.try_into().unwrap();
        assert_eq!(detail.type_url, "type.googleapis.com/google.rpc.RetryInfo");
    }
    server.stop().await;
}

#[tokio::test]
async fn reflection_tells_of_what_it_does_not_know_and_goes_on() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let raw = Raw::connect(&server).await;
    let asked = [
        MessageRequest::FileContainingSymbol("nope.Nope".to_owned()),
        MessageRequest::FileByFilename("nope.proto".to_owned()),
        MessageRequest::AllExtensionNumbersOfType("nope.X".to_owned()),
        MessageRequest::AllExtensionNumbersOfType("google.protobuf.MethodOptions".to_owned()),
        MessageRequest::FileContainingSymbol(
            "tekton.results.v1alpha2.Results.GetResult".to_owned(),
        ),
        MessageRequest::FileContainingSymbol("tekton.results.v1alpha2.Result.etag".to_owned()),
    ];
    let mut sender = raw.0.clone().ready().await.unwrap();
    let (answer, mut body) = sender
        .send_request(Raw::request(REFLECTION, &[]), false)
        .unwrap();
    for asked in &asked {
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(asked.clone()),
        };
        body.send_data(framed(&ask), false).unwrap();
    }
    body.send_data(Bytes::new(), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    let mut all = BytesMut::new();
    while let Some(chunk) = body.data().await {
        all.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    let mut told = Vec::new();
    while !all.is_empty() {
        let size = u32::from_be_bytes(all[1..5].try_into().unwrap()) as usize;
        let message = all.split_to(5 + size).split_off(5);
        let answer = ServerReflectionResponse::decode(message).unwrap();
        told.push(match answer.message_response.unwrap() {
            MessageResponse::ErrorResponse(error) => format!("error {}", error.error_code),
            MessageResponse::FileDescriptorResponse(file) => {
                let [file] = file.file_descriptor_proto.try_into().unwrap();
                let has_routes = file.windows(5).any(|part| part == b"/apis");
                format!(
                    "file {}",
                    if has_routes { "with routes" } else { "without" }
                )
            }
            MessageResponse::AllExtensionNumbersResponse(of) => {
                format!("{} {:?}", of.base_type_name, of.extension_number)
            }
            other => panic!("{other:?}"),
        });
    }
    let http = "google.protobuf.MethodOptions [72295728]";
    assert_eq!(
        told,
        [
            "error 5",
            "error 5",
            "error 5",
            http,
            "file with routes",
            "file without"
        ]
    );
    server.stop().await;
}
