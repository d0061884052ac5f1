//! `hindsight.v1.Queries/Aggregate`: what is measured, on both databases, by REST and gRPC.

use hindsight_proto::v1::{AggregateRequest, AggregateResponse};
use prost_types::{Struct, value::Kind};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::support::{
    http::Http,
    objects::{TASK_RUN, bytes, task_run},
    server::{TestServer, on_each, refused},
};

/// A message as REST tells it, with all that is empty.
pub fn told(reply: &AggregateResponse) -> Value {
    let groups = reply.groups.iter().map(|group| {
        let mut told = json!({
            "keys": fields(group.keys.as_ref()),
            "measures": fields(group.measures.as_ref()),
        });
        if !group.approximate.is_empty() {
            told["approximate"] = json!(group.approximate);
        }
        told
    });
    groups.collect()
}

fn fields(of: Option<&Struct>) -> Value {
    let fields = of.unwrap().fields.iter().map(|(name, value)| {
        let value = match value.kind.as_ref().unwrap() {
            Kind::NumberValue(number) => json!(number),
            Kind::StringValue(text) => json!(text),
            Kind::BoolValue(truth) => json!(truth),
            Kind::NullValue(_) => Value::Null,
            other => panic!("{other:?}"),
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}

pub async fn aggregate(
    server: &TestServer,
    request: AggregateRequest,
) -> Result<AggregateResponse, Status> {
    let reply = server.client().queries().aggregate(request).await?;
    Ok(reply.into_inner())
}

fn ask(by: &str, measures: &str) -> AggregateRequest {
    AggregateRequest {
        parent: "-/results/-".to_owned(),
        group_by: vec![by.to_owned()],
        measures: vec![measures.to_owned()],
        ..AggregateRequest::default()
    }
}

/// Runs of two teams around the night in which clocks are set forward in Berlin.
async fn given(server: &TestServer) {
    for (n, created, queue, took, reason) in [
        (0, "2026-03-28T22:30:00Z", 1, 60, "Succeeded"),
        (1, "2026-03-28T23:30:00Z", 2, 61, "Failed"),
        (2, "2026-03-29T21:59:59.999999Z", 3, 62, "Succeeded"),
        (3, "2026-03-29T22:00:00Z", 4, 63, "TaskRunTimeout"),
        (4, "2026-03-29T22:00:00Z", 5, 64, "TaskRunCancelled"),
    ] {
        let mut run = task_run(&format!("b-{n}"), reason);
        let created: jiff::Timestamp = created.parse().unwrap();
        let after = |seconds: i64| (created + jiff::SignedDuration::from_secs(seconds)).to_string();
        run["metadata"]["creationTimestamp"] = json!(created.to_string());
        run["metadata"]["labels"]["team"] = json!(if n % 2 == 0 { "a" } else { "b" });
        run["metadata"]["annotations"] = json!({"commit": format!("c{}", n / 2)});
        run["spec"]["params"] =
            json!([{"name": "env", "value": if n < 3 { "prod" } else { "test" }}]);
        run["status"]["startTime"] = json!(after(queue));
        run["status"]["completionTime"] = json!(after(queue + took));
        let name = format!("ci/results/r/records/{n}");
        server.given_record(&name, TASK_RUN, &bytes(&run)).await;
    }
    server
        .given_record("ci/results/r/records/log", "other", b"\"no run\"")
        .await;
}

#[tokio::test]
async fn groups_are_measured() {
    on_each(|server| async move {
        given(&server).await;
        let mut request = ask(
            "label(team)",
            "count,success_rate,p50(duration),max(queue),failed",
        );
        request.filter = "data_type == TASK_RUN".to_owned();
        let reply = aggregate(&server, request).await.unwrap();
        assert_eq!(
            told(&reply),
            json!([
                {
                    "keys": {"label(team)": "a"},
                    "measures": {"count": 3.0, "success_rate": 1.0, "p50(duration)": 62.0,
                                 "max(queue)": 5.0, "failed": 0.0},
                },
                {
                    "keys": {"label(team)": "b"},
                    "measures": {"count": 2.0, "success_rate": 0.0, "p50(duration)": 61.0,
                                 "max(queue)": 4.0, "failed": 1.0},
                },
            ])
        );
        assert_eq!((reply.records, reply.groups_left_out), (5, 0));
        // A record that is no run counts, and has no time to measure.
        let reply = aggregate(
            &server,
            ask("", "count,avg(duration),last(started),unfinished"),
        )
        .await
        .unwrap();
        assert_eq!(
            told(&reply),
            json!([{"keys": {}, "measures": {
                "count": 6.0, "avg(duration)": 62.0, "last(started)": "2026-03-29T22:00:05Z",
                "unfinished": 0.0,
            }}])
        );
    })
    .await;
}

#[tokio::test]
async fn days_begin_where_the_zone_says() {
    on_each(|server| async move {
        given(&server).await;
        for (zone, wanted) in [
            ("", json!(["2026-03-28T00:00:00Z", "2026-03-29T00:00:00Z"])),
            (
                "Europe/Berlin",
                json!([
                    "2026-03-28T00:00:00+01:00",
                    "2026-03-29T00:00:00+01:00",
                    "2026-03-30T00:00:00+02:00"
                ]),
            ),
        ] {
            let mut request = ask("day", "count,first(created)");
            request.time_zone = zone.to_owned();
            request.filter = "data_type == TASK_RUN".to_owned();
            let reply = told(&aggregate(&server, request.clone()).await.unwrap());
            let days: Vec<_> = reply
                .as_array()
                .unwrap()
                .iter()
                .map(|g| g["keys"]["day"].clone())
                .collect();
            assert_eq!(json!(days), wanted);
            // The same from payloads.
            request.filter += " && size(data.kind) > 0";
            assert_eq!(told(&aggregate(&server, request).await.unwrap()), reply);
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_database_measures_is_what_payloads_say() {
    on_each(|server| async move {
        given(&server).await;
        let all = "count,succeeded,failed,timed_out,cancelled,unfinished,success_rate,avg(duration),\
                   min(duration),max(queue),sum(duration),p50(duration),p99.9(queue),first(started),last(ended)";
        for by in [
            "", "pipeline,outcome", "hour(ended),kind", "label(team),day", "parent,result,record",
            "week,reason", "type,month(stored)", "data.metadata.namespace,year(updated)",
        ] {
            let mut pushed = ask(by, all);
            pushed.filter = "uid != ''".to_owned();
            let mut evaluated = pushed.clone();
            evaluated.filter = "size(uid) > 0".to_owned();
            let pushed = aggregate(&server, pushed).await.unwrap();
            assert!(!pushed.groups.is_empty());
            assert_eq!(pushed, aggregate(&server, evaluated).await.unwrap(), "{by}");
        }
        // What only payloads know.
        let reply = aggregate(&server, ask("param(env), annotation(commit)", "count")).await.unwrap();
        let counts: Vec<_> = reply.groups.iter().map(|g| fields(g.keys.as_ref())).collect();
        let group = |env: Value, commit: Value| json!({"param(env)": env, "annotation(commit)": commit});
        assert_eq!(
            counts,
            [
                group(Value::Null, Value::Null),
                group(json!("prod"), json!("c0")),
                group(json!("prod"), json!("c1")),
                group(json!("test"), json!("c1")),
                group(json!("test"), json!("c2")),
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn groups_are_chosen_ordered_and_limited() {
    on_each(|server| async move {
        given(&server).await;
        let mut request = ask("outcome", "count,p95(duration)");
        request.filter = "data_type == TASK_RUN".to_owned();
        request.having = "p95(duration) > 1m && last(created) >= '2026-03-28T23:00:00Z'".to_owned();
        request.order_by = "count desc, outcome desc".to_owned();
        request.limit = 3;
        let reply = aggregate(&server, request.clone()).await.unwrap();
        let order: Vec<_> = reply
            .groups
            .iter()
            .map(|g| fields(g.keys.as_ref())["outcome"].clone())
            .collect();
        assert_eq!(order, ["SUCCESS", "CANCELLED", "TIMEOUT"]);
        assert_eq!(reply.groups_left_out, 1);
        request.having = "count > 1".to_owned();
        assert_eq!(
            aggregate(&server, request.clone())
                .await
                .unwrap()
                .groups
                .len(),
            1
        );
        request.having = "count > x".to_owned();
        let answer = aggregate(&server, request).await;
        refused(
            answer,
            Code::InvalidArgument,
            "having column 1: `x` cannot be compared",
        );
    })
    .await;
}

#[tokio::test]
async fn rest_answers_the_same_question() {
    on_each(|server| async move {
        given(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = "/apis/hindsight.dev/v1/parents/ci/results/-/aggregate?groupBy=pipeline&groupBy=day\
                    &measures=count,success_rate&filter=data_type%20%3D%3D%20TASK_RUN&orderBy=count%20desc&limit=1";
        let reply = http.send("GET", path, &[], "").await;
        assert_eq!(
            reply.ok(),
            json!({
                "groups": [{
                    "keys": {"pipeline": "nightly", "day": "2026-03-29T00:00:00Z"},
                    "measures": {"count": 3, "success_rate": 0.5},
                }],
                "groupsLeftOut": "1",
                "records": "5",
            })
        );
        let wrong = "/apis/hindsight.dev/v1/parents/ci/results/-/aggregate?measures=mean";
        let reply = http.send("GET", wrong, &[], "").await;
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains("measures `mean` is not known"), "{}", reply.text());
    })
    .await;
}
