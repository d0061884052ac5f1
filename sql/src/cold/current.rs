//! Whether rows of files count: those of results that are still in them, and that were not read elsewhere.

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow::{
    array::{BooleanArray, Int32Array, StringViewArray},
    datatypes::DataType,
};
use bytes::Bytes;
use datafusion::{
    common::cast::{as_int32_array, as_string_view_array},
    error::{DataFusionError, Result},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};
use prost::Message as _;

use super::Only;
use crate::hot::{Names, digest};

/// Which rows of files count, as another process is told.
#[derive(Clone, PartialEq, prost::Message)]
struct Encoded {
    #[prost(message, repeated, tag = "1")]
    files: Vec<EncodedFile>,
    /// All digests of names that were read elsewhere, one after another.
    #[prost(bytes = "bytes", tag = "2")]
    seen: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncodedFile {
    #[prost(string, tag = "1")]
    parent: String,
    /// Whether rows of `results` alone count.
    #[prost(bool, tag = "2")]
    is_part: bool,
    #[prost(string, repeated, tag = "3")]
    results: Vec<String>,
    /// Whether rows that were read elsewhere do not count.
    #[prost(bool, tag = "4")]
    was_seen: bool,
}

/// A function of file, result and record.
#[derive(Debug)]
pub(crate) struct Current {
    signature: Signature,
    files: Arc<Vec<Only>>,
}

impl Current {
    pub(super) fn new(files: Vec<Only>) -> Self {
        let types = vec![DataType::Int32, DataType::Utf8View, DataType::Utf8View];
        Self {
            signature: Signature::exact(types, Volatility::Immutable),
            files: Arc::new(files),
        }
    }

    /// What another process needs of it.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let files = self.files.iter().map(|only| EncodedFile {
            parent: only.parent.clone(),
            is_part: only.results.is_some(),
            results: only.results.iter().flatten().cloned().collect(),
            was_seen: only.seen.is_some(),
        });
        // All files of a scan have the same names, if they have any.
        let seen = self.files.iter().find_map(|only| only.seen.as_ref());
        let seen = seen.map(|names| names.iter().flatten().copied().collect());
        let encoded = Encoded {
            files: files.collect(),
            seen: seen.unwrap_or_default(),
        };
        encoded.encode_to_vec()
    }

    /// The function that was encoded so. It fails if none was.
    pub(crate) fn decoded(bytes: &[u8]) -> Result<Self> {
        let wrong = |why: &str| {
            DataFusionError::Internal(format!("a function of a plan cannot be decoded: {why}"))
        };
        let Encoded { files, seen } =
            Encoded::decode(bytes).map_err(|error| wrong(&error.to_string()))?;
        let (names, rest) = seen.as_chunks();
        if !rest.is_empty() {
            return Err(wrong("its names have no whole number of digests"));
        }
        let names: Arc<Names> = Arc::new(names.iter().copied().collect());
        let files = files.into_iter().map(|file| Only {
            parent: file.parent,
            results: file.is_part.then(|| file.results.into_iter().collect()),
            seen: file.was_seen.then(|| Arc::clone(&names)),
        });
        Ok(Self::new(files.collect()))
    }

    fn counts(
        &self,
        files: &Int32Array,
        results: &StringViewArray,
        records: &StringViewArray,
    ) -> Result<BooleanArray> {
        (0..files.len())
            .map(|row| {
                let number = usize::try_from(files.value(row)).ok();
                let only = number.and_then(|number| self.files.get(number));
                let only = only.ok_or_else(|| {
                    DataFusionError::Internal("a row is of no file of the scan".to_owned())
                })?;
                Ok(Some(only.has(results.value(row), records.value(row))))
            })
            .collect()
    }
}

impl Only {
    fn has(&self, result: &str, record: &str) -> bool {
        let is_live = |ids: &HashSet<String>| ids.contains(result);
        if !self.results.as_ref().is_none_or(is_live) {
            return false;
        }
        let was_seen = |names: &Arc<Names>| {
            let name = format!("{}/results/{result}/records/{record}", self.parent);
            names.contains(&digest(&name))
        };
        !self.seen.as_ref().is_some_and(was_seen)
    }
}

// Two are the same if they are of one scan.
impl PartialEq for Current {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.files, &other.files)
    }
}

impl Eq for Current {}

impl Hash for Current {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.files).hash(state);
    }
}

impl ScalarUDFImpl for Current {
    fn name(&self) -> &'static str {
        "is_current"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args
            .args
            .iter()
            .map(|arg| arg.to_array(args.number_rows))
            .collect::<Result<Vec<_>>>()?;
        let [files, results, records] = arrays.as_slice() else {
            return Err(DataFusionError::Internal(
                "three columns are given".to_owned(),
            ));
        };
        let counts = self.counts(
            as_int32_array(files)?,
            as_string_view_array(results)?,
            as_string_view_array(records)?,
        )?;
        Ok(ColumnarValue::Array(Arc::new(counts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_if_its_result_is_in_the_file_and_it_was_not_read_elsewhere() {
        let seen = HashSet::from([digest("ci/results/b/records/1")]);
        let current = Current::new(vec![
            Only {
                parent: "ci".to_owned(),
                results: Some(HashSet::from(["a".to_owned()])),
                seen: None,
            },
            Only {
                parent: "ci".to_owned(),
                results: None,
                seen: Some(Arc::new(seen)),
            },
        ]);
        let files = Int32Array::from(vec![0, 0, 1, 1]);
        let results = StringViewArray::from(vec!["a", "b", "b", "b"]);
        let records = StringViewArray::from(vec!["1", "1", "1", "2"]);
        // Another process counts the same.
        let there = Current::decoded(&current.encoded()).unwrap();
        for current in [current, there] {
            let counts = current.counts(&files, &results, &records).unwrap();
            assert_eq!(counts, BooleanArray::from(vec![true, false, false, true]));
        }
    }
}
