//! Candidates whose rows an index has in the order of time: those of one value, or of several, of
//! which each is a list of its own, or of several indexes.

use super::{IndexCandidate, counted};
use crate::sql::{cost, dialect::Dialect, statement::Statement};
use hindsight_filter::condition::{Column, Is, ObjectField, Test, Value};
use hindsight_filter::model::Resource;
use hindsight_run::keys;

/// How many rows say how close together those of a candidate lie.
const NEWEST: i64 = 500;

/// How many entries of the index of names take as long to read as a row.
const ENTRIES_OF_A_ROW: i64 = 3;

impl<'q> IndexCandidate<'q> {
    /// A test for each value, where rows of one of several are asked for, and an index has those of
    /// each in the order of time; of a pipeline a test for its label and for references to it.
    pub(crate) fn of_each_value(&self) -> Vec<Test> {
        if let Self::Pipeline(test) = self {
            let label = Column::Label(keys::PIPELINE.to_owned());
            let columns = [label, Column::Object(ObjectField::PipelineRef)];
            let each = super::values(&test.is).iter().flat_map(|name| {
                columns.clone().map(|column| Test {
                    column,
                    is: Is::Equal(name.clone()),
                    negated: false,
                })
            });
            return each.collect();
        }
        let (Self::Labels(test)
        | Self::ParentType(_, test)
        | Self::Column("records_by_type" | "records_by_outcome" | "records_by_reason", test)) =
            self
        else {
            return Vec::new();
        };
        let Is::OneOf(values) = &test.is else {
            return Vec::new();
        };
        let mut each: Vec<Test> = Vec::new();
        if values.len() > cost::MOST_VALUES {
            return each;
        }
        for value in values {
            let is = Is::Equal(value.clone());
            if each.iter().all(|known| known.is != is) {
                each.push(Test {
                    column: test.column.clone(),
                    is,
                    negated: false,
                });
            }
        }
        each
    }

    /// Whether its rows are in an index of few rows in the order of storing, which on PostgreSQL has that
    /// in its own way: it would look for them among all rows in their order otherwise.
    pub(crate) fn has_own_order(&self) -> bool {
        matches!(
            self,
            Self::Column(
                "records_by_pipeline"
                    | "records_by_reason"
                    | "records_by_status"
                    | "records_by_outcome"
                    | "records_by_signature",
                _
            )
        )
    }

    /// Whether its rows have one of several values, of which each leads to a list of its own.
    pub(crate) fn has_values(&self) -> bool {
        !self.of_each_value().is_empty()
    }

    /// Whether a row may be in the lists of two of its tests.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Self::Pipeline(_))
    }

    /// The candidate for a test of [`Self::of_each_value`].
    pub(crate) fn of_value<'t>(self, test: &'t Test) -> IndexCandidate<'t>
    where
        'q: 't,
    {
        match (self, &test.column, &test.is) {
            (Self::ParentType(parent, _), ..) => IndexCandidate::ParentType(parent, test),
            (Self::Column(index, _), ..) => IndexCandidate::Column(index, test),
            (_, Column::Label(key), Is::Equal(Value::Text(value))) => {
                IndexCandidate::Label(key, value)
            }
            (_, Column::Object(ObjectField::PipelineRef), _) => {
                IndexCandidate::Column("records_by_pipeline", test)
            }
            (other, ..) => other,
        }
    }

    /// Whether its rows come in the order of time.
    pub(crate) fn has_order(&self) -> bool {
        match self {
            Self::Label(..) | Self::Pipeline(_) => true,
            Self::Labels(_) => self.has_values(),
            _ => self.is_in_order(),
        }
    }
}

/// The statement that gives how far the next rows of each candidate reach in the order of time. A list
/// finds its page after the fewest rows where they reach farthest.
pub(crate) fn reach(
    resource: Resource,
    candidates: &[IndexCandidate<'_>],
    descending: bool,
) -> Statement {
    let mut out = Statement::new("SELECT ");
    for (at, candidate) in candidates.iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " });
        if candidate.is_search() {
            out.push("(SELECT create_us FROM records INDEXED BY records_by_create");
            nth(&mut out, "create_us", descending, NEWEST * ENTRIES_OF_A_ROW);
            out.push(")");
            continue;
        }
        let each = candidate.of_each_value();
        let ways: Vec<_> = match each.is_empty() {
            true => vec![*candidate],
            false => each.iter().map(|test| candidate.of_value(test)).collect(),
        };
        let share = NEWEST / i64::try_from(ways.len()).unwrap_or(NEWEST);
        out.push(match descending {
            true => "(SELECT max(at) FROM (",
            false => "(SELECT min(at) FROM (",
        });
        for (at, way) in ways.iter().enumerate() {
            out.push(if at == 0 { "" } else { " UNION ALL " });
            let column = match way {
                IndexCandidate::Label(..) | IndexCandidate::Indexed { .. } => "at_us",
                _ => "create_us",
            };
            out.push("SELECT (SELECT ").push(column).push(" FROM ");
            counted(&mut out, Dialect::Sqlite, resource, way);
            nth(&mut out, column, descending, share);
            out.push(") AS at");
        }
        out.push("))");
    }
    out
}

/// Appends that the row after so many is wanted.
fn nth(out: &mut Statement, column: &'static str, descending: bool, rows: i64) {
    out.push(" ORDER BY ").push(column);
    out.push(if descending { " DESC" } else { " ASC" });
    out.push(" LIMIT 1 OFFSET ").bind(rows);
}
