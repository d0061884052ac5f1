//! Lists: pages by key, never by offset.
//!
//! Rows without the order's first key come last in both directions. That is two lists, one after
//! the other, because neither database reads such an order from an index in both directions.
//! Among rows that are equal in the first key the others decide.

mod fields;
mod found;
mod seek;

use std::borrow::Cow;

use super::{
    access_path::{self, AccessPath},
    candidate::{self, IndexCandidate},
    columns::{Holds, Place, always, holds, may_be_long, place},
    condition::{Rows, Writer, is_selective, value},
    dialect::Dialect,
    statement::Statement,
};
use crate::{
    codec::text::words,
    seam::{Error, ListQuery},
};
use hindsight_filter::model::{ParentPattern, Resource};
use hindsight_filter::{
    condition::{Column, Condition, ObjectField, Test},
    order::{KEY_CHARS, KeyValue, MAX_KEYS, OrderKey},
};

/// What the keys of an order are called in a statement.
const ALIASES: [&str; MAX_KEYS] = [
    "order_key",
    "order_key_2",
    "order_key_3",
    "order_key_4",
    "order_key_5",
    "order_key_6",
    "order_key_7",
    "order_key_8",
];

const CHARS: &str = "512";
const _: () = assert!(KEY_CHARS == 512, "statements cut keys where orders say");

/// Which rows of a list a statement gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Rows that have the first key.
    With,
    /// Rows that do not; they come last.
    Without,
}

/// The parts that a page may come from, in order. A page of more than one must be read in one
/// transaction: a row that gets its key in between would be in neither.
pub(crate) fn parts(resource: Resource, query: &ListQuery) -> Vec<Part> {
    let Some(first) = keys(resource, query).next() else {
        return vec![Part::Without];
    };
    match first.after {
        _ if always(&first.key.column) => vec![Part::With],
        Some(None) => vec![Part::Without],
        Some(Some(_)) | None => vec![Part::With, Part::Without],
    }
}

/// What is asked of the next part after one that gave so many bytes; nothing if the page ends
/// with them.
pub(crate) fn rest(query: &ListQuery, bytes: usize) -> Option<ListQuery> {
    let mut rest = query.clone();
    if let Some(most) = &mut rest.max_bytes
        && bytes > 0
    {
        *most = most.checked_sub(bytes).filter(|left| *left > 0)?;
    }
    Some(rest)
}

/// A key that rows of the resource can have.
#[derive(Clone, Copy)]
struct Key<'q> {
    key: &'q OrderKey,
    place: Place<'q>,
    /// Its value in the row that the page comes after, if there is such a row.
    after: Option<Option<&'q KeyValue>>,
}

fn keys(resource: Resource, query: &ListQuery) -> impl Iterator<Item = Key<'_>> {
    let after = query.after.as_ref();
    let keys = query.order.keys().iter().enumerate();
    keys.filter_map(move |(number, key)| {
        let place = match place(resource, &key.column) {
            // Rows that all lack a key are equal in it.
            Place::Nowhere => return None,
            place => place,
        };
        let after = after.map(|row| row.keys.get(number).and_then(Option::as_ref));
        Some(Key { key, place, after })
    })
}

/// Values that one statement may bind; SQLite takes 32,766 and PostgreSQL twice as many.
const MOST_BINDS: usize = 32_000;

/// Values that come from subqueries in one statement; each takes 4 KiB of its plan.
const MOST_UNKNOWN: usize = 200;

/// Tests that a statement says over and over, for each of several values.
const MOST_TESTS: usize = 500;

