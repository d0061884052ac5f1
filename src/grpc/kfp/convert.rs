//! Messages of the pipeline service, to and from what they say.

use hindsight_kfp::{
    AskedPipeline, AskedVersion,
    model::{Change, Pipeline, PipelineVersion, Tags},
    query::ListAsk,
};
use hindsight_proto::{kubeflow_v2beta1 as pb, rpc, time::to_wire};
use prost_types::{ListValue, Struct, Value, value::Kind};
use tonic::metadata::MetadataMap;

/// The metadata by which an update says that empty tags are meant.
const CLEAR_TAGS: &str = "x-clear-tags";

pub(super) fn pipeline(pipeline: Pipeline) -> pb::Pipeline {
    pb::Pipeline {
        pipeline_id: pipeline.id,
        display_name: pipeline.display_name,
        description: pipeline.description,
        created_at: Some(to_wire(pipeline.created_at)),
        namespace: pipeline.namespace,
        error: None,
        name: pipeline.name,
        tags: pipeline.tags,
    }
}

pub(super) fn version(version: PipelineVersion) -> pb::PipelineVersion {
    let (pipeline_spec, error) = match &version.spec {
        Ok(spec) => (structure(&spec.shown()), None),
        Err(why) => (None, Some(broken(why))),
    };
    let package_url = (!version.package_url.is_empty()).then_some(pb::Url {
        pipeline_url: version.package_url,
    });
    pb::PipelineVersion {
        pipeline_id: version.pipeline_id,
        pipeline_version_id: version.id,
        display_name: version.display_name,
        description: version.description,
        created_at: Some(to_wire(version.created_at)),
        package_url,
        pipeline_spec,
        error,
        code_source_url: version.code_source_url,
        name: version.name,
        tags: version.tags,
    }
}

fn broken(why: &str) -> rpc::Status {
    rpc::Status {
        code: 13,
        message: format!("the stored pipeline spec cannot be read: {why}"),
        details: Vec::new(),
    }
}

/// An object of JSON; nothing of another value.
fn structure(value: &serde_json::Value) -> Option<Struct> {
    let fields = value.as_object()?.iter();
    let fields = fields.map(|(key, value)| (key.clone(), value_of(value)));
    Some(Struct {
        fields: fields.collect(),
    })
}

fn value_of(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(*value),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text.clone()),
        Json::Array(items) => Kind::ListValue(ListValue {
            values: items.iter().map(value_of).collect(),
        }),
        Json::Object(_) => Kind::StructValue(structure(value).unwrap_or_default()),
    };
    Value { kind: Some(kind) }
}

pub(super) fn asked_pipeline(message: Option<pb::Pipeline>) -> AskedPipeline {
    let message = message.unwrap_or_default();
    AskedPipeline {
        namespace: message.namespace,
        name: message.name,
        display_name: message.display_name,
        description: message.description,
        tags: message.tags,
    }
}

pub(super) fn asked_version(message: pb::PipelineVersion) -> AskedVersion {
    AskedVersion {
        name: message.name,
        display_name: message.display_name,
        description: message.description,
        tags: message.tags,
        code_source_url: message.code_source_url,
    }
}

/// What an update changes: what is not empty, and tags also where the metadata says that they are meant to be.
pub(super) fn change(metadata: &MetadataMap, display_name: String, tags: Tags) -> Change {
    let cleared = metadata.get(CLEAR_TAGS);
    let cleared = cleared.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    Change {
        display_name: (!display_name.is_empty()).then_some(display_name),
        tags: (cleared || !tags.is_empty()).then_some(tags),
    }
}

pub(super) fn list_ask(
    (page_token, page_size): (String, i32),
    sort_by: String,
    filter: String,
) -> ListAsk {
    ListAsk {
        page_token,
        page_size,
        sort_by,
        filter,
    }
}

pub(super) fn total(total: u64) -> i32 {
    i32::try_from(total).unwrap_or(i32::MAX)
}
