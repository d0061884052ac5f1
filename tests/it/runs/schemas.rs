//! What commands print as JSON is as docs/cli.schema.json and the OpenAPI document say.

use serde_json::{Value, json};

use super::seeds::{given_old, given_recent};
use crate::support::{Database, TestServer, http::Http, process::run, schema::faults};

/// Commands, and where their schema is: in the file, or that of a message.
const COMMANDS: [(&str, &str); 13] = [
    ("runs -A --columns run,label:team", "/$defs/runs"),
    ("runs -A name:nothing", "/$defs/runs"),
    ("list runs -A", "/$defs/list-runs"),
    ("list records -A --limit 2", "/$defs/list-records"),
    ("list results -A", "/$defs/list-results"),
    ("get run release-42 -n shop", "/$defs/get-run"),
    (
        "get record shop/results/release-42/records/release-42",
        "/$defs/get-record",
    ),
    ("get result shop/results/release-42", "/$defs/get-result"),
    ("stats -A --by pipeline,day,label(team)", "/$defs/stats"),
    ("top -A --since 1990-01-01", "/$defs/top"),
    (
        "describe release-44 -n shop",
        "/components/schemas/hindsight.v1.RunTree",
    ),
    (
        "why release-44 -n shop",
        "/components/schemas/hindsight.v1.FailureExplanation",
    ),
    (
        "diff release-44 -n shop",
        "/components/schemas/hindsight.v1.RunDiff",
    ),
];
const RECENT: [(&str, &str); 2] = [
    (
        "slow -A",
        "/components/schemas/hindsight.v1.ListRegressionsResponse",
    ),
    (
        "flaky -A",
        "/components/schemas/hindsight.v1.ListFlakyResponse",
    ),
];

/// The schema of this place, with the document that it is part of.
fn found<'a>(documents: [&'a Value; 2], place: &str) -> (&'a Value, &'a Value) {
    let mut found = documents
        .into_iter()
        .filter_map(|root| Some((root, root.pointer(place)?)));
    found.next().unwrap_or_else(|| panic!("no schema {place}"))
}

async fn checked(server: &TestServer, commands: &[(&str, &str)]) -> Vec<String> {
    let file: Value = serde_json::from_str(include_str!("../../../docs/cli.schema.json")).unwrap();
    let mut http = Http::one(&server.url).await;
    let api = http.send("GET", "/openapi.json", &[], "").await.ok();
    let mut wrong = Vec::new();
    for (line, place) in commands {
        let mut arguments: Vec<_> = line.split(' ').collect();
        arguments.extend(["-o", "json", "--server", &server.url]);
        let said = run(&arguments).await;
        assert_eq!(said.code, 0, "{line}: {said:?}");
        let told: Value = serde_json::from_str(&said.out).unwrap();
        let (root, schema) = found([&file, &api], place);
        let faults = faults(root, schema, &told);
        wrong.extend(faults.into_iter().map(|fault| format!("{line}: {fault}")));
    }
    wrong
}

#[tokio::test]
async fn json_is_as_its_schema_says() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    let wrong = checked(&server, &COMMANDS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    given_recent(&server).await;
    let wrong = checked(&server, &RECENT).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, more) in [("release-42", &[][..]), ("release-44", &["--for", "90d"])] {
        let hold = ["hold", "add", name, "-n", "shop", "--reason", "an audit"];
        let said = run(&[&hold, more, &["--server", &server.url]].concat()).await;
        said.prints(0, "held");
    }
    let wrong = checked(&server, &[("hold list -A", "/$defs/hold-list")]).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
    database.remove().await;
}

#[test]
fn a_document_that_is_not_as_the_schema_says_is_found() {
    let file: Value = serde_json::from_str(include_str!("../../../docs/cli.schema.json")).unwrap();
    let schema = &file["$defs"]["stats"];
    let good = json!({"groups": [{"keys": {"pipeline": "a"}, "measures": {"count": 1}}],
        "groupsLeftOut": 0, "records": 1, "relativeError": 0.01});
    assert_eq!(faults(&file, schema, &good), [""; 0]);
    for (place, value, fault) in [
        (
            "/groups/0/keys",
            json!({"a": []}),
            "$.groups[0].keys.a: [] is no",
        ),
        (
            "/groups/0",
            json!({"keys": {}}),
            "$.groups[0]: has no measures",
        ),
        ("/records", json!(1.5), "$.records: 1.5 is no"),
        ("", json!({"more": 1}), "$.more: is not in the schema"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value;
        let found = faults(&file, schema, &bad);
        assert!(found.iter().any(|it| it.starts_with(fault)), "{found:?}");
    }
    let status = &file["$defs"]["run"]["properties"]["status"];
    assert_eq!(faults(&file, status, &json!("bad")).len(), 1);
}
