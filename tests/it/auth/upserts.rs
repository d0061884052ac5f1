//! Streams of records: leave is asked for each request, and one that is refused leaves the
//! others alone.

use hindsight_client::{Client, Options};
use hindsight_proto::{
    v1::{ResultState, UpsertRequest, upsert_outcome::Outcome},
    v1alpha2 as pb,
};

use tonic::Code;

use super::matrix::{IDENTITIES, Identity, given, record};
use crate::support::{Database, TestServer};

/// Requests about every parent: one about a record of a result that is there, one about a record
/// of a result that is not, one that says something of the result.
fn requests(parents: &[&str]) -> Vec<UpsertRequest> {
    let request = |parent: &str, id: &str, result| UpsertRequest {
        id: 0,
        record: Some(pb::Record {
            name: if id == "new" {
                format!("{parent}/results/new/records/new")
            } else {
                format!("{parent}/results/kept/records/{id}")
            },
            data: Some(pb::Any {
                r#type: "t".to_owned(),
                value: b"{}".as_slice().into(),
            }),
            ..pb::Record::default()
        }),
        result,
        ..UpsertRequest::default()
    };
    let said = ResultState {
        annotations: [("a".to_owned(), "b".to_owned())].into(),
        summary: None,
    };
    let all = parents.iter().flat_map(|parent| {
        [
            request(parent, "kept", None),
            request(parent, "new", None),
            request(parent, "said", Some(said.clone())),
        ]
    });
    (0..)
        .zip(all)
        .map(|(id, r)| UpsertRequest { id, ..r })
        .collect()
}

/// The codes of the three requests: 0 if they may.
fn expected(who: &Identity, parent: &str) -> [i32; 3] {
    let may = |resource: &str| {
        ["create", "update"].iter().all(|v| who.verbs.contains(v))
            && who.resources.contains(&resource)
            && (who.parent == "*" || who.parent == parent)
    };
    match who.token {
        _ if !may("records") => [7; 3],
        // Without leave for results none is made, and nothing is said of one.
        _ if !may("results") => [0, 5, 7],
        _ => [0; 3],
    }
}

#[tokio::test]
async fn leave_is_asked_for_each_request_of_a_stream() {
    let keeper = Identity {
        token: Some("keeper"),
        verbs: &["create", "update"],
        resources: &["records"],
        parent: "ci",
    };
    let everybody: Vec<_> = IDENTITIES.iter().chain([&keeper]).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let known = everybody.iter().filter(|who| who.token != Some("stranger"));
    let text: String = known.filter_map(|who| who.in_file()).collect();
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let parents = ["ci", "dev", "cluster/east/namespace/ci"];
    for who in everybody {
        let database = Database::sqlite();
        given(&database).await;
        let more = [("auth", "tokens"), ("auth_tokens_file", path.as_str())];
        let server = TestServer::start_with(&database, &more).await;
        let options = Options {
            token: who.token.map(str::to_owned),
            ..Options::new(&server.url)
        };
        let mut rpc = Client::new(&options).unwrap().ingest();
        let asked = requests(&parents);
        let answers = rpc.upsert(tokio_stream::iter(asked.clone())).await;
        let wanted: Vec<_> = parents.iter().flat_map(|p| expected(who, p)).collect();
        if matches!(who.token, None | Some("stranger")) {
            // Nothing of their stream is read.
            let status = answers.unwrap_err();
            assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
            server.stop().await;
            continue;
        }
        let mut answers = answers.unwrap().into_inner();
        let mut codes = vec![-1; asked.len()];
        while let Some(answer) = answers.message().await.unwrap() {
            for outcome in answer.outcomes {
                codes[usize::try_from(outcome.id).unwrap()] = match outcome.outcome.unwrap() {
                    Outcome::Stored(_) => 0,
                    Outcome::Refused(refused) => refused.code,
                };
            }
        }
        assert_eq!(codes, wanted, "{:?}", who.token);
        server.stop().await;

        // Nothing that was refused has happened.
        let open = TestServer::start(&database).await;
        for (request, code) in asked.iter().zip(codes) {
            let name = &request.record.as_ref().unwrap().name;
            let kept = parents.iter().any(|parent| *name == record(parent, "kept"));
            let there = open.get_record(name).await.is_ok();
            assert_eq!(there, code == 0 || kept, "{name} by {:?}", who.token);
        }
        open.stop().await;
    }
}
