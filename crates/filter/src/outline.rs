//! What matters of a payload, read in one pass: everything that columns are made of, and the
//! proof that the rest is JSON too. Specs, steps and other trees that nobody makes a column of
//! are read over, so that an object of 10 KB costs a few small allocations.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The payload without what no column is made of: that is `null`, or missing where it was an
/// element of a list. It is refused exactly where reading the whole would be.
///
/// Kept are `metadata` but for `managedFields`, `status.conditions`, how `status.steps` ended, how
/// many `status.retriesStatus` there are, what a member of `spec` called `...Ref` holds, and texts,
/// numbers and truth values directly in the object, its `spec` and its `status`.
///
/// # Errors
/// If it is not JSON, or nested more than 127 deep.
pub fn outline(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_slice(bytes);
    let outline = Place::Root.deserialize(&mut input)?;
    input.end()?;
    Ok(outline)
}

/// Where in an object a value is, which decides what is kept of it.
#[derive(Debug, Clone, Copy)]
enum Place {
    Root,
    Metadata,
    Spec,
    Status,
    /// The steps of a task, and one of them.
    Steps,
    Step,
    /// How a step ended.
    End,
    /// All of it is kept.
    Whole,
    /// How many elements it has is kept.
    Count,
    /// Only what is no tree is kept.
    Plain,
    Nothing,
}

