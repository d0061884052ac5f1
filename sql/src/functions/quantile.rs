//! The smallest value that so large a part of all values are at most: the percentile of `hindsight stats`, and what
//! DuckDB calls `quantile_disc`.

use std::{fmt, sync::Arc};

use arrow::{
    array::{
        Array as _, ArrayRef, ArrowNativeTypeOp as _, ArrowPrimitiveType, AsArray as _,
        BooleanArray, Float64Array, ListArray, PrimitiveArray,
    },
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type},
};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{
        Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, TypeSignature,
        Volatility,
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
            DataType::Int64 => Box::<One<Int64Type>>::default(),
            _ => Box::<One<Float64Type>>::default(),
        })
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match args.return_type() {
            DataType::Int64 => Box::<Values<Int64Type>>::default(),
            _ => Box::<Values<Float64Type>>::default(),
        })
    }
}

/// All values of each group.
#[derive(Debug)]
struct Values<T: ArrowPrimitiveType> {
    groups: Vec<Vec<T::Native>>,
    part: Option<f64>,
    /// Bytes of all values.
    held: usize,
}

impl<T: ArrowPrimitiveType> Default for Values<T> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            part: None,
            held: 0,
        }
    }
}

impl<T: ArrowPrimitiveType> Values<T> {
    fn set_part(&mut self, parts: &ArrayRef) -> Result<()> {
        for part in parts.as_primitive::<Float64Type>().iter().flatten() {
            if self.part == Some(part) {
                continue;
            }
            if !(0.0..=1.0).contains(&part) {
                return Err(DataFusionError::Execution(format!(
                    "{NAME}: {part} is not a part of all; want 0 to 1, as 0.95"
                )));
            }
            if self.part.replace(part).is_some() {
                return Err(DataFusionError::Execution(format!(
                    "{NAME}: the part must be the same for all rows"
                )));
            }
        }
        Ok(())
    }

    /// Changes a group, and accounts for what it takes then.
    fn change(&mut self, group: usize, change: impl FnOnce(&mut Vec<T::Native>)) {
        let group = &mut self.groups[group];
        let before = group.capacity();
        change(group);
        self.held += (group.capacity() - before) * size_of::<T::Native>();
    }

    /// Groups that are told, and done with.
    fn taken(&mut self, emit_to: EmitTo) -> Vec<Vec<T::Native>> {
        let groups = emit_to.take_needed(&mut self.groups);
        let held: usize = groups.iter().map(Vec::capacity).sum();
        self.held -= held * size_of::<T::Native>();
        groups
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

impl<T: ArrowPrimitiveType> GroupsAccumulator for Values<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.set_part(&values[1])?;
        self.groups.resize_with(total_num_groups, Vec::new);
        let values = values[0].as_primitive::<T>();
        let counts = |row| {
            let passes = |filter: &BooleanArray| filter.is_valid(row) && filter.value(row);
            values.is_valid(row) && opt_filter.is_none_or(passes)
        };
        for (row, group) in group_indices.iter().enumerate() {
            if counts(row) {
                self.change(*group, |group| group.push(values.value(row)));
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.set_part(&states[1])?;
        self.groups.resize_with(total_num_groups, Vec::new);
        let lists = states[0].as_list::<i32>();
        for (row, group) in group_indices.iter().enumerate() {
            // A list has no nulls: those were left out.
            let values = lists.value(row);
            let values = values.as_primitive::<T>().values();
            self.change(*group, |group| group.extend_from_slice(values));
        }
        Ok(())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.taken(emit_to);
        let total: usize = groups.iter().map(Vec::len).sum();
        if i32::try_from(total).is_err() {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{NAME}: {total} values are too many"
            )));
        }
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(Vec::len));
        let parts = Float64Array::from(vec![self.part; groups.len()]);
        let values: ArrayRef = Arc::new(PrimitiveArray::<T>::from_iter_values(
            groups.into_iter().flatten(),
        ));
        let field = values_field(values.data_type());
        let lists = ListArray::new(field, offsets, values, None);
        Ok(vec![Arc::new(lists), Arc::new(parts)])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let part = self.part.unwrap_or(0.0);
        let values = self.taken(emit_to).into_iter().map(|mut all| {
            let at = rank(all.len(), part)?;
            Some(*all.select_nth_unstable_by(at, |a, b| a.compare(*b)).1)
        });
        Ok(Arc::new(values.collect::<PrimitiveArray<T>>()))
    }

    fn convert_to_state(&self, _: &[ArrayRef], _: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        Err(DataFusionError::Internal(format!(
            "{NAME} gathers values before it tells them"
        )))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.held + self.groups.capacity() * size_of::<Vec<T::Native>>()
    }
}