/// The statement for at most `limit` rows of one part, found in a way.
///
/// # Errors
/// If the condition has more values than a statement can.
pub(crate) fn list(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    part: Part,
    path: AccessPath<'_>,
    limit: i64,
) -> Result<Statement, Error> {
    let with_bodies = resource == Resource::Records && query.bodies;
    let path = access_path::all_in_order(dialect, resource, query, path, limit);
    let mut list = List {
        dialect,
        resource,
        query,
        part,
        path,
        columns: false,
        out: Statement::new("SELECT "),
    };
    // Bodies are joined to the page, not to all rows that are sorted to find it.
    if with_bodies {
        list.out.push("page.*, ").push(super::read::BODY);
        list.out.push(" FROM (SELECT found.*, ");
        list.before();
        list.out.push(" AS bytes_before FROM (SELECT ");
    }
    list.rows(limit);
    if with_bodies {
        list.out
            .push(") AS found) AS page LEFT JOIN bodies ON record_row = row_id");
        if let Some(most) = query.max_bytes {
            list.out
                .push(" WHERE bytes_before < ")
                .bind(i64::try_from(most.max(1)).unwrap_or(i64::MAX));
        }
        list.order(true);
    }
    list.checked()
}

/// The statement for at most `limit` records of one part with the columns of their payloads, found
/// in a way; it fails as [`list`] does.
pub(crate) fn list_columns(
    dialect: Dialect,
    query: &ListQuery,
    part: Part,
    path: AccessPath<'_>,
    limit: i64,
) -> Result<Statement, Error> {
    let path = access_path::all_in_order(dialect, Resource::Records, query, path, limit);
    let mut list = List {
        dialect,
        resource: Resource::Records,
        query,
        part,
        path,
        columns: true,
        out: Statement::new("SELECT "),
    };
    list.rows(limit);
    list.checked()
}

/// The statement that gives a row if there are others of the part than the near ones.
pub(crate) fn beyond_prefix(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    part: Part,
    path: AccessPath<'_>,
) -> Statement {
    let list = List {
        dialect,
        resource,
        query,
        part,
        path,
        columns: false,
        out: Statement::new("SELECT "),
    };
    list.beyond_prefix()
}

/// A list of one part that is being written.
struct List<'q> {
    dialect: Dialect,
    resource: Resource,
    query: &'q ListQuery,
    part: Part,
    path: AccessPath<'q>,
    /// Whether what columns keep of payloads is read.
    columns: bool,
    out: Statement,
}

impl<'q> List<'q> {
    /// The statement, unless it has more values than one can.
    fn checked(self) -> Result<Statement, Error> {
        let values = self.out.binds().len();
        if values > MOST_BINDS {
            let why =
                format!("the condition has {values} values, at most {MOST_BINDS} are possible");
            return Err(Error::Database {
                what: "listing",
                source: why.into(),
            });
        }
        // These leave the planner no choice that depends on values, or little.
        let is_fixed = matches!(
            self.path,
            AccessPath::PrefixScan(_)
                | AccessPath::NextOf(..)
                | AccessPath::LabelIndex(Some(_))
                | AccessPath::Late
        );
        let is_few = self.path == AccessPath::DatabaseChoice
            && (self.query.scope.id.is_some() || is_selective(&self.query.condition));
        let once = self.dialect == Dialect::Postgres && is_fixed && self.is_for_any_values();
        Ok(
            match is_fixed || is_few || self.query.condition == Condition::All {
                true if once => self.out.planned_once(),
                true => self.out,
                false => self.out.planned_anew(),
            },
        )
    }

    /// Whether one plan is as good for some values as for others, where the path says the rest. What is held of an indexed path is
    /// joined to the rows, in a way that depends on how many there are; beside the index of labels, others may lead to rows.
    fn is_for_any_values(&self) -> bool {
        let has = |is_so: &dyn Fn(&Column) -> bool| {
            access_path::has_test(&self.query.condition, &|test| is_so(&test.column))
        };
        // Indexes of outcomes, reasons and statuses leave rows out, which a value that is not known does not imply.
        let has_other_index = |column: &Column| {
            !matches!(
                column,
                Column::Label(_)
                    | Column::Labels
                    | Column::Pipeline
                    | Column::DataType
                    | Column::Outcome
                    | Column::Reason
                    | Column::Object(
                        ObjectField::Kind | ObjectField::Namespace | ObjectField::ConditionStatus
                    )
            )
        };
        let by_label = matches!(self.path, AccessPath::LabelIndex(_));
        self.out.binds().len() <= MOST_UNKNOWN
            && !has(&|column| matches!(column, Column::Indexed(_)))
            && !(by_label && has(&has_other_index))
    }

