//! A condition as SQL.
//!
//! Invariant: the SQL accepts every row that the condition accepts; for tests of
//! [`Ability::Exact`] it accepts no other. Tests that cannot be said become *true*, which is
//! sound because a condition has no negation above its leaves.

mod place;
mod runs;
pub(super) mod searched;
mod texts;

pub(super) use self::{
    place::{RESULT_ID, in_result, value},
    searched::Rows,
};

use super::{
    columns::{self, Holds, Place},
    cost,
    dialect::Dialect,
    statement::{Bind, Statement},
};
use crate::codec::text::{self, words};
use hindsight_filter::condition::{Ability, Column, Condition, Is, Test, Value};
use hindsight_filter::model::{Parent, RecordName, Resource, Tier};

/// What [`Store::ability`](crate::seam::Store::ability) answers for both databases.
pub(crate) fn ability(test: &Test) -> Ability {
    if let Column::Indexed(_) = test.column {
        return match (&test.is, test.negated) {
            (Is::Equal(_) | Is::OneOf(_), _)
            | (Is::AtMost(_) | Is::AtLeast(_) | Is::StartsWith(_), false)
            | (Is::Present, true) => Ability::Superset,
            _ => Ability::None,
        };
    }
    if test.column == Column::Labels {
        return match &test.is {
            Is::Present => Ability::Exact,
            Is::Contains(part) if searched::is_sought_in_labels(part) => Ability::Exact,
            _ => Ability::None,
        };
    }
    let holds = columns::holds(&test.column);
    let fits = |value: &Value| {
        matches!(
            (holds, value),
            (Holds::Text, Value::Text(_))
                | (Holds::Int, Value::Int(_))
                | (Holds::Time, Value::Time(_))
        )
    };
    let exact = match &test.is {
        Is::Present => true,
        Is::Equal(value)
        | Is::Less(value)
        | Is::AtMost(value)
        | Is::Greater(value)
        | Is::AtLeast(value) => fits(value),
        Is::OneOf(values) => values.iter().all(fits),
        Is::StartsWith(_) => holds == Holds::Text,
        Is::EndsWith(part) | Is::Contains(part) => {
            holds == Holds::Text && text::has_sound_parts(part)
        }
    };
    if exact { Ability::Exact } else { Ability::None }
}

/// Appends SQL for rows of one resource.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) resource: Resource,
    pub(crate) out: &'a mut Statement,
    /// Whether labels are said so that their index is found.
    by_label: bool,
    /// How many rows are looked at, about.
    rows: Rows,
    /// The numbers of the types that rows can have, if they are known.
    types: Option<Vec<i64>>,
}

impl<'a> Writer<'a> {
    /// A writer of conditions on rows of `resource`.
    pub(crate) fn new(dialect: Dialect, resource: Resource, out: &'a mut Statement) -> Self {
        Self {
            dialect,
            resource,
            out,
            by_label: true,
            rows: Rows::Many,
            types: None,
        }
    }

    /// The same, for rows that have one of these types anyway.
    pub(crate) fn of_types(self, types: Option<Vec<i64>>) -> Self {
        Self { types, ..self }
    }

    /// The same, for so many rows.
    pub(crate) fn looking_at(self, rows: Rows) -> Self {
        Self { rows, ..self }
    }

    /// The same, which says labels so that PostgreSQL does not find their index. It has no idea
    /// how many rows have a label, and should go by what it knows.
    pub(crate) fn beside_labels(mut self) -> Self {
        self.by_label = self.dialect == Dialect::Sqlite;
        self
    }
}