impl Place {
    /// The place of a member; none if members here are not kept.
    fn member(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::Root, "metadata") => Self::Metadata,
            (Self::Root, "spec") => Self::Spec,
            (Self::Root, "status") => Self::Status,
            (Self::Metadata, "managedFields") => Self::Nothing,
            (Self::Metadata, _) | (Self::Status, "conditions") => Self::Whole,
            (Self::Status, "steps") => Self::Steps,
            (Self::Status, "retriesStatus") => Self::Count,
            (Self::Step, "terminated") => Self::End,
            (Self::Step, "name" | "terminationReason") => Self::Plain,
            (Self::End, "exitCode" | "reason") => Self::Plain,
            (Self::Step | Self::End, _) => Self::Nothing,
            (Self::Spec, name) if name.ends_with("Ref") => Self::Whole,
            (Self::Root | Self::Spec | Self::Status, _) => Self::Plain,
            (Self::Whole, _) => Self::Whole,
            (Self::Plain | Self::Nothing | Self::Steps | Self::Count, _) => return None,
        })
    }

    /// The place of an element; none if elements here are not kept.
    fn element(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Whole),
            Self::Steps => Some(Self::Step),
            Self::Count => Some(Self::Nothing),
            _ => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(match self {
            Self::Nothing => Value::Null,
            _ => Value::String(text.to_owned()),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let Some(element) = self.element() else {
            let trunk = matches!(
                self,
                Self::Root | Self::Metadata | Self::Spec | Self::Status | Self::Step | Self::End
            );
            while list.next_element_seed(Self::Nothing)?.is_some() {}
            // What should be an object is told from one that is missing.
            return Ok(if trunk {
                Value::Array(Vec::new())
            } else {
                Value::Null
            });
        };
        let mut kept = Vec::new();
        while let Some(value) = list.next_element_seed(element)? {
            kept.push(value);
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        if matches!(
            self,
            Self::Plain | Self::Nothing | Self::Steps | Self::Count
        ) {
            while members.next_key_seed(Self::Nothing)?.is_some() {
                members.next_value_seed(Self::Nothing)?;
            }
            return Ok(Value::Null);
        }
        let mut kept = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let place = self
                .member(&name)
                .ok_or_else(|| A::Error::custom("a member of what is not kept"))?;
            // A member that comes twice is the last one, also where that is not kept.
            kept.insert(name, members.next_value_seed(place)?);
        }
        Ok(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use hindsight_run::json;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{columns::columns_of, condition::ObjectField, model::Payload, samples::record_row};

    /// Whether columns are the same by the outline and by the whole.
    #[track_caller]
    fn gives_the_same_columns(data_type: &str, bytes: &[u8]) {
        let whole = json::parse(bytes).ok();
        let whole = whole.map(|whole| columns_of(data_type, &whole));
        let outlined = outline(bytes).ok();
        let outlined = outlined.map(|outlined| columns_of(data_type, &outlined));
        assert_eq!(outlined, whole, "{}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn objects_of_every_kind_have_the_same_columns() {
        for list in [
            include_str!("../../../tests/fixtures/customruns.json"),
            include_str!("../../../tests/fixtures/jobs.json"),
            include_str!("../../../tests/fixtures/pipelineruns.json"),
            include_str!("../../../tests/fixtures/taskruns.json"),
            include_str!("../../../tests/fixtures/workflows.json"),
        ] {
            let list: Value = serde_json::from_str(list).unwrap();
            let items = list["items"].as_array().unwrap();
            assert!(!items.is_empty());
            for item in items {
                let text = |key: &str| item[key].as_str().unwrap();
                let data_type = format!("{}.{}", text("apiVersion"), text("kind"));
                gives_the_same_columns(&data_type, item.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn every_field_that_is_a_column_is_kept() {
        for field in ObjectField::ALL {
            let pointer = field.pointer();
            let object = pointer
                .split('/')
                .skip(1)
                .collect::<Vec<_>>()
                .into_iter()
                .rev();
            let object = object.fold(json!("kept"), |inner, part| match part.parse::<usize>() {
                Ok(0) => json!([inner]),
                _ => json!({ part: inner }),
            });
            let outline = outline(object.to_string().as_bytes()).unwrap();
            assert_eq!(outline.pointer(pointer), Some(&json!("kept")), "{pointer}");
        }
    }

    #[test]
    fn trees_that_no_column_is_made_of_are_read_over() {
        let object = json!({
            "kind": "TaskRun",
            "metadata": {"labels": {"a": "b"}, "managedFields": [{"f:a": {}}],
                "ownerReferences": [{"kind": "PipelineRun"}]},
            "spec": {"timeout": "1h", "taskRef": {"name": "t"}, "params": [{"name": "p"}]},
            "status": {"startTime": "now", "conditions": [{"type": "Succeeded", "status": "True"}],
                "taskSpec": {"steps": [{"script": "x"}]}, "retriesStatus": [{"podName": "p"}],
                "steps": [{"name": "s", "imageID": "i", "results": [],
                    "terminated": {"exitCode": 1, "reason": "Error", "containerID": "c"}}]},
        });
        let wanted = json!({
            "kind": "TaskRun",
            "metadata": {"labels": {"a": "b"}, "managedFields": null,
                "ownerReferences": [{"kind": "PipelineRun"}]},
            "spec": {"timeout": "1h", "taskRef": {"name": "t"}, "params": null},
            "status": {"startTime": "now", "conditions": [{"type": "Succeeded", "status": "True"}],
                "taskSpec": null, "retriesStatus": [null],
                "steps": [{"name": "s", "imageID": null, "results": null,
                    "terminated": {"exitCode": 1, "reason": "Error", "containerID": null}}]},
        });
        assert_eq!(outline(object.to_string().as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn what_is_no_json_anywhere_is_refused_as_a_whole() {
        for (text, is_json) in [
            (r#"{"a":{"b":[1e999]}}"#, false),
            (r#"{"a":{"b":"\ud800"}}"#, false),
            (r#"{"a":{"b":1}} x"#, false),
            (r#"{"status":{"phase":"x","phase":{}}}"#, true),
            (r"[1,2]", true),
        ] {
            let whole = json::parse(text.as_bytes());
            assert_eq!(whole.is_ok(), is_json, "{text}");
            assert_eq!(outline(text.as_bytes()).is_ok(), is_json, "{text}");
        }
        let twice = outline(br#"{"status":{"phase":"x","phase":{}}}"#).unwrap();
        assert_eq!(twice, json!({"status": {"phase": null}}));
        assert!(outline(b"{\"a\":\"\xff\"}").is_err());
    }

    proptest! {
        #[test]
        fn any_payload_has_the_same_columns(row in record_row()) {
            if let Some(Payload { data_type, value, .. }) = row.data {
                gives_the_same_columns(&data_type, &value);
            }
        }

        #[test]
        fn it_is_refused_exactly_where_reading_the_whole_is(
            text in r#"([\[\]{},: "a\\01.e+u-]|"a"|true|null){0,24}"#, depth in 120_usize..135,
        ) {
            let deep = format!("{}{text}{}", "[".repeat(depth), "]".repeat(depth));
            for text in [text, deep] {
                let whole = json::parse(text.as_bytes()).is_ok();
                prop_assert_eq!(outline(text.as_bytes()).is_ok(), whole, "{}", text);
            }
        }
    }
}
