//! The smallest value that so large a part of all values are at most: the percentile of `hindsight stats`, and what
//! DuckDB calls `quantile_disc`.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray as _, Float64Array, Int64Array, ListArray},
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type},
};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{
        Accumulator, AggregateUDFImpl, Signature, TypeSignature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
    scalar::ScalarValue,
};

const NAME: &str = "quantile_disc";

/// `quantile_disc(value, part)` of integers or floating-point numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct QuantileDisc(Signature);

impl QuantileDisc {
    pub(super) fn new() -> Self {
        let of = |value| TypeSignature::Exact(vec![value, DataType::Float64]);
        Self(Signature::one_of(
            vec![of(DataType::Int64), of(DataType::Float64)],
            Volatility::Immutable,
        ))
    }
}

fn values_field(value: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(value.clone(), true))
}

impl AggregateUDFImpl for QuantileDisc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = values_field(args.input_fields[0].data_type());
        Ok(vec![
            Arc::new(Field::new("values", DataType::List(values), true)),
            Arc::new(Field::new("part", DataType::Float64, true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match args.return_type() {
            DataType::Int64 => Box::new(Values::of(Kind::Ints(Vec::new()))),
            _ => Box::new(Values::of(Kind::Floats(Vec::new()))),
        })
    }
}

#[derive(Debug)]
enum Kind {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

/// All values of a group.
#[derive(Debug)]
struct Values {
    kind: Kind,
    part: Option<f64>,
}

impl Values {
    fn of(kind: Kind) -> Self {
        Self { kind, part: None }
    }

    fn add(&mut self, values: &ArrayRef) {
        match &mut self.kind {
            Kind::Ints(all) => all.extend(values.as_primitive::<Int64Type>().iter().flatten()),
            Kind::Floats(all) => all.extend(values.as_primitive::<Float64Type>().iter().flatten()),
        }
    }

    fn set_part(&mut self, parts: &ArrayRef) -> Result<()> {
        for part in parts.as_primitive::<Float64Type>().iter().flatten() {
            if !(0.0..=1.0).contains(&part) {
                return Err(DataFusionError::Execution(format!(
                    "{NAME}: {part} is not a part of all; want 0 to 1, as 0.95"
                )));
            }
            if *self.part.get_or_insert(part) != part {
                return Err(DataFusionError::Execution(format!(
                    "{NAME}: the part must be the same for all rows"
                )));
            }
        }
        Ok(())
    }
}

/// The number, counted from 0, of the value in ascending order.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts are below 2^52, and the part is within 0 and 1"
)]
fn rank(count: usize, part: f64) -> Option<usize> {
    // What is a whole number but for the error of its factors is that number.
    let up_to = (count as f64 * part - 1e-9).ceil().max(1.0) as usize;
    (count > 0).then(|| up_to.min(count) - 1)
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0]);
        self.set_part(&values[1])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.add(&values);
        }
        self.set_part(&states[1])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: ArrayRef = match &mut self.kind {
            Kind::Ints(all) => Arc::new(Int64Array::from(std::mem::take(all))),
            Kind::Floats(all) => Arc::new(Float64Array::from(std::mem::take(all))),
        };
        let field = values_field(values.data_type());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![
            0,
            i32::try_from(values.len()).map_err(|_too_many| {
                DataFusionError::ResourcesExhausted(format!("{NAME}: a group has too many values"))
            })?,
        ]));
        let list = ListArray::new(field, offsets, values, None);
        Ok(vec![
            ScalarValue::List(Arc::new(list)),
            ScalarValue::Float64(self.part),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let part = self.part.unwrap_or(0.0);
        Ok(match &mut self.kind {
            Kind::Ints(all) => {
                ScalarValue::Int64(rank(all.len(), part).map(|at| *all.select_nth_unstable(at).1))
            }
            Kind::Floats(all) => ScalarValue::Float64(
                rank(all.len(), part).map(|at| *all.select_nth_unstable_by(at, f64::total_cmp).1),
            ),
        })
    }

    fn size(&self) -> usize {
        let values = match &self.kind {
            Kind::Ints(all) => all.capacity(),
            Kind::Floats(all) => all.capacity(),
        };
        size_of_val(self) + 8 * values
    }
}

#[cfg(test)]
mod tests {
    use hindsight_filter::measure::Samples;

    use super::*;

    #[test]
    fn it_is_the_percentile_of_stats() {
        for count in [1_usize, 2, 3, 7, 20, 100, 999] {
            for of_thousand in [1_u16, 100, 250, 500, 900, 950, 990, 999, 1000] {
                let values: Vec<i64> = (0..count).map(|at| (at as i64 * 7919) % 1009).collect();
                let mut stats = Samples::default();
                stats.extend(values.clone());
                let mut ours = Values::of(Kind::Ints(values));
                ours.part = Some(f64::from(of_thousand) / 1000.0);
                let wanted = ScalarValue::Int64(stats.percentile(of_thousand));
                assert_eq!(
                    ours.evaluate().unwrap(),
                    wanted,
                    "{count} values, {of_thousand}"
                );
            }
        }
    }

    #[test]
    fn what_is_added_in_parts_is_added_up() {
        let of = |values: Vec<i64>| {
            let mut part = Values::of(Kind::Ints(Vec::new()));
            let parts = Float64Array::from(vec![0.5; values.len()]);
            part.update_batch(&[Arc::new(Int64Array::from(values)), Arc::new(parts)])
                .unwrap();
            part
        };
        let mut whole = of(vec![1, 9]);
        let state = of(vec![5, 7, 3]).state().unwrap();
        let state: Vec<ArrayRef> = state
            .iter()
            .map(|value| value.to_array().unwrap())
            .collect();
        whole.merge_batch(&state).unwrap();
        assert_eq!(whole.evaluate().unwrap(), ScalarValue::Int64(Some(5)));
        let mut wrong = of(vec![1]);
        let two: ArrayRef = Arc::new(Float64Array::from(vec![2.0]));
        let error = wrong.update_batch(&[Arc::new(Int64Array::from(vec![1])), two]);
        assert!(error.unwrap_err().to_string().contains("want 0 to 1"));
    }
}
