//! Single tests: which of them a column answers.

mod lists;

use jiff::{SignedDuration, civil::Date, tz::TimeZone};

use super::{
    Splitter,
    column::{self, Found, Kind},
    pushed::Pushed,
};
use crate::{
    condition::{Ability, Column, Condition, Is, Test, Value as Asked},
    expr::{Comparison, Expr, ExprKind, Field},
    fields,
    model::{RecordName, ResultName},
    types::Type,
    value::Value,
};

/// The largest offset of a local time from UTC that is read.
const FARTHEST: SignedDuration = SignedDuration::from_hours(26);
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

impl Splitter<'_> {
    /// The rows on which a part that is no combination is `wanted`.
    pub(super) fn leaf(&self, expr: &Expr, wanted: bool) -> Pushed {
        let pushed = match &expr.kind {
            ExprKind::Const(value) if *value == Value::Bool(wanted) => Pushed::all(),
            ExprKind::Const(_) => Pushed::nothing(),
            ExprKind::HasField(field) => self.has_field(*field, wanted),
            ExprKind::Has(of, key) => self.has(of, key, wanted),
            ExprKind::Compare(comparison, pair) => match &**pair {
                [field, other] if other.constant().is_some() => {
                    self.compared(field, *comparison, other, wanted)
                }
                [other, field] => self.compared(field, comparison.mirrored(), other, wanted),
            },
            ExprKind::In(pair) => self.contained(&pair[0], &pair[1], wanted),
            ExprKind::Call(function, args) => self.called(function, args, wanted),
            ExprKind::Macro(of) if wanted => self.some(of),
            ExprKind::Member(..) | ExprKind::Index(..) => self.part_is(expr, wanted),
            _ => Pushed::unknown(),
        };
        match column::required_alias(expr) {
            Some(alias) => {
                let types = fields::alias_types(alias)
                    .into_iter()
                    .map(Asked::Text)
                    .collect();
                let guard = self.test(Column::DataType, Is::OneOf(types), true);
                Pushed::and([guard, pushed])
            }
            None => pushed,
        }
    }

    /// Rows that have the column and pass the test, or those that have it and fail it.
    fn test(&self, column: Column, is: Is, passes: bool) -> Pushed {
        let test = Test {
            column,
            is,
            negated: !passes,
        };
        match (self.ability)(&test) {
            Ability::None => Pushed::unknown(),
            Ability::Superset => Pushed {
                condition: Condition::Test(test),
                exact: false,
            },
            Ability::Exact => Pushed {
                condition: Condition::Test(test),
                exact: true,
            },
        }
    }

    fn present(&self, column: Column, wanted: bool) -> Pushed {
        self.test(column, Is::Present, wanted)
    }

    fn has_field(&self, field: Field, wanted: bool) -> Pushed {
        let column = match field {
            // Every run has an outcome, if an unknown one.
            Field::Run => Column::Outcome,
            // There are always labels, if none.
            Field::RunLabels if wanted => return Pushed::all(),
            Field::RunLabels => return Pushed::nothing(),
            // Every summary has a status.
            field => column::of_field(field).map_or(Column::SummaryStatus, |found| found.column),
        };
        self.present(column, wanted)
    }

    fn has(&self, of: &Expr, key: &str, wanted: bool) -> Pushed {
        match column::of_member(of, key) {
            Some(found) if !found.json => self.present(found.column, wanted),
            // The field may be there and the column empty, but not the other way round.
            Some(found) if !wanted => self.present(found.column, false).inexact(),
            None if !wanted => self.part_is_missing(of, key),
            _ => Pushed::unknown(),
        }
    }

    fn compared(&self, field: &Expr, comparison: Comparison, other: &Expr, wanted: bool) -> Pushed {
        let Some(constant) = other.constant() else {
            return Pushed::unknown();
        };
        let equality = match comparison {
            Comparison::Equal => Some(wanted),
            Comparison::NotEqual => Some(!wanted),
            _ => None,
        };
        if let (ExprKind::Field(group @ (Field::Summary | Field::Run)), Some(equal), Value::Null) =
            (&field.kind, equality, constant)
            && other.ty == Type::Null
        {
            return if equal {
                Pushed::nothing()
            } else {
                self.has_field(*group, true)
            };
        }
        if let (Some(equal), Value::Text(name)) = (equality, constant)
            && let Some(pushed) = self.named(field, name, equal)
        {
            return pushed;
        }
        let Some(found) = column::of(field) else {
            return self.part_compared(field, comparison, constant, wanted);
        };
        if let (Some(equal), Value::Null) = (equality, constant) {
            return match (found.json, equal) {
                (false, true) => Pushed::nothing(),
                // A JSON null leaves the column empty, as other things do.
                (true, true) => self.present(found.column, false).inexact(),
                // A null that is not written as one is as unequal as any other type.
                (_, false) if other.ty != Type::Null => Pushed::nothing(),
                (false, false) => self.present(found.column, true),
                (true, false) => Pushed::unknown(),
            };
        }
        if let (Kind::Time, true, Value::Text(text)) = (found.kind, found.json, constant) {
            return self.time_as_text(found.column, comparison, text, wanted);
        }
        let Some(asked) = asked(&found, constant) else {
            return Pushed::unknown();
        };
        let (is, passes) = match (comparison, wanted) {
            (Comparison::Equal, wanted) => (Is::Equal(asked), wanted),
            (Comparison::NotEqual, wanted) => (Is::Equal(asked), !wanted),
            (Comparison::Less, true) | (Comparison::AtLeast, false) => (Is::Less(asked), true),
            (Comparison::AtMost, true) | (Comparison::Greater, false) => (Is::AtMost(asked), true),
            (Comparison::Greater, true) | (Comparison::AtMost, false) => (Is::Greater(asked), true),
            (Comparison::AtLeast, true) | (Comparison::Less, false) => (Is::AtLeast(asked), true),
        };
        // No two times that are read are further apart than a duration can say.
        self.test(found.column, is, passes)
    }

    /// A time of a payload that is compared as text. Where it is an RFC 3339 time, the order of
    /// texts is that of local dates, which are at most [`FARTHEST`] from UTC.
    fn time_as_text(
        &self,
        column: Column,
        comparison: Comparison,
        text: &str,
        wanted: bool,
    ) -> Pushed {
        use Comparison::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};
        let day = text.get(..10).and_then(|day| day.parse::<Date>().ok());
        let midnight = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok());
        let bound = match (comparison, wanted, midnight) {
            (Equal, true, _) | (NotEqual, false, _) => {
                let test = match hindsight_proto::time::parse(text) {
                    Some(time) => self.test(column, Is::Equal(Asked::Time(time)), true),
                    None => self.present(column, false),
                };
                return test.inexact();
            }
            (Greater | AtLeast, true, Some(day)) | (Less | AtMost, false, Some(day)) => {
                let first = day.timestamp().checked_sub(FARTHEST);
                first.map(|time| Is::AtLeast(Asked::Time(time)))
            }
            (Less | AtMost, true, Some(day)) | (Greater | AtLeast, false, Some(day)) => {
                let end = day.timestamp().checked_add(FARTHEST + A_DAY);
                end.map(|time| Is::Less(Asked::Time(time)))
            }
            _ => return Pushed::unknown(),
        };
        let Ok(bound) = bound else {
            return Pushed::unknown();
        };
        let is_no_time = self.present(column.clone(), false);
        let near = self.test(column, bound, true);
        Pushed::or([is_no_time, near], self.ability).inexact()
    }

    /// Equality of a name with a text: of the whole name if the text has a `/`, otherwise of its
    /// last part.
    fn named(&self, field: &Expr, text: &str, equal: bool) -> Option<Pushed> {
        let ExprKind::Field(field @ (Field::Name | Field::ResultName)) = field.kind else {
            return None;
        };
        let last = if field == Field::Name {
            Column::RecordId
        } else {
            Column::ResultId
        };
        if !text.contains('/') {
            return Some(self.test(last, Is::Equal(Asked::Text(text.to_owned())), equal));
        }
        let record = match field {
            Field::Name => text.parse::<RecordName>().ok(),
            _ => None,
        };
        let result = match (&record, field) {
            (Some(record), _) => Some(record.result().clone()),
            (None, Field::ResultName) => text.parse::<ResultName>().ok(),
            (None, _) => None,
        };
        let Some(result) = result else {
            // No name is written so.
            return Some(if equal {
                Pushed::nothing()
            } else {
                Pushed::all()
            });
        };
        let mut parts = vec![
            (Column::Parent, result.parent().as_str().to_owned()),
            (Column::ResultId, result.id().to_owned()),
        ];
        parts.extend(record.map(|record| (Column::RecordId, record.id().to_owned())));
        let tests = parts
            .into_iter()
            .map(|(column, text)| self.test(column, Is::Equal(Asked::Text(text)), equal));
        Some(if equal {
            Pushed::and(tests)
        } else {
            Pushed::or(tests, self.ability)
        })
    }
}

/// A constant as a value of the column, if the column holds all that could equal it.
fn asked(found: &Found, constant: &Value<'_>) -> Option<Asked> {
    match (found.kind, constant) {
        (Kind::Text, Value::Text(text)) => Some(Asked::Text(text.to_string())),
        (Kind::Time, Value::Time(time)) => Some(Asked::Time(*time)),
        (Kind::Duration, Value::Duration(duration)) => {
            let whole = duration.subsec_nanos() % 1_000 == 0;
            let us = whole.then(|| i64::try_from(duration.as_micros()).ok());
            us.flatten().map(Asked::Int)
        }
        (Kind::Int, Value::Int(number)) => Some(Asked::Int(*number)),
        (Kind::Int, Value::Uint(number)) => i64::try_from(*number).ok().map(Asked::Int),
        _ => None,
    }
}
