//! The wire of `tekton.results.v1alpha2`, compared with a table of upstream's descriptors.

use std::collections::BTreeMap;

use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor,
};
use serde_json::{Map, Value, json};

use crate::FILE_DESCRIPTOR_SET;

/// Messages, enums, services and routes of upstream.
const UPSTREAM: &str = include_str!("../testdata/tekton-results-v1alpha2.json");
const PACKAGE: &str = "tekton.results.v1alpha2";
fn kind(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(of) => format!("message {}", of.full_name()),
        Kind::Enum(of) => format!("enum {}", of.full_name()),
        Kind::Bytes => "bytes".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::Int32 => "int32".to_owned(),
        Kind::Int64 => "int64".to_owned(),
        other => format!("{other:?}"),
    }
}

fn message(message: &MessageDescriptor) -> Value {
    let field = |field: FieldDescriptor| {
        let options = field.field_descriptor_proto().options.as_ref();
        // Entries of maps are messages of their own in the table; their fields are plain.
        let about = json!({
            "deprecated": options.is_some_and(|options| options.deprecated()),
            "number": field.number(),
            "repeated": field.is_list() || field.is_map(),
            "type": kind(&field),
        });
        (field.name().to_owned(), about)
    };
    message.fields().map(field).collect::<Map<_, _>>().into()
}

fn numbers(of: &EnumDescriptor) -> Value {
    let number = |value: prost_reflect::EnumValueDescriptor| {
        (value.name().to_owned(), Value::from(value.number()))
    };
    of.values().map(number).collect::<Map<_, _>>().into()
}

fn route(rule: &DynamicMessage) -> Value {
    let text = |name: &str| match rule.get_field_by_name(name).as_deref() {
        Some(prost_reflect::Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let verb = ["get", "put", "post", "delete", "patch"]
        .into_iter()
        .find(|verb| !text(verb).is_empty())
        .unwrap();
    json!({"body": text("body"), "method": verb.to_uppercase(), "path": text(verb)})
}

fn method(method: &MethodDescriptor) -> Value {
    let http = method
        .parent_pool()
        .get_extension_by_name("google.api.http");
    let option = method.options().get_extension(&http.unwrap()).into_owned();
    let mut routes = Vec::new();
    if let prost_reflect::Value::Message(rule) = option
        && rule.fields().next().is_some()
    {
        routes.push(route(&rule));
        let more = rule.get_field_by_name("additional_bindings").unwrap();
        let more = more.as_list().unwrap().iter();
        routes.extend(more.map(|rule| route(rule.as_message().unwrap())));
    }
    json!({
        "client_streaming": method.is_client_streaming(),
        "http": routes,
        "request": method.input().full_name(),
        "response": method.output().full_name(),
        "server_streaming": method.is_server_streaming(),
    })
}

fn ours() -> BTreeMap<String, Value> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut found = BTreeMap::new();
    for of in pool.all_messages() {
        found.insert(of.full_name().to_owned(), message(&of));
    }
    for of in pool.all_enums() {
        found.insert(of.full_name().to_owned(), numbers(&of));
    }
    for service in pool.services() {
        let methods: Map<_, _> = service
            .methods()
            .map(|of| (of.name().to_owned(), method(&of)))
            .collect();
        found.insert(service.full_name().to_owned(), methods.into());
    }
    found.retain(|name, _| name.starts_with(PACKAGE));
    found
}

#[test]
fn everything_has_the_numbers_types_and_routes_of_upstream() {
    let table: Map<String, Value> = serde_json::from_str(UPSTREAM).unwrap();
    let mut upstream = BTreeMap::new();
    for part in ["messages", "enums", "services"] {
        let Value::Object(part) = &table[part] else {
            panic!("the table has {part}");
        };
        upstream.extend(part.clone());
    }
    let ours = ours();
    for (name, expected) in &upstream {
        assert_eq!(ours.get(name), Some(expected), "{name}");
    }
    let more: Vec<_> = ours
        .keys()
        .filter(|name| !upstream.contains_key(*name))
        .collect();
    assert!(
        more.is_empty(),
        "additions belong to hindsight.v1: {more:?}"
    );
}
