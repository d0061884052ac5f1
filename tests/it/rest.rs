//! The REST API, asked as its clients ask and read as strictly as they read.

mod browser;
mod consoles;
mod fields;
mod protocol;
mod refusals;
mod tekton_cli;
mod writes;

use std::sync::LazyLock;

use hindsight_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, prost::Message};
use serde_json::Value;

use crate::support::{
    TestServer,
    http::{Http, Reply},
    objects::{PIPELINE_RUN, TASK_RUN, bytes, task_run},
};

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap());

/// Reads an answer as a message, refusing every field that the message does not have.
#[track_caller]
fn strictly<T: Message + Default>(reply: &Reply, message: &str) -> T {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    no_zeros(&reply.json(), &reply.text());
    let message = POOL
        .get_message_by_name(&format!("tekton.results.v1alpha2.{message}"))
        .unwrap();
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let mut input = serde_json::Deserializer::from_slice(&reply.body);
    let parsed = DynamicMessage::deserialize_with_options(message, &mut input, &options)
        .unwrap_or_else(|error| panic!("{error}: {}", reply.text()));
    input.end().unwrap();
    parsed.transcode_to().unwrap()
}

/// Outside of maps nothing is empty, and names are those of the .proto file.
#[track_caller]
fn no_zeros(value: &Value, whole: &str) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                assert!(!name.contains(char::is_uppercase), "{name} in {whole}");
                let empty = [Value::Null, "".into(), 0.into(), false.into()];
                assert!(!empty.contains(value), "{name} is empty in {whole}");
                if !matches!(name.as_str(), "annotations" | "summary") {
                    no_zeros(value, whole);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| no_zeros(item, whole)),
        _ => {}
    }
}

/// Two results of `ci`, the first with a PipelineRun and two TaskRuns, and one of `dev`.
async fn some_runs(server: &TestServer) {
    for (name, data_type, reason) in [
        ("ci/results/r1/records/p1", PIPELINE_RUN, "Succeeded"),
        ("ci/results/r1/records/t1", TASK_RUN, "Succeeded"),
        ("ci/results/r1/records/t2", TASK_RUN, "Failed"),
        ("ci/results/r2/records/p2", PIPELINE_RUN, "Failed"),
        ("dev/results/r3/records/p3", PIPELINE_RUN, "Succeeded"),
    ] {
        let id = name.rsplit('/').next().unwrap();
        let mut run = task_run(&format!("build-{id}"), reason);
        run["metadata"]["labels"]["tekton.dev/pipelineRun"] = "build-p1".into();
        if data_type == PIPELINE_RUN {
            run["kind"] = "PipelineRun".into();
        }
        server.given_record(name, data_type, &bytes(&run)).await;
    }
}

async fn http(server: &TestServer) -> Http {
    Http::one(&server.url).await
}

/// A path below the parents.
fn at(path: &str) -> String {
    crate::support::http::target(path, &[])
}
