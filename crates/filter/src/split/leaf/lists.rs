//! Leaves that ask whether a list contains something, or call a function.

use super::asked;
use crate::{
    columns::is_part_of_labels,
    condition::{Column, Is, Value as Asked},
    expr::{Expr, ExprKind, Field, Function},
    split::{
        Splitter,
        column::{self, Kind},
        pushed::Pushed,
    },
    value::{Elements, Value},
};

impl Splitter<'_> {
    pub(super) fn contained(&self, needle: &Expr, haystack: &Expr, wanted: bool) -> Pushed {
        if let ExprKind::Field(field) = haystack.kind {
            return self.is_key(needle, field, wanted);
        }
        let Some(elements) = haystack.constant().and_then(Value::elements) else {
            return Pushed::unknown();
        };
        if matches!(
            needle.kind,
            ExprKind::Field(Field::Name | Field::ResultName)
        ) {
            return self.one_name_of(needle, elements, wanted);
        }
        let Some(found) = column::of(needle) else {
            return self.part_in(needle, elements, wanted);
        };
        if found.kind == Kind::Duration {
            return Pushed::unknown();
        }
        let asked: Option<Vec<_>> = elements
            .iter()
            .map(|element| asked(&found, &element))
            .collect();
        match asked {
            Some(values) if values.is_empty() => match (wanted, found.json) {
                (true, _) => Pushed::nothing(),
                (false, false) => self.present(found.column, true),
                (false, true) => Pushed::unknown(),
            },
            Some(values) => self.test(found.column, Is::OneOf(values), wanted),
            None => Pushed::unknown(),
        }
    }

    /// The JSON of all labels is searched, of which the column has the keys and values.
    fn labels_contain(&self, part: &str, wanted: bool) -> Pushed {
        if !is_part_of_labels(part) {
            return Pushed::unknown();
        }
        let odd = self.present(Column::Labels, false);
        let found = self.test(Column::Labels, Is::Contains(part.to_owned()), wanted);
        Pushed::or([odd, found], self.ability).inexact()
    }

    fn one_name_of(&self, needle: &Expr, elements: Elements<'_, '_>, wanted: bool) -> Pushed {
        let mut parts = Vec::with_capacity(elements.len());
        for element in elements.iter() {
            let part = match &element {
                Value::Text(text) => self.named(needle, text, wanted),
                _ => None,
            };
            match part {
                Some(part) => parts.push(part),
                None => return Pushed::unknown(),
            }
        }
        if wanted {
            Pushed::or(parts, self.ability)
        } else {
            Pushed::and(parts)
        }
    }

    /// The test for `"key" in annotations`, if the key is a constant.
    fn is_key(&self, needle: &Expr, field: Field, wanted: bool) -> Pushed {
        let Some(Value::Text(key)) = needle.constant() else {
            return Pushed::unknown();
        };
        let key = key.to_string();
        match field {
            Field::Annotations => self.present(Column::Annotation(key), wanted),
            Field::RunLabels => self.present(Column::Label(key), wanted),
            Field::SummaryAnnotations if wanted => {
                self.present(Column::SummaryAnnotation(key), true)
            }
            Field::SummaryAnnotations => Pushed::and([
                self.present(Column::SummaryStatus, true),
                self.present(Column::SummaryAnnotation(key), false),
            ]),
            _ => Pushed::unknown(),
        }
    }

    pub(super) fn called(&self, function: &Function, args: &[Expr], wanted: bool) -> Pushed {
        let [of, part] = args else {
            return Pushed::unknown();
        };
        let Some(Value::Text(part)) = part.constant() else {
            return Pushed::unknown();
        };
        let Some(mut found) = column::of(of) else {
            return match function {
                Function::StartsWith => self.part_starts(of, part, wanted),
                Function::Contains if column::is_labels(of) => self.labels_contain(part, wanted),
                _ => Pushed::unknown(),
            };
        };
        if found.kind != Kind::Text {
            return Pushed::unknown();
        }
        let part = part.to_string();
        let is = match function {
            Function::StartsWith => match (&found.column, part.contains('/')) {
                (Column::RecordName, false) => {
                    found.column = Column::RecordId;
                    Is::StartsWith(part)
                }
                (Column::ResultId, true) => return Pushed::unknown(),
                _ => Is::StartsWith(part),
            },
            Function::EndsWith => match (&found.column, part.rsplit_once('/')) {
                // An id has no slash, so what follows the last one is the whole id.
                (Column::RecordName, Some((_, id))) if wanted => {
                    let id = Is::Equal(Asked::Text(id.to_owned()));
                    return Pushed::and([
                        self.test(Column::RecordId, id, true),
                        self.test(found.column, Is::EndsWith(part), true),
                    ]);
                }
                _ => Is::EndsWith(part),
            },
            Function::ContainsText => Is::Contains(part),
            _ => return Pushed::unknown(),
        };
        self.test(found.column, is, wanted)
    }
}
