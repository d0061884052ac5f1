//! The field mask of an update that came without one: what its body holds.

use std::collections::BTreeMap;

use prost_reflect::{Kind, MessageDescriptor};
use serde_json::value::RawValue;

/// The paths of the leaves of a JSON object that stands for `message`, in the names of the
/// .proto file and sorted. `null` and empty objects set nothing and name no leaf.
///
/// # Errors
/// If the object has a field that the message does not have, or is not JSON.
pub(super) fn leaves(json: &str, message: &MessageDescriptor) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    gather(json, message, "", &mut paths)?;
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn gather(
    json: &str,
    message: &MessageDescriptor,
    above: &str,
    paths: &mut Vec<String>,
) -> Result<(), String> {
    let fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    for (name, value) in fields {
        let field = message
            .get_field_by_name(&name)
            .or_else(|| message.get_field_by_json_name(&name))
            .ok_or_else(|| {
                format!(
                    "could not find field \"{name}\" in \"{}\"",
                    message.full_name()
                )
            })?;
        let value = value.get().trim();
        if value == "null" {
            continue;
        }
        let path = match above {
            "" => field.name().to_owned(),
            _ => format!("{above}.{}", field.name()),
        };
        match field.kind() {
            Kind::Message(below)
                if !field.is_list()
                    && !field.is_map()
                    && !below.full_name().starts_with("google.protobuf.") =>
            {
                gather(value, &below, &path, paths)?;
            }
            _ => paths.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hindsight_proto::FILE_DESCRIPTOR_SET;
    use prost_reflect::DescriptorPool;

    use super::*;

    #[track_caller]
    fn gives(json: &str, message: &str, expected: Result<&[&str], &str>) {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let name = format!("tekton.results.v1alpha2.{message}");
        let paths = leaves(json, &pool.get_message_by_name(&name).unwrap());
        let expected: Result<Vec<String>, String> = expected
            .map(|paths| paths.iter().map(|path| (*path).to_owned()).collect())
            .map_err(str::to_owned);
        assert_eq!(paths, expected, "{json}");
    }

    #[test]
    fn the_mask_of_a_body_is_its_leaves() {
        gives(
            r#"{"data":{"value":"e30="}}"#,
            "Record",
            Ok(&["data.value"]),
        );
        gives(
            r#"{"etag":"e","data":{"value":"","type":"t"},"createTime":"2026-03-01T10:00:00Z"}"#,
            "Record",
            Ok(&["create_time", "data.type", "data.value", "etag"]),
        );
        gives(r#"{"data":{},"etag":null}"#, "Record", Ok(&[]));
        gives("{}", "Record", Ok(&[]));
        gives(
            r#"{"annotations":{"a":"b"}}"#,
            "Result",
            Ok(&["annotations"]),
        );
        gives(r#"{"annotations":{}}"#, "Result", Ok(&["annotations"]));
    }

    #[test]
    fn an_unknown_field_is_named() {
        let what = |name: &str, of: &str| {
            format!("could not find field \"{name}\" in \"tekton.results.v1alpha2.{of}\"")
        };
        gives(r#"{"datum":1}"#, "Record", Err(&what("datum", "Record")));
        gives(r#"{"data":{"x":null}}"#, "Record", Err(&what("x", "Any")));
    }
}