impl Writer<'_> {
    /// Appends `condition`, in parentheses where it needs them.
    pub(crate) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::All => self.constant(true),
            Condition::Nothing => self.constant(false),
            Condition::And(all) => self.joined(all, " AND ", true),
            Condition::Or(any) => self.joined(any, " OR ", false),
            Condition::Test(test) => self.test(test),
        }
    }

    pub(super) fn constant(&mut self, value: bool) {
        self.out.push(if value { "1 = 1" } else { "1 = 0" });
    }

    /// Halves the list instead of chaining it, because SQLite limits the depth of expressions
    /// to 1,000 and reads a chain as one level for each link.
    fn joined(&mut self, list: &[Condition], with: &'static str, empty: bool) {
        match list {
            [] => self.constant(empty),
            [one] => self.condition(one),
            many => {
                let (left, right) = many.split_at(many.len() / 2);
                self.out.push("(");
                self.joined(left, with, empty);
                self.out.push(with);
                self.joined(right, with, empty);
                self.out.push(")");
            }
        }
    }

    pub(super) fn test(&mut self, test: &Test) {
        if let Column::Indexed(of) = &test.column {
            return match ability(test) {
                Ability::None => self.constant(true),
                _ => self.indexed(of, test),
            };
        }
        let place = columns::place(self.resource, &test.column);
        if place == Place::Nowhere {
            return self.constant(test.is == Is::Present && test.negated);
        }
        if ability(test) == Ability::None {
            return self.constant(true);
        }
        if place == Place::Tier {
            return self.constant(test.passes(Some(&Value::Text(Tier::Hot.as_str().to_owned()))));
        }
        let compares = !matches!(test.is, Is::Present | Is::Equal(_) | Is::OneOf(_));
        if place == Place::Labels {
            return self.labels_test(test);
        }
        if place == Place::Cluster && self.cluster_test(test) {
            return;
        }
        if let (Place::Word(_) | Place::Map("labels", _), true) = (place, compares) {
            return self.word_test(place, test);
        }
        self.plain_test(place, test);
    }

    /// Appends that the parent is of one of these clusters: texts with a prefix are an interval, which
    /// indexes of the parent know. Whether the test is such a one.
    fn cluster_test(&mut self, test: &Test) -> bool {
        let asked = match &test.is {
            Is::Equal(value) if !test.negated => std::slice::from_ref(value),
            Is::OneOf(values) if !test.negated => values.as_slice(),
            _ => return false,
        };
        let prefix = |value: &Value| match value {
            Value::Text(id) => Parent::prefix_of_cluster(id),
            _ => None,
        };
        let is_of = |prefix| {
            Condition::Test(Test {
                column: Column::Parent,
                is: Is::StartsWith(prefix),
                negated: false,
            })
        };
        let any = asked.iter().filter_map(prefix).map(is_of).collect();
        self.condition(&Condition::Or(any));
        true
    }

    /// Appends a test of a column of words that is not for equality: what is kept as text is
    /// compared in the database, and what is kept as a number, here.
    fn word_test(&mut self, place: Place<'_>, test: &Test) {
        let [first, end] = words::codes();
        self.column(place, "(((");
        self.out.push(" < ").bind(Bind::Text(Some(first)));
        self.column(place, " OR ");
        self.out.push(" >= ").bind(Bind::Text(Some(end)));
        self.out.push(") AND ");
        self.plain_test(place, test);
        self.column(place, ") OR ");
        let passes = |word: &str| test.passes(Some(&Value::Text(word.to_owned())));
        let passing = words::all().filter(|(_, word)| passes(word));
        let codes = Bind::Texts(passing.map(|(code, _)| code).collect());
        self.dialect.one_of(self.out, false, codes);
        self.out.push(")");
    }

    fn plain_test(&mut self, place: Place<'_>, test: &Test) {
        if place == Place::RunDuration {
            self.of_object_or_own_times(test);
        }
        match &test.is {
            Is::Present => self.present(place, test.negated),
            Is::Equal(value) => self.equal(place, value, test.negated),
            Is::OneOf(values) => self.one_of(place, values, test.negated),
            Is::Less(value) => {
                self.compare(place, value, if test.negated { " >= " } else { " < " })
            }
            Is::AtMost(value) => {
                self.compare(place, value, if test.negated { " > " } else { " <= " });
            }
            Is::Greater(value) => {
                self.compare(place, value, if test.negated { " <= " } else { " > " });
            }
            Is::AtLeast(value) => {
                self.compare(place, value, if test.negated { " < " } else { " >= " });
            }
            Is::StartsWith(prefix) => self.starts_with(place, prefix, test.negated),
            Is::EndsWith(suffix) => self.ends_with(place, suffix, test.negated),
            Is::Contains(part) => self.contains(place, part, test.negated),
        }
    }

    /// Appends the value of a column after what stands before it.
    fn column(&mut self, place: Place<'_>, before: &'static str) {
        value(self.out.push(before), self.dialect, place);
    }

    fn present(&mut self, place: Place<'_>, negated: bool) {
        self.column(place, "");
        self.out
            .push(if negated { " IS NULL" } else { " IS NOT NULL" });
    }

    fn equal(&mut self, place: Place<'_>, value: &Value, negated: bool) {
        if place == Place::RecordName && !negated {
            return self.is_record(value);
        }
        match (place, value) {
            (Place::Map("labels", key), Value::Text(text)) if !negated && self.by_label => {
                return self.dialect.labelled(self.out, key, text);
            }
            _ => {}
        }
        if let (Place::Column("run_pipeline"), false) = (place, negated) {
            self.of_pipelines(std::slice::from_ref(value));
        }
        if let (Place::Word("object_reason"), false) = (place, negated) {
            self.equal(Place::Word(columns::REASON), value, false);
            return self.has_reason();
        }
        if let (
            Place::Id(_) | Place::Uid(_) | Place::ObjectUid | Place::ResultOfRecord,
            Value::Text(text),
        ) = (place, value)
        {
            let equal = if negated { " <> " } else { " = " };
            return self.identifier_test(place, negated, &|_, out| {
                out.push(equal).bind_id(text);
            });
        }
        if let (Place::Word(_) | Place::Map("labels", _), Value::Text(text)) = (place, value) {
            return self.equal_text(place, words::stored(text), negated);
        }
        if let Value::Text(text) = value {
            return self.equal_text(place, text::stored(text), negated);
        }
        self.column(place, "");
        self.out
            .push(if negated { " <> " } else { " = " })
            .bind(bind(value));
    }

    /// Appends a comparison for equality of a column of identifiers. Both places that a uid may be
    /// in are found by their indexes.
    fn identifier_test(
        &mut self,
        place: Place<'_>,
        negated: bool,
        compared: &dyn Fn(Dialect, &mut Statement),
    ) {
        let (dialect, same) = (self.dialect, self.dialect.same());
        let out = &mut *self.out;
        match place {
            Place::Id(column) => compared(dialect, out.push(column)),
            Place::Uid(of) => compared(dialect, out.push(dialect.uid(of))),
            Place::ResultOfRecord if !negated => {
                out.push("result_row IN (SELECT results.row_id FROM results WHERE results.id");
                compared(dialect, out);
                out.push(")");
            }
            Place::ResultOfRecord => compared(dialect, out.push(RESULT_ID)),
            Place::ObjectUid if !negated => {
                compared(dialect, out.push("(object_uid"));
                out.push(" AND object_uid <> ").push(same).push(" OR id");
                compared(dialect, out);
                out.push(" AND object_uid = ").push(same).push(")");
            }
            _ => compared(dialect, out.push(dialect.object_uid())),
        }
    }

    /// A full name is taken apart, because the parts are indexed; other text names no record.
    fn is_record(&mut self, value: &Value) {
        let name = match value {
            Value::Text(text) => text.parse::<RecordName>().ok(),
            _ => None,
        };
        match name {
            Some(name) => {
                self.out.push("(id = ").bind_id(name.id()).push(" AND ");
                in_result(self.out, &name);
                self.out.push(")");
            }
            None => self.constant(false),
        }
    }

    /// Full names are compared among the records that have their ids, which are indexed.
    fn is_one_record(&mut self, names: Vec<String>) {
        let ids = names.iter().filter_map(|name| {
            let name = name.parse::<RecordName>().ok()?;
            Some(name.id().to_owned())
        });
        let ids: Vec<String> = ids.collect();
        if ids.is_empty() {
            return self.constant(false);
        }
        self.out.push("(id");
        self.dialect.one_of(self.out, false, Bind::Ids(ids));
        self.column(Place::RecordName, " AND ");
        self.dialect.one_of(self.out, false, Bind::Texts(names));
        self.out.push(")");
    }

    fn one_of(&mut self, place: Place<'_>, values: &[Value], negated: bool) {
        let texts: Vec<String> = values
            .iter()
            .filter_map(|value| match value {
                Value::Text(text) if matches!(place, Place::Word(_) | Place::Map("labels", _)) => {
                    Some(words::stored(text).into_owned())
                }
                Value::Text(text) => Some(text::stored(text).into_owned()),
                _ => None,
            })
            .collect();
        let numbers: Vec<i64> = values
            .iter()
            .filter_map(|value| match value {
                Value::Text(_) => None,
                Value::Int(number) => Some(*number),
                Value::Time(time) => Some(time.as_microsecond()),
            })
            .collect();
        if values.is_empty() {
            // Nothing is one of none, and whatever is there is not.
            return if negated {
                self.present(place, false)
            } else {
                self.constant(false)
            };
        }
        if let (Place::Map("labels", key), true, false) = (place, self.by_label, negated)
            && values.len() <= cost::MOST_VALUES
        {
            return self.dialect.labelled_with_one(self.out, key, texts);
        }
        if let (Place::Column("run_pipeline"), false) = (place, negated)
            && values.len() <= cost::MOST_VALUES
        {
            self.of_pipelines(values);
        }
        if let (Place::Word("object_reason"), false) = (place, negated) {
            self.one_of(Place::Word(columns::REASON), values, false);
            return self.has_reason();
        }
        if let Place::Id(_) | Place::Uid(_) | Place::ObjectUid | Place::ResultOfRecord = place {
            return self.identifier_test(place, negated, &|dialect, out| {
                dialect.one_of(out, negated, Bind::Ids(texts.clone()));
            });
        }
        if place == Place::RecordName && !negated {
            return self.is_one_record(texts);
        }
        let compared: Vec<_> = texts.iter().map(String::as_str).collect();
        let is_cut = !negated && self.cut(place, &compared);
        self.compared(place, &compared);
        let list = match texts.is_empty() {
            true => Bind::Ints(numbers),
            false => Bind::Texts(texts),
        };
        self.dialect.one_of(self.out, negated, list);
        self.out.push(if is_cut { ")" } else { "" });
    }

    fn compare(&mut self, place: Place<'_>, value: &Value, operator: &'static str) {
        self.column(place, "");
        self.out.push(operator).bind(bind(value));
    }
}

fn bind(value: &Value) -> Bind {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Int(number) => (*number).into(),
        Value::Time(time) => (*time).into(),
    }
}

/// Whether `condition` can hold for few rows only, by a column that is indexed by itself.
pub(crate) fn is_selective(condition: &Condition) -> bool {
    use hindsight_filter::condition::ObjectField;
    match condition {
        Condition::And(all) => all.iter().any(is_selective),
        Condition::Test(Test {
            column,
            is: Is::Equal(_) | Is::OneOf(_),
            negated: false,
        }) => {
            matches!(
                column,
                Column::RecordId
                    | Column::RecordName
                    | Column::Object(ObjectField::Name | ObjectField::Uid)
            )
        }
        _ => false,
    }
}
