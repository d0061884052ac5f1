//! Durations: texts to microseconds, and microseconds to seconds.

use std::sync::Arc;

use arrow::{
    array::{Array as _, Int64Array},
    compute::{cast, kernels::numeric::div},
    datatypes::DataType,
};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility},
};

use super::{arrays, texts};

/// Microseconds of what durations are written in.
const UNITS: [(&str, i64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// `seconds(us)`: microseconds as seconds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Seconds(Signature);

impl Seconds {
    pub(super) fn new() -> Self {
        Self(Signature::exact(
            vec![DataType::Int64],
            Volatility::Immutable,
        ))
    }
}

impl ScalarUDFImpl for Seconds {
    fn name(&self) -> &'static str {
        "seconds"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [us] = arrays("seconds", &args)?;
        let us = cast(&us, &DataType::Float64)?;
        let million = arrow::array::Float64Array::new_scalar(1e6);
        Ok(ColumnarValue::Array(div(&us, &million)?))
    }
}

/// `duration(text)`: a duration such as `1h30m` in microseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Duration(Signature);

impl Duration {
    pub(super) fn new() -> Self {
        Self(Signature::string(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Duration {
    fn name(&self) -> &'static str {
        "duration"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given] = arrays("duration", &args)?;
        let given = texts(&given)?;
        let of_row = |row: usize| {
            let text = given.is_valid(row).then(|| given.value(row));
            text.map(microseconds).transpose()
        };
        let found: Result<Int64Array> = (0..given.len()).map(of_row).collect();
        Ok(ColumnarValue::Array(Arc::new(found?)))
    }
}

fn microseconds(text: &str) -> Result<i64> {
    let wrong = || {
        DataFusionError::Execution(format!(
            "`{text}` is not a duration; want numbers with units, such as `90s`, `1h30m` or `7d`"
        ))
    };
    let mut rest = text.trim();
    let mut sum: i64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest[..digits].parse().map_err(|_no_number| wrong())?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]);
        let (_, us) = unit.ok_or_else(wrong)?;
        rest = &rest[letters..];
        let part = number.checked_mul(*us);
        sum = part
            .and_then(|part| sum.checked_add(part))
            .ok_or_else(wrong)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, us) in [
            ("90s", 90_000_000),
            ("1h30m", 5_400_000_000),
            ("7d", 604_800_000_000),
            ("250ms", 250_000),
        ] {
            assert_eq!(microseconds(text).unwrap(), us, "{text}");
        }
        for text in ["", "5", "m", "5x", "-5s", "99999999999999w", "1h 5"] {
            let error = microseconds(text).unwrap_err().to_string();
            assert!(error.contains("is not a duration; want"), "{error}");
        }
    }
}
