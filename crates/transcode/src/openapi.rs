//! The OpenAPI 3.1 description of the routes, with the comments of the .proto files.

use std::collections::BTreeMap;

use prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::{
    BESIDE, FIELDS,
    dialect::{Dialect, Enums, First, Names},
    raw,
    routes::{Body, Route, Routes},
    sse,
};

/// What a part of a name looks like, as `hindsight_proto::names` reads it.
const PART: &str = "[A-Za-z0-9._~-]{1,63}";
/// Of the first part of a path, where it may be several.
const SEGMENTS: &str = "A parent, such as `ci`, or one of several segments, such as \
                        `cluster/east/namespace/ci`; no segment is `results` or `records`. In lists `-` \
                        is every parent.";
/// Numbers of requests that have bounds.
const BOUNDED: [&str; 2] = ["page_size", "limit"];
const MOST: u32 = 10_000;

pub(super) fn describe(routes: &Routes) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes.all() {
        let (path, _) = route.template.spelled();
        let verb = route.verb.as_str().to_ascii_lowercase();
        let mut operation = operation(route, &mut schemas);
        let name = route.method.name();
        if routes
            .all()
            .iter()
            .filter(|other| other.method.name() == name)
            .count()
            > 1
        {
            operation["operationId"] = route.method.full_name().replace('.', "_").into();
        }
        paths.entry(path).or_default().insert(verb, operation);
    }
    let mut components = schemas.done;
    components.insert(
        "Error".to_owned(),
        json!({
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "integer", "description": "Number of the gRPC code."},
                "message": {"type": "string"},
            },
        }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Hindsight", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    })
}

/// The parameters that stand in the path.
fn parts_of_path(route: &Route) -> Vec<Value> {
    let (_, names) = route.template.spelled();
    names
        .into_iter()
        .enumerate()
        .map(|(position, name)| {
            let is_wide = position == 0 && route.dialect.first == First::Segments;
            let pattern = if is_wide {
                format!("^{PART}(/{PART})*$")
            } else {
                format!("^{PART}$")
            };
            let schema = json!({"type": "string", "pattern": pattern});
            let mut parameter =
                json!({"name": name, "in": "path", "required": true, "schema": schema});
            if is_wide {
                parameter["description"] = SEGMENTS.into();
            }
            parameter
        })
        .collect()
}

/// What is given beside the body: parts of the path, fields of the message, and what every call takes.
fn parameters(route: &Route, schemas: &mut Schemas) -> Vec<Value> {
    let (method, dialect) = (&route.method, &route.dialect);
    let mut parameters = parts_of_path(route);
    if route.body != Body::Message {
        for field in method.input().fields() {
            let in_path = route
                .template
                .fields()
                .any(|bound| bound.rsplit('.').next() == Some(field.name()));
            let in_body = route.body == Body::Field(field.clone());
            if !in_path && !in_body {
                let mut schema = schemas.of(&field, dialect);
                if dialect.has_extras && BOUNDED.contains(&field.name()) {
                    schema["minimum"] = 0.into();
                    schema["maximum"] = MOST.into();
                }
                let mut parameter = json!({
                    "name": spelled(&field, dialect),
                    "in": "query",
                    "schema": schema,
                });
                describe_by(&mut parameter, &field.parent_file(), field.path());
                parameters.push(parameter);
            }
        }
    }
    if !dialect.has_extras {
        return parameters;
    }
    if method.input().get_field_by_name("filter").is_some() {
        for (_, [name, _], what) in BESIDE {
            parameters.push(json!({
                "name": name,
                "in": "query",
                "schema": {"type": "string"},
                "description": what,
            }));
        }
    }
    parameters.push(json!({
        "name": FIELDS,
        "in": "query",
        "schema": {"type": "string"},
        "description": "Comma-separated paths of the fields to answer with; all if empty.",
    }));
    parameters
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let method = &route.method;
    let dialect = &route.dialect;
    let parameters = parameters(route, schemas);
    let (form, reply) = match method.is_server_streaming() {
        true if raw::is_raw(route) => ("text/plain", json!({"type": "string"})),
        true => (
            sse::CONTENT_TYPE,
            schemas.message(&method.output(), dialect),
        ),
        false => (
            "application/json",
            schemas.message(&method.output(), dialect),
        ),
    };
    let mut operation = json!({
        "operationId": method.name(),
        "tags": [method.parent_service().name()],
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done.", "content": {form: {"schema": reply}}},
            "default": {
                "description": "Refused.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                },
            },
        },
    });
    let body = match &route.body {
        Body::Ignored => None,
        Body::Message => Some(schemas.message(&method.input(), dialect)),
        Body::Field(field) => Some(schemas.of(field, dialect)),
    };
    if let Some(schema) = body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    describe_by(
        &mut operation,
        &method.parent_service().parent_file(),
        method.path(),
    );
    operation
}

fn spelled(field: &FieldDescriptor, dialect: &Dialect) -> String {
    match dialect.names {
        Names::Snake => field.name().to_owned(),
        Names::Camel => field.json_name().to_owned(),
    }
}

/// Adds what the .proto file says of the thing at `path`.
fn describe_by(thing: &mut Value, file: &FileDescriptor, path: &[i32]) {
    let comment = file
        .file_descriptor_proto()
        .source_code_info
        .as_ref()
        .and_then(|info| info.location.iter().find(|location| location.path == path))
        .and_then(|location| location.leading_comments.as_deref());
    if let Some(comment) = comment {
        let lines: Vec<_> = comment.lines().map(str::trim).collect();
        thing["description"] = lines.join(" ").trim().into();
    }
}

