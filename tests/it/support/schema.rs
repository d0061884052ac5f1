//! Whether a JSON document is as a schema says. Members that a schema does not name are wrong.

use serde_json::Value;

/// What is wrong with a document; `root` is where references begin.
pub fn faults(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(root, schema, value, "$", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let place = reference.strip_prefix('#').unwrap();
        let referred = root.pointer(place);
        return check(root, referred.expect(reference), value, at, faults);
    }
    for one in schema["allOf"].as_array().into_iter().flatten() {
        check(root, one, value, at, faults);
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        faults.push(format!("{at}: {value} is none of {allowed:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_of(name, value)) {
        faults.push(format!("{at}: {value} is no {types:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        if value.is_object() && value.get(name).is_none() {
            faults.push(format!("{at}: has no {name}"));
        }
    }
    let properties = schema["properties"].as_object();
    let more = &schema["additionalProperties"];
    for (name, part) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (properties.and_then(|known| known.get(name)), more) {
            (Some(known), _) => check(root, known, part, &at, faults),
            (None, Value::Object(_)) => check(root, more, part, &at, faults),
            (None, Value::Bool(true)) => {}
            (None, _) if properties.is_none() => {}
            (None, _) => faults.push(format!("{at}: is not in the schema")),
        }
    }
    if let Some(items) = schema.get("items") {
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            check(root, items, item, &format!("{at}[{number}]"), faults);
        }
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("a schema names the type {other}"),
    }
}
