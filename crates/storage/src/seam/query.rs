//! What lists are asked for, and what they give.

use std::num::NonZeroU32;

use hindsight_filter::{
    Order, Position,
    condition::{Condition, ObjectField},
    model::ResultPattern,
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
    /// Where it is; a list continues after it.
    pub position: Position,
}

/// Columns of objects that a list of columns reads. Others may be as if the object did not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    /// A bit for each field.
    fields: u16,
    labels: bool,
    rest: bool,
}

impl Projection {
    /// Every column.
    pub const ALL: Self = Self {
        fields: u16::MAX,
        labels: true,
        rest: true,
    };

    /// These fields, and how the run went: its outcome, and when it began and ended.
    pub const fn of(fields: &[ObjectField]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < fields.len() {
            bits |= 1 << fields[at] as u16;
            at += 1;
        }
        Self {
            fields: bits,
            labels: false,
            rest: false,
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

    pub(crate) fn fields(self) -> impl Iterator<Item = ObjectField> {
        let fields = ObjectField::ALL.into_iter();
        fields.filter(move |field| self.fields & (1 << *field as u16) != 0)
    }

    pub(crate) fn has_labels(self) -> bool {
        self.labels
    }

    /// Whether signature, message and attempt are among them.
    pub(crate) fn has_rest(self) -> bool {
        self.rest
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
    /// Records with bodies: nothing after the row that brings the payload bytes to so many. The
    /// first row comes whatever it holds, so a list that was cut short is never empty.
    pub max_bytes: Option<usize>,
    /// Lists of columns: which are read.
    pub projection: Projection,
    /// Which connections it uses.
    pub priority: Priority,
}
