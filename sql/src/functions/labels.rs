//! The value of a label.

use std::sync::Arc;

use arrow::{
    array::{Array as _, AsArray as _, MapArray, StringArray},
    datatypes::DataType,
};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};

use super::{arrays, texts};

const NAME: &str = "label";

/// `label(labels, key)`: the value of a key of a map of texts, or null.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Label(Signature);

impl Label {
    pub(super) fn new() -> Self {
        Self(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Label {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Map(..), _] => Ok(DataType::Utf8),
            _ => Err(DataFusionError::Plan(format!(
                "{NAME} takes a map and a key, as in {NAME}(labels, 'team')"
            ))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [maps, keys] = arrays(NAME, &args)?;
        let values = values(maps.as_map(), &texts(&keys)?)?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

fn values(maps: &MapArray, keys: &StringArray) -> Result<StringArray> {
    let (known, values) = (texts(maps.keys())?, texts(maps.values())?);
    let of_row = |row: usize| {
        if maps.is_null(row) || keys.is_null(row) {
            return None;
        }
        let offsets = maps.value_offsets();
        let at = |row: usize| usize::try_from(offsets[row]).unwrap_or_default();
        let mut entries = at(row)..at(row + 1);
        let entry = entries.find(|entry| known.value(*entry) == keys.value(row))?;
        values.is_valid(entry).then(|| values.value(entry))
    };
    Ok((0..maps.len()).map(of_row).collect())
}

#[cfg(test)]
mod tests {
    use arrow::array::{MapBuilder, StringBuilder};

    use super::*;

    #[test]
    fn a_label_has_a_value_or_none() {
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for pairs in [&[("a", "1"), ("b", "2")][..], &[], &[("b", "3")]] {
            for (key, value) in pairs {
                maps.keys().append_value(key);
                maps.values().append_value(value);
            }
            maps.append(true).unwrap();
        }
        let keys = StringArray::from(vec!["b", "b", "b"]);
        let found = values(&maps.finish(), &keys).unwrap();
        assert_eq!(found, StringArray::from(vec![Some("2"), None, Some("3")]));
    }
}