/// The one group of a statement without groups, which is there without rows too.
#[derive(Debug)]
struct One<T: ArrowPrimitiveType>(Values<T>);

impl<T: ArrowPrimitiveType> Default for One<T> {
    fn default() -> Self {
        let groups = vec![Vec::new()];
        Self(Values {
            groups,
            ..Values::default()
        })
    }
}

impl<T: ArrowPrimitiveType + fmt::Debug> Accumulator for One<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let group = vec![0; values[0].len()];
        self.0.update_batch(values, &group, None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let group = vec![0; states[0].len()];
        self.0.merge_batch(states, &group, 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let states = self.0.state(EmitTo::All)?;
        let states = states.iter();
        states
            .map(|state| ScalarValue::try_from_array(state, 0))
            .collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.evaluate(EmitTo::All)?, 0)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use hindsight_filter::measure::Samples;

    use super::*;

    fn update(
        into: &mut Values<Int64Type>,
        values: Vec<Option<i64>>,
        groups: &[usize],
        part: f64,
    ) -> Result<()> {
        let parts: ArrayRef = Arc::new(Float64Array::from(vec![part; values.len()]));
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        into.update_batch(&[values, parts], groups, None, 3)
    }

    #[test]
    fn it_is_the_percentile_of_stats() {
        for count in [1_usize, 2, 3, 7, 20, 100, 999] {
            for of_thousand in [1_u16, 100, 250, 500, 900, 950, 990, 999, 1000] {
                let values: Vec<i64> = (0..count).map(|at| (at as i64 * 7919) % 1009).collect();
                let mut stats = Samples::default();
                stats.extend(values.clone());
                let mut ours = Values::default();
                let group = vec![0; count];
                let values = values.into_iter().map(Some).collect();
                update(&mut ours, values, &group, f64::from(of_thousand) / 1000.0).unwrap();
                let ours = ours.evaluate(EmitTo::First(1)).unwrap();
                assert_eq!(
                    ScalarValue::try_from_array(&ours, 0).unwrap(),
                    ScalarValue::Int64(stats.percentile(of_thousand)),
                    "{count} values, {of_thousand}"
                );
            }
        }
    }

    #[test]
    fn what_is_added_in_parts_is_added_up() {
        let mut whole = Values::default();
        let mut part = Values::default();
        update(
            &mut whole,
            vec![Some(1), None, Some(9), Some(4)],
            &[0, 0, 0, 1],
            0.5,
        )
        .unwrap();
        update(
            &mut part,
            vec![Some(5), Some(7), Some(3), Some(8)],
            &[0, 0, 0, 1],
            0.5,
        )
        .unwrap();
        let of_first = part.state(EmitTo::First(1)).unwrap();
        whole.merge_batch(&of_first, &[0], 3).unwrap();
        // What was the second group is the first one now.
        let of_rest = part.state(EmitTo::All).unwrap();
        whole.merge_batch(&of_rest, &[1, 2], 3).unwrap();
        assert_eq!(part.held, 0);
        let found = whole.evaluate(EmitTo::All).unwrap();
        let wanted = Int64Array::from(vec![Some(5), Some(4), None]);
        assert_eq!(found.as_primitive::<Int64Type>(), &wanted);
        assert_eq!(whole.held, 0);
    }

    #[test]
    fn rows_that_a_filter_leaves_out_do_not_count() {
        let mut values = Values::<Int64Type>::default();
        let parts: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 3]));
        let all: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let filter = BooleanArray::from(vec![Some(true), Some(false), None]);
        values
            .update_batch(&[all, parts], &[0, 0, 0], Some(&filter), 1)
            .unwrap();
        let found = values.evaluate(EmitTo::All).unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().value(0), 1);
    }

    #[test]
    fn a_part_is_one_and_within_0_and_1() {
        let mut values = Values::default();
        let wrong = update(&mut values, vec![Some(1)], &[0], 2.0).unwrap_err();
        assert!(wrong.to_string().contains("want 0 to 1"), "{wrong}");
        update(&mut values, vec![Some(1)], &[0], 0.5).unwrap();
        let other = update(&mut values, vec![Some(1)], &[0], 0.9).unwrap_err();
        assert!(
            other.to_string().contains("the same for all rows"),
            "{other}"
        );
    }
}