    /// Appends the statement after its `SELECT`, without bodies: one list, or of one for each of
    /// several values the first rows of all.
    fn rows(&mut self, limit: i64) {
        let each = self.of_each_value();
        if each.is_empty() {
            return self.rows_of_one(limit);
        }
        for (number, (path, test)) in each.iter().enumerate() {
            self.out.push(match (number, path.may_repeat()) {
                (0, _) => "* FROM (SELECT ",
                (_, true) => " UNION SELECT * FROM (SELECT ",
                (_, false) => " UNION ALL SELECT * FROM (SELECT ",
            });
            let mut one = List {
                out: std::mem::take(&mut self.out),
                path: AccessPath::Index(path.of_value(test)),
                ..*self
            };
            one.rows_of_one(limit);
            self.out = one.out;
            self.out.push(") AS one");
        }
        self.order(true);
        self.out.push(" LIMIT ").bind(limit);
    }

    /// The candidate that leads to the rows, with a test for each value where it has several; nothing
    /// if the condition or the order is too long to be said for each.
    fn of_each_value(&self) -> Vec<(IndexCandidate<'q>, Test)> {
        let AccessPath::Index(candidate) = self.path else {
            return Vec::new();
        };
        let each = match self.dialect {
            Dialect::Sqlite => candidate.of_each_value(),
            Dialect::Postgres => Vec::new(),
        };
        let tests = length(&self.query.condition) + self.order_length();
        match each.len() * tests <= MOST_TESTS {
            true => each.into_iter().map(|test| (candidate, test)).collect(),
            false => Vec::new(),
        }
    }

    /// How many tests are as long as the order: words are said one by one, wherever a key is.
    fn order_length(&self) -> usize {
        let is_word = |key: &Key<'_>| matches!(key.place, Place::Word(_) | Place::Map("labels", _));
        let keys = keys(self.resource, self.query);
        keys.filter(is_word).count() * words::all().count()
    }

    /// Appends the rows that one path leads to. Where they are sorted, SQLite sorts their numbers, not all that is read of each.
    fn rows_of_one(&mut self, limit: i64) {
        if !self.is_sorted() {
            self.fields();
            return self.next(limit);
        }
        let mut shown = List {
            out: std::mem::take(&mut self.out),
            path: AccessPath::DatabaseChoice,
            ..*self
        };
        shown.fields();
        self.out = shown.out;
        self.out.push(" FROM (SELECT row_id AS sorted_row");
        self.next(limit);
        self.out
            .push(") AS sorted CROSS JOIN ")
            .push(candidate::table(self.resource))
            .push(" ON row_id = sorted_row");
        self.order(true);
    }

    /// Whether SQLite sorts the rows of an index.
    fn is_sorted(&self) -> bool {
        let first = keys(self.resource, self.query).next();
        let by_time = first.is_none_or(|first| first.key.column == Column::CreateTime);
        match (self.dialect, self.path) {
            (Dialect::Sqlite, AccessPath::Index(one)) => !by_time || !one.has_order(),
            _ => false,
        }
    }

