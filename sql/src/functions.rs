//! Functions of statements beside those of the engine: labels, parameters and other parts of payloads, durations,
//! and the percentile of `hindsight stats`.

mod durations;
mod labels;
mod payloads;
mod quantile;

use std::sync::Arc;

use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF},
};

use arrow::{
    array::{ArrayRef, AsArray as _, StringArray},
    compute::cast,
    datatypes::DataType,
};

/// What they are called and give, for the help of the shell.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("label(labels, 'team')", "the value of a label, or null"),
    (
        "param(payload, 'revision')",
        "the value of a parameter of the run, in `records`",
    ),
    (
        "json_value(payload, '/status/podName')",
        "a part of a payload by its JSON pointer, in `records`",
    ),
    ("seconds(duration_us)", "microseconds as seconds"),
    (
        "duration('1h30m')",
        "a duration as microseconds, to compare with `duration_us`",
    ),
    (
        "quantile_disc(duration_us, 0.95)",
        "the percentile of `hindsight stats`",
    ),
];

/// Those of rows.
pub(crate) fn scalar() -> Vec<Arc<ScalarUDF>> {
    let functions = [
        ScalarUDF::new_from_impl(labels::Label::new()),
        ScalarUDF::new_from_impl(payloads::Part::param()),
        ScalarUDF::new_from_impl(payloads::Part::json_value()),
        ScalarUDF::new_from_impl(durations::Seconds::new()),
        ScalarUDF::new_from_impl(durations::Duration::new()),
    ];
    functions.into_iter().map(Arc::new).collect()
}

/// Those of groups.
pub(crate) fn aggregate() -> Vec<Arc<AggregateUDF>> {
    let quantile = AggregateUDF::new_from_impl(quantile::QuantileDisc::new());
    vec![Arc::new(quantile)]
}

/// The arguments as arrays of all rows.
fn arrays<const N: usize>(name: &str, args: &ScalarFunctionArgs) -> Result<[ArrayRef; N]> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    let arrays: Vec<ArrayRef> = match args
        .args
        .iter()
        .all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
    {
        true => {
            let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows));
            arrays.collect::<Result<_>>()?
        }
        false => arrays,
    };
    let count = arrays.len();
    arrays.try_into().map_err(|_other_count| {
        DataFusionError::Plan(format!("{name} takes {N} arguments, and {count} are given"))
    })
}

/// An argument as texts.
fn texts(array: &ArrayRef) -> Result<StringArray> {
    Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
}