/// The schemas of the messages met so far, by full name.
#[derive(Debug, Default)]
struct Schemas {
    done: BTreeMap<String, Value>,
}

impl Schemas {
    fn of(&mut self, field: &FieldDescriptor, dialect: &Dialect) -> Value {
        if field.is_map()
            && let Kind::Message(entry) = field.kind()
        {
            let values = self.of(&entry.map_entry_value_field(), dialect);
            return json!({"type": "object", "additionalProperties": values});
        }
        let one = self.kind(&field.kind(), dialect);
        if field.is_list() {
            json!({"type": "array", "items": one})
        } else {
            one
        }
    }

    fn kind(&mut self, kind: &Kind, dialect: &Dialect) -> Value {
        match kind {
            Kind::Bool => json!({"type": "boolean"}),
            Kind::String => json!({"type": "string"}),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Kind::Float | Kind::Double => json!({"type": "number"}),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Uint32 | Kind::Fixed32 => {
                json!({"type": "integer", "format": "int32"})
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => {
                json!({"type": "string", "format": "int64"})
            }
            Kind::Enum(of) => match dialect.enums {
                Enums::Name => {
                    let names: Vec<_> = of.values().map(|v| v.name().to_owned()).collect();
                    json!({"type": "string", "examples": names})
                }
                Enums::Number => json!({"type": "integer", "format": "int32"}),
            },
            Kind::Message(of) => self.message(of, dialect),
        }
    }

    fn message(&mut self, message: &MessageDescriptor, dialect: &Dialect) -> Value {
        match message.full_name() {
            "google.protobuf.Timestamp" => return json!({"type": "string", "format": "date-time"}),
            "google.protobuf.Duration" | "google.protobuf.FieldMask" => {
                return json!({"type": "string"});
            }
            "google.protobuf.Empty" | "google.protobuf.Struct" | "google.protobuf.Any" => {
                return json!({"type": "object"});
            }
            name if name.starts_with("google.protobuf.") => return json!({}),
            _ => {}
        }
        let name = message.full_name().to_owned();
        if !self.done.contains_key(&name) {
            // Known before its fields are looked at, so that a message may contain itself.
            self.done.insert(name.clone(), Value::Null);
            let mut properties = Map::new();
            for field in message.fields() {
                let mut schema = self.of(&field, dialect);
                describe_by(&mut schema, &message.parent_file(), field.path());
                properties.insert(spelled(&field, dialect), schema);
            }
            let mut schema = json!({"type": "object", "properties": properties});
            describe_by(&mut schema, &message.parent_file(), message.path());
            self.done.insert(name.clone(), schema);
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }
}

#[cfg(test)]
mod tests {
    use hindsight_proto::FILE_DESCRIPTOR_SET;
    use prost_reflect::DescriptorPool;

    use super::*;

    fn described() -> Value {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        describe(&Routes::read(&pool).unwrap())
    }

    /// Every `$ref` in `value`.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    found.push(to.clone());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_route_is_described_and_every_reference_leads_somewhere() {
        let described = described();
        let paths = described["paths"].as_object().unwrap();
        let operations: usize = paths.values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(operations, 33);
        let mut found = Vec::new();
        references(&described, &mut found);
        assert!(found.len() > 11, "{found:?}");
        for to in found {
            let pointer = to.strip_prefix('#').unwrap();
            assert!(
                described.pointer(pointer).is_some_and(Value::is_object),
                "{to}"
            );
        }
    }

    #[test]
    fn a_parent_may_have_several_segments_and_other_parts_of_names_may_not() {
        let described = described();
        let path = "/apis/results.tekton.dev/v1alpha2/parents/{parent}/results/{result}";
        let parameters = &described["paths"][path]["get"]["parameters"];
        let fits = |at: usize, text: &str| {
            let pattern = parameters[at]["schema"]["pattern"].as_str().unwrap();
            regex_automata::meta::Regex::new(pattern)
                .unwrap()
                .is_match(text)
        };
        for parent in ["ci", "-", "cluster/east/namespace/ci"] {
            assert!(
                fits(0, parent) && fits(1, parent) != parent.contains('/'),
                "{parent}"
            );
        }
        for bad in ["", "/", "a/", "a b", "a//b"] {
            assert!(!fits(0, bad) && !fits(1, bad), "{bad}");
        }
    }

    #[test]
    fn an_operation_names_its_parameters_and_its_body() {
        let described = described();
        let path = "/apis/results.tekton.dev/v1alpha2/parents/{parent}/results/{result}/records";
        let parameters = |verb: &str| -> Vec<String> {
            let operation = &described["paths"][path][verb];
            let all = operation["parameters"].as_array().unwrap();
            let name = |p: &Value| format!("{}:{}", p["in"], p["name"]).replace('"', "");
            all.iter().map(name).collect()
        };
        assert_eq!(
            parameters("get"),
            [
                "path:parent",
                "path:result",
                "query:filter",
                "query:page_size",
                "query:page_token",
                "query:order_by",
                "query:labelSelector",
                "query:fieldSelector",
                "query:filterLanguage",
                "query:fields",
            ]
        );
        assert_eq!(
            parameters("post"),
            ["path:parent", "path:result", "query:fields"]
        );
        let body = &described["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let record = "#/components/schemas/tekton.results.v1alpha2.Record";
        assert_eq!(body["schema"]["$ref"], record);
        let record = &described["components"]["schemas"]["tekton.results.v1alpha2.Record"];
        let value = &record["properties"]["create_time"];
        assert_eq!(value["format"], "date-time");
        assert_eq!(
            value["description"],
            "When the server stored the Record first."
        );
    }
}