    /// Appends which rows are next, and in which order.
    fn next(&mut self, limit: i64) {
        let ordered = self.is_of_ordered() && self.query.condition != Condition::All;
        if ordered {
            self.out.push(" FROM (SELECT *");
        }
        self.found();
        if self.query.condition != Condition::All {
            self.out.push(" AND ");
            // What a path knows of labels is not asked of each row again.
            let condition = match self.knows_labels() {
                true => Cow::Owned(candidate::beside_labels(&self.query.condition)),
                false => Cow::Borrowed(&self.query.condition),
            };
            let writer = Writer::new(self.dialect, self.resource, &mut self.out);
            let mut writer = writer.of_types(candidate::type_numbers(&self.query.condition));
            if let AccessPath::Index(IndexCandidate::Column(..))
            | AccessPath::NextOf(..)
            | AccessPath::FullSort
            | AccessPath::Late = self.path
            {
                writer = writer.beside_labels();
            }
            writer = writer.looking_at(match (self.path, &self.query.scope.parent) {
                (AccessPath::PrefixScan(_) | AccessPath::Late, _) => Rows::Few,
                (_, ParentPattern::Exact(_)) => Rows::Some,
                (_, ParentPattern::Any) => Rows::Many,
            });
            writer.condition(&condition);
        }
        if ordered {
            self.first_with_ties(limit);
            self.out.push(") AS ").push(candidate::table(self.resource));
        }
        self.order(false);
        self.out.push(" LIMIT ").bind(limit);
    }

    /// Whether the rows come from a list within a list that has them in order but for what decides among equal ones. PostgreSQL
    /// guesses how many match, and where it guesses few it would look at the whole list to sort them: so the page ends
    /// before they are sorted.
    fn is_of_ordered(&self) -> bool {
        self.dialect == Dialect::Postgres
            && matches!(self.path, AccessPath::PrefixScan(_) | AccessPath::Late)
    }

    /// Appends what rows are ordered by.
    fn key(&mut self, column: &Column, place: Place<'_>) {
        if *column == Column::CreateTime {
            self.out.push(self.stored_at());
            return;
        }
        if !may_be_long(column) {
            return value(&mut self.out, self.dialect, place);
        }
        let (open, middle) = self.dialect.first();
        self.out.push(open);
        match place {
            Place::Word(_) | Place::Map("labels", _) => {
                let dialect = self.dialect;
                dialect.word(&mut self.out, &|out| value(out, dialect, place));
            }
            place => value(&mut self.out, self.dialect, place),
        }
        self.out.push(middle).push(CHARS).push(")");
    }

    /// Appends how many bytes the bodies before a row have, if anybody asks.
    fn before(&mut self) {
        if self.query.max_bytes.is_none() {
            self.out.push("NULL");
            return;
        }
        self.out.push("sum(coalesce(body_size, 0)) OVER (");
        self.order(true);
        self.out
            .push(" ROWS UNBOUNDED PRECEDING) - coalesce(body_size, 0)");
    }

    /// The keys, after the first where rows without it are listed.
    fn deciding(&self) -> impl Iterator<Item = Key<'q>> + use<'q> {
        keys(self.resource, self.query).skip(usize::from(self.part == Part::Without))
    }

    /// Appends in which order the rows come; `named` by the names that the keys were given.
    fn order(&mut self, named: bool) {
        self.out.push(" ORDER BY ");
        for (number, key) in self.deciding().enumerate() {
            if named {
                let at = self.query.order.keys().iter().position(|k| k == key.key);
                self.out.push(ALIASES[at.unwrap_or(0)]);
            } else {
                self.key(&key.key.column, key.place);
                let sorted = matches!(
                    self.path,
                    AccessPath::FullSort | AccessPath::LabelIndex(None)
                );
                if number == 0 && sorted && holds(&key.key.column) != Holds::Text {
                    // No index has this order, so that none is walked for it.
                    self.out.push(" + 0");
                }
            }
            self.out.push(direction(key.key.descending));
            let is_first = number == 0 && self.part == Part::With;
            if !is_first && !always(&key.key.column) {
                self.out.push(" NULLS LAST");
            }
            self.out.push(", ");
        }
        let (tie, descending) = (self.tie(), self.query.order.ties_descend());
        self.out.push(if named { "row_id" } else { tie });
        self.out.push(direction(descending));
    }
}

/// How many tests a condition has.
fn length(condition: &Condition) -> usize {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().map(length).sum(),
        Condition::Test(_) => 1,
        Condition::All | Condition::Nothing => 0,
    }
}

fn direction(descending: bool) -> &'static str {
    if descending { " DESC" } else { " ASC" }
}
