//! The methods, what each takes by either protocol, and what is answered where there is nothing.

use serde_json::{Value, json};

use super::{QUERIES, STORED_LOGS};

/// A method, what it takes, how it is asked about the thing `id` below a parent, and what is
/// answered when there is no such thing.
pub(super) struct Case {
    pub(super) method: &'static str,
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) grpc: fn(&str, &str) -> Value,
    pub(super) rest: fn(&str, &str) -> (&'static str, String, Value),
    pub(super) missing: &'static [i32],
}

impl Case {
    /// Whether it can be asked of every parent at once.
    pub(super) fn lists(&self) -> bool {
        self.verb == "list" && !(self.grpc)("-", "-")["parent"].is_null()
    }
}

fn result(parent: &str, id: &str) -> String {
    format!("{parent}/results/{id}")
}

pub fn record(parent: &str, id: &str) -> String {
    format!("{parent}/results/{id}/records/{id}")
}

fn log(parent: &str, id: &str) -> String {
    format!("{parent}/results/{id}/logs/{id}")
}

/// What a create calls the thing that others do not find.
fn made(id: &str) -> &str {
    if id == "gone" { "made" } else { id }
}

/// A question about what has a name, as our own API is asked.
fn query(name: &str, question: &str) -> (&'static str, String, Value) {
    ("GET", format!("{QUERIES}{name}{question}"), Value::Null)
}

fn data(name: &str) -> Value {
    json!({"name": name, "data": {"type": "t", "value": "e30="}})
}

pub(super) const CASES: &[Case] = &[
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
        method: "CreateHold",
        verb: "update",
        resource: "results",
        grpc: |p, id| json!({"result": result(p, id), "reason": "an audit"}),
        rest: |p, id| {
            let path = format!("{QUERIES}{}/hold", result(p, id));
            ("POST", path, json!({"reason": "an audit"}))
        },
        missing: &[5],
    },
    Case {
        method: "DeleteHold",
        verb: "update",
        resource: "results",
        grpc: |p, id| json!({"result": result(p, id)}),
        rest: |p, id| {
            let path = format!("{QUERIES}{}/hold", result(p, id));
            ("DELETE", path, Value::Null)
        },
        missing: &[5],
    },
    Case {
        method: "ListHolds",
        verb: "list",
        resource: "results",
        grpc: |p, _| json!({"parent": p}),
        rest: |p, _| query(p, "/holds"),
        missing: &[0],
    },
    Case {
        method: "ListArchiveFiles",
        verb: "list",
        resource: "records",
        grpc: |p, _| json!({"parent": p}),
        rest: |p, _| query(p, "/archivefiles"),
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
    // A caller that may list may know how.
    Case {
        method: "Explain",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/explain"),
        missing: &[0],
    },
    // A caller that may list records may list runs.
    Case {
        method: "ListRuns",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/runs"),
        missing: &[0],
    },
    Case {
        method: "WatchRuns",
        verb: "list",
        resource: "records",
        // A stream has no end; one that is allowed is refused for its cursor.
        grpc: |p, id| json!({"parent": result(p, id), "cursor": "odd"}),
        rest: |p, id| query(&result(p, id), "/runs/changes?cursor=odd"),
        missing: &[3],
    },
    Case {
        method: "ListFlaky",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/flaky"),
        missing: &[0],
    },
    Case {
        method: "ListRegressions",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/regressions"),
        missing: &[0],
    },
    Case {
        method: "Suggest",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id), "kind": "NAME"}),
        rest: |p, id| query(&result(p, id), "/suggestions?kind=NAME"),
        missing: &[0],
    },
    // A caller that may list records may see what belongs together, and compare it.
    Case {
        method: "ExplainFailure",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"name": record(p, id)}),
        rest: |p, id| query(&record(p, id), "/failure"),
        missing: &[5],
    },
    Case {
        method: "GetRunTree",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"name": record(p, id)}),
        rest: |p, id| query(&record(p, id), "/tree"),
        missing: &[5],
    },
    Case {
        method: "DiffRuns",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"a": record(p, id), "b": record(p, id)}),
        rest: |p, id| {
            let path = format!("{QUERIES}{0}/diff?b={0}", record(p, id));
            ("GET", path, Value::Null)
        },
        missing: &[5],
    },
    // A caller that may list records may count them.
    Case {
        method: "Aggregate",
        verb: "list",
        resource: "records",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/aggregate"),
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
    Case {
        method: "GetLog",
        verb: "get",
        resource: "logs",
        grpc: |p, id| json!({"name": log(p, id)}),
        rest: |p, id| ("GET", log(p, id), Value::Null),
        missing: &[5],
    },
    Case {
        method: "ListLogs",
        verb: "list",
        resource: "logs",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| ("GET", format!("{}/logs", result(p, id)), Value::Null),
        missing: &[0],
    },
    Case {
        method: STORED_LOGS,
        verb: "list",
        resource: "logs",
        grpc: |p, id| json!({"parent": result(p, id)}),
        rest: |p, id| query(&result(p, id), "/logs"),
        missing: &[0],
    },
    Case {
        method: "DeleteLog",
        verb: "delete",
        resource: "logs",
        grpc: |p, id| json!({"name": log(p, id)}),
        rest: |p, id| ("DELETE", log(p, id), Value::Null),
        missing: &[5],
    },
    Case {
        method: "DescribeLog",
        verb: "get",
        resource: "logs",
        grpc: |p, id| json!({"name": log(p, id)}),
        rest: |p, id| query(&log(p, id), "/containers"),
        missing: &[5],
    },
    Case {
        method: "ReadLog",
        verb: "get",
        resource: "logs",
        grpc: |p, id| json!({"name": log(p, id)}),
        rest: |p, id| query(&log(p, id), "/lines"),
        missing: &[5],
    },
];
