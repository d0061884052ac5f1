//! What lists are asked for, and what they give.

use std::num::NonZeroU32;

use hindsight_filter::{
    Order, Position,
    condition::{Column, Condition, Is, ObjectField, Test, Value},
    model::{RecordName, ResultPattern, Tier},
};

/// Whether a query may delay others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Priority {
    /// A cheap query, which uses the connections that serve writes and single reads.
    #[default]
    Normal,
    /// An expensive query. It has connections of its own, and is called on the threads of
    /// [`low_priority`](hindsight_runtime::low_priority), which let all others go first.
    Low,
}

/// A row and its place in the order that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    /// The result or record that was found.
    pub item: T,
    /// Where it is in the order; a list continues after it.
    pub position: Position,
    /// Where it is kept.
    pub tier: Tier,
}

/// Columns of objects that a list of columns reads. Others may be as if the object did not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    pub(crate) fields: &'static [ObjectField],
    pub(crate) labels: bool,
    /// What runs say of their end: signature, message and attempt.
    pub(crate) end: bool,
}

impl Projection {
    /// Every column.
    pub const ALL: Self = Self {
        fields: &ObjectField::ALL,
        labels: true,
        end: true,
    };

    /// These fields, and how the run went: its outcome, and when it began and ended.
    pub const fn of(fields: &'static [ObjectField]) -> Self {
        Self {
            fields,
            labels: false,
            end: false,
        }
    }

    /// The same, with labels.
    #[must_use]
    pub const fn with_labels(self) -> Self {
        Self {
            labels: true,
            ..self
        }
    }

    /// The same, with what runs say of their end.
    #[must_use]
    pub const fn with_end(self) -> Self {
        Self { end: true, ..self }
    }
}

/// What a list is asked for.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// Which parents and results. Lists of results use only the parent, and the id if given.
    pub scope: ResultPattern,
    /// The test that rows within the scope must pass.
    pub condition: Condition,
    /// The order in which rows are given, across all pages.
    pub order: Order,
    /// Continue after this row.
    pub after: Option<Position>,
    /// At most so many rows.
    pub limit: NonZeroU32,
    /// Records: fetch the payload bytes too. Without them `data` holds the type and no bytes.
    pub bodies: bool,
    /// Nothing after the row that brings the payload bytes of records with bodies, the weights of results, or of
    /// records with columns, to so many. The first row comes whatever it holds, so a list that was cut short is
    /// never empty. Of records without bodies all come.
    pub max_bytes: Option<usize>,
    /// Lists of columns: which are read.
    pub projection: Projection,
    /// Which connections it uses.
    pub priority: Priority,
}

impl ListQuery {
    /// Asks for rows with their payloads and all columns: for one, unless `limit` says more.
    pub fn whole_rows(
        scope: ResultPattern,
        condition: Condition,
        order: Order,
        priority: Priority,
    ) -> Self {
        Self {
            scope,
            condition,
            order,
            after: None,
            limit: NonZeroU32::MIN,
            bodies: true,
            max_bytes: None,
            projection: Projection::ALL,
            priority,
        }
    }

    /// The same of one record.
    pub fn of_record(name: &RecordName, priority: Priority) -> Self {
        let id = Condition::Test(Test {
            column: Column::RecordId,
            is: Is::Equal(Value::Text(name.id().to_owned())),
            negated: false,
        });
        Self::whole_rows(name.result().into(), id, Order::newest_first(), priority)
    }
}
