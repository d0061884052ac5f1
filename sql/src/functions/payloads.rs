//! Parts of payloads.

use std::sync::Arc;

use arrow::{
    array::{Array as _, AsArray as _, StringArray},
    compute::cast,
    datatypes::DataType,
};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};
use hindsight_run::json;
use serde_json::Value;

use super::{arrays, texts};

/// A function of a payload and a text. A payload that is not JSON has no parts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    which: Which,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Which {
    Param,
    Pointer,
}

impl Part {
    fn new(which: Which) -> Self {
        Self {
            which,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    /// `param(payload, name)`: the value of the parameter of this name in `spec.params`.
    pub(super) fn param() -> Self {
        Self::new(Which::Param)
    }

    /// `json_value(payload, pointer)`: the part at an RFC 6901 pointer.
    pub(super) fn json_value() -> Self {
        Self::new(Which::Pointer)
    }
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Self::Param => "param",
            Self::Pointer => "json_value",
        }
    }

    /// Texts as they are, anything else as JSON.
    fn of(self, payload: &[u8], what: &str) -> Option<String> {
        let payload = json::parse(payload).ok()?;
        let found = match self {
            Self::Pointer => payload.pointer(what)?,
            Self::Param => {
                let mut params = payload.pointer("/spec/params")?.as_array()?.iter();
                params.find(|param| param["name"] == what)?.get("value")?
            }
        };
        match found {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &'static str {
        self.which.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_bytes = |found: &DataType| {
            found.is_binary() || found.is_string() || matches!(found, DataType::Null)
        };
        match types {
            [payload, _] if is_bytes(payload) => Ok(DataType::Utf8),
            _ => Err(DataFusionError::Plan(format!(
                "{} takes a payload and a text; `records` has the column `payload`",
                self.name()
            ))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [payloads, what] = arrays(self.name(), &args)?;
        let payloads = cast(&payloads, &DataType::Binary)?;
        let (payloads, what) = (payloads.as_binary::<i32>(), texts(&what)?);
        let of_row = |row: usize| {
            let has = payloads.is_valid(row) && what.is_valid(row);
            has.then(|| self.which.of(payloads.value(row), what.value(row)))?
        };
        let values: StringArray = (0..payloads.len()).map(of_row).collect();
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_payloads_are_texts_or_json() {
        let payload =
            br#"{"spec":{"params":[{"name":"rev","value":"main"},{"name":"n","value":["a"]}]},
            "status":{"podName":"p","retries":2,"none":null}}"#;
        for (which, what, wanted) in [
            (Which::Param, "rev", Some("main")),
            (Which::Param, "n", Some(r#"["a"]"#)),
            (Which::Param, "other", None),
            (Which::Pointer, "/status/podName", Some("p")),
            (Which::Pointer, "/status/retries", Some("2")),
            (Which::Pointer, "/status/none", None),
            (Which::Pointer, "status", None),
        ] {
            assert_eq!(which.of(payload, what).as_deref(), wanted, "{what}");
        }
        assert_eq!(Which::Pointer.of(b"no JSON", ""), None);
    }
}
