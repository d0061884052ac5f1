//! Candidates among indexes for the rows of a list, where the order of time does not lead to them.

mod in_order;
mod labels;
mod names;
mod runs;
mod types;

pub(crate) use self::in_order::reach;
pub(super) use self::labels::{beside_labels, other_labels};
pub(crate) use self::labels::{keys_asked, values_of, with_values};
pub(super) use self::names::of_names;
use self::names::searched;
pub(crate) use self::runs::asks_long;
pub(super) use self::runs::{LONG, of_pipelines, of_took};
use self::types::text_of;
pub(super) use self::types::{kept_types, of_types, type_numbers};

use std::fmt;

use super::{
    condition::{Writer, ability, searched},
    cost,
    dialect::Dialect,
    indexed,
    statement::Statement,
    trigrams,
};
use crate::seam::ListQuery;
use hindsight_filter::condition::{Ability, Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::model::{ParentPattern, Resource};

/// A test that an index answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexCandidate<'q> {
    /// By an index of a column, named as in SQLite.
    Column(&'static str, &'q Test),
    /// By the records of a label.
    Label(&'q str, &'q str),
    /// By the label of a pipeline, and by references to it, or of one of several.
    Pipeline(&'q Test),
    /// By how long an object took, and by runs with times of their own. SQLite alone.
    Took(&'q Test),
    /// By the index of what took long, in the order of time. SQLite alone.
    Long,
    /// By the labels that a test describes, of which SQLite has a table: those with a text in their
    /// key or value, or one of several values of a key.
    Labels(&'q Test),
    /// By a parent's rows.
    Parent(&'q str),
    /// By a parent's records of one type, or on SQLite of one of several.
    ParentType(&'q str, &'q Test),
    /// By the index of names: of those that begin with a text, or read from end to end, which is less than all rows.
    Names(&'q Test),
    /// By the trigrams of a part of names.
    NameParts(&'q str),
    /// By what is held of an indexed path.
    Indexed {
        field: i64,
        /// What is asked of it.
        test: &'q Test,
    },
}

impl fmt::Display for IndexCandidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(index, _) => write!(f, "index {index}"),
            Self::Label(key, value) => write!(f, "index of the label {key}={value}"),
            Self::Pipeline(test) => match values(&test.is) {
                [Value::Text(name)] => write!(f, "indexes of the pipeline {name}"),
                several => write!(f, "indexes of {} pipelines", several.len()),
            },
            Self::Took(_) => f.write_str("indexes of how long runs took"),
            Self::Long => f.write_str("index of what took long"),
            Self::Labels(test) => write!(f, "index of labels, several of {}", test.column),
            Self::Parent(parent) => write!(f, "rows of the parent {parent}"),
            Self::ParentType(parent, _) => write!(f, "index of types of the parent {parent}"),
            Self::Names(_) if self.is_search() => f.write_str("scan of the index of names"),
            Self::Names(_) => f.write_str("index of names"),
            Self::NameParts(_) => f.write_str("index of parts of names"),
            Self::Indexed { test, .. } => write!(f, "index of {}", test.column),
        }
    }
}

impl IndexCandidate<'_> {
    /// What a database has to be told to use an index that leaves rows out whatever value is asked
    /// for, which the test implies: the number of success, and of Succeeded, Completed and True.
    pub(super) fn partial_index_predicate(&self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Column("records_by_outcome", _), _) => " AND run_outcome <> 1",
            (Self::Column("results_by_status", _), _) => " AND summary_status <> 1",
            (Self::Column("records_by_reason", _), Dialect::Sqlite) => {
                " AND coalesce(object_reason, object_phase) <> (char(1) || 'Q') \
                 AND coalesce(object_reason, object_phase) <> (char(1) || 'R')"
            }
            (Self::Column("records_by_status", _), Dialect::Sqlite) => {
                " AND object_condition_status <> (char(1) || 'W')"
            }
            (Self::Column("records_by_reason", _), Dialect::Postgres) => {
                " AND left(coalesce(object_reason, object_phase), 128) <> E'\\x01Q' \
                 AND left(coalesce(object_reason, object_phase), 128) <> E'\\x01R'"
            }
            (Self::Column("records_by_status", _), Dialect::Postgres) => {
                " AND left(object_condition_status, 128) <> E'\\x01W'"
            }
            _ => "",
        }
    }

    /// Up to how many rows are counted.
    fn most_counted(&self, dialect: Dialect) -> i64 {
        let model = cost::model(dialect);
        match self {
            Self::Indexed { .. } | Self::Labels(_) => model.counted_entries,
            _ => model.counted_rows,
        }
    }

    /// Whether so many rows, as they were counted, are the way whatever else is asked.
    pub(crate) fn is_surely_few(&self, rows: i64) -> bool {
        rows < self.most_counted(Dialect::Postgres)
    }

    /// Whether there are more rows than are counted on SQLite.
    pub(crate) fn is_many(&self, rows: i64) -> bool {
        rows >= self.most_counted(Dialect::Sqlite)
    }

    /// Whether so many rows take long to gather, where they do not come in the order of the list,
    /// which may be that of time.
    pub(crate) fn is_long(&self, rows: i64, by_time: bool) -> bool {
        let in_order = by_time && self.has_order();
        !in_order && rows > cost::model(Dialect::Sqlite).sorted
    }

    /// Whether it is a search in all names.
    pub(crate) fn is_search(&self) -> bool {
        match self {
            Self::Names(test) => !matches!(&test.is, Is::StartsWith(prefix) if !prefix.is_empty()),
            _ => false,
        }
    }

    /// Whether it is by names that begin so.
    pub(crate) fn is_prefix(&self) -> bool {
        matches!(self, Self::Names(_)) && !self.is_search()
    }

    /// Whether it is by the cluster that parents name.
    pub(crate) fn is_of_cluster(&self) -> bool {
        matches!(self, Self::Column("records_by_parent_create", _))
    }

    /// Whether it is by the type of records.
    pub(crate) fn is_of_type(&self) -> bool {
        matches!(
            self,
            Self::ParentType(..) | Self::Column("records_by_type", _)
        )
    }

    /// Whether it is by how long runs or objects took.
    pub(crate) fn is_of_duration(&self) -> bool {
        matches!(self, Self::Took(_) | Self::Column("records_by_took", _))
    }

    /// Whether it is by the outcome of runs.
    pub(crate) fn is_of_outcome(&self) -> bool {
        matches!(self, Self::Column("records_by_outcome", _))
    }

    /// Whether it is by one of several types.
    fn is_of_types(&self) -> bool {
        match self {
            Self::ParentType(_, test) | Self::Column("records_by_type", test) => {
                matches!(test.is, Is::OneOf(_))
            }
            _ => false,
        }
    }

    /// Whether an index has the rows in the order of time on both databases.
    pub(crate) fn is_in_order(&self) -> bool {
        match self {
            Self::Column("records_by_took" | "records_by_parent_create", _) => false,
            Self::Column(..) => true,
            Self::Parent(_) | Self::ParentType(..) | Self::Long => true,
            Self::Indexed { .. } => self.is_one_key(),
            Self::Label(..)
            | Self::Labels(_)
            | Self::Pipeline(_)
            | Self::Took(_)
            | Self::Names(_)
            | Self::NameParts(_) => false,
        }
    }

    /// Whether it is by the rows that have one key of an indexed path, which are in order.
    pub(super) fn is_one_key(&self) -> bool {
        matches!(self, Self::Indexed { test, .. } if matches!(test.is, Is::Equal(_)))
    }

    /// The index of the resource's own table that has the rows, named as in SQLite.
    pub(super) fn index(&self, resource: Resource) -> Option<&'static str> {
        match (self, resource) {
            (Self::Column(index, _), _) => Some(index),
            (Self::Parent(_), Resource::Results) => Some("results_by_parent_create"),
            (Self::Parent(_), Resource::Records) => Some("records_by_parent_create"),
            (Self::ParentType(..), _) => Some("records_by_parent_type"),
            (Self::Long, _) => Some("records_long"),
            (
                Self::Label(..)
                | Self::Labels(_)
                | Self::Pipeline(_)
                | Self::Took(_)
                | Self::Names(_)
                | Self::NameParts(_)
                | Self::Indexed { .. },
                _,
            ) => None,
        }
    }
}

/// The tests that every row must pass.
pub(super) fn conjuncts(condition: &Condition) -> Vec<&Test> {
    match condition {
        Condition::And(all) => all.iter().flat_map(conjuncts).collect(),
        Condition::Test(test) => vec![test],
        Condition::All | Condition::Nothing | Condition::Or(_) => Vec::new(),
    }
}

/// What may lead to the rows of a query; the best is to be found out by [`count`]. Nothing if no
/// index of what is asked for helps. With `of_types` those of several types are among them.
pub(crate) fn candidates(
    resource: Resource,
    query: &ListQuery,
    of_types: bool,
) -> Vec<IndexCandidate<'_>> {
    let tests = conjuncts(&query.condition);
    let scope = match &query.scope.parent {
        ParentPattern::Exact(parent) => Some(parent.as_str()),
        ParentPattern::Any => None,
    };
    let strong = tests
        .iter()
        .filter_map(|test| candidate_of(resource, scope, test));
    let strong = strong.filter(|one| of_types || !one.is_of_types());
    let mut candidates: Vec<_> = strong.collect();
    let tested = tests.iter().find_map(|test| tested_parent(test));
    if candidates.iter().all(IndexCandidate::is_of_type) && resource == Resource::Records {
        candidates.extend(searched(tests));
    }
    if !candidates.is_empty() {
        candidates.extend(scope.map(IndexCandidate::Parent));
    }
    candidates.extend(tested.map(IndexCandidate::Parent));
    candidates
}

/// The parent of every row that passes a test.
fn tested_parent(test: &Test) -> Option<&str> {
    match (&test.column, &test.is, test.negated) {
        (Column::Parent, Is::Equal(Value::Text(parent)), false) => Some(parent),
        _ => None,
    }
}

fn candidate_of<'q>(
    resource: Resource,
    parent: Option<&'q str>,
    test: &'q Test,
) -> Option<IndexCandidate<'q>> {
    use ObjectField::{ConditionStatus, PipelineRef, Reason};
    if test.negated || ability(test) == Ability::None {
        return None;
    }
    if let Column::Indexed(of) = &test.column {
        return Some(IndexCandidate::Indexed {
            field: of.field?,
            test,
        });
    }
    let index = match (resource, &test.column, &test.is) {
        (Resource::Records, Column::Label(key), Is::Equal(Value::Text(value))) => {
            return Some(IndexCandidate::Label(key, value));
        }
        (Resource::Records, Column::Labels, Is::Contains(part)) if !part.is_empty() => {
            return Some(IndexCandidate::Labels(test));
        }
        (Resource::Records, Column::Label(_), Is::OneOf(_)) => {
            return Some(IndexCandidate::Labels(test));
        }
        (Resource::Records, Column::Pipeline, is) if !values(is).is_empty() => {
            return Some(IndexCandidate::Pipeline(test));
        }
        (Resource::Records, Column::Reason | Column::Object(Reason), is) if is_unwell(is) => {
            "records_by_reason"
        }
        (Resource::Records, Column::Object(field), Is::Equal(_)) => match field {
            ConditionStatus if !is_one_of(test, &["True"]) => "records_by_status",
            PipelineRef => "records_by_pipeline",
            _ => return None,
        },
        (Resource::Records, Column::Signature, Is::Equal(_)) => "records_by_signature",
        (Resource::Records, Column::Outcome, is) if is_unsuccessful(is) => "records_by_outcome",
        (Resource::Records, Column::DataType, Is::OneOf(values))
            if !(1..=cost::MOST_VALUES).contains(&values.len()) =>
        {
            return None;
        }
        (Resource::Records, Column::DataType, Is::Equal(_) | Is::OneOf(_)) => match parent {
            Some(parent) => return Some(IndexCandidate::ParentType(parent, test)),
            None => "records_by_type",
        },
        (Resource::Records, Column::Duration, is) if is_range(is) => {
            return Some(IndexCandidate::Took(test));
        }
        (Resource::Records, Column::ObjectDuration, is) if is_range(is) => "records_by_took",
        (Resource::Records, Column::Cluster, Is::Equal(_)) if parent.is_none() => {
            "records_by_parent_create"
        }
        (Resource::Results, Column::SummaryStatus, Is::Equal(status))
            if *status != Value::Int(SUCCESS) =>
        {
            "results_by_status"
        }
        _ => return None,
    };
    Some(IndexCandidate::Column(index, test))
}

fn is_range(is: &Is) -> bool {
    matches!(
        is,
        Is::Equal(_) | Is::Less(_) | Is::AtMost(_) | Is::Greater(_) | Is::AtLeast(_)
    )
}

/// How rows keep that a run did what it should, as indexes that leave it out say it.
const SUCCESS: i64 = 1;

/// Whether runs are asked for that did not do what they should, or not yet.
fn is_unsuccessful(is: &Is) -> bool {
    let success = Value::Int(SUCCESS);
    match is {
        Is::Equal(value) => *value != success,
        Is::OneOf(values) => !values.is_empty() && !values.contains(&success),
        _ => false,
    }
}

/// Whether reasons are asked for, not too many, that are none of those that the index leaves out.
fn is_unwell(is: &Is) -> bool {
    let asked = values(is);
    let is_well = |value| matches!(text_of(value), Some("Succeeded" | "Completed"));
    !asked.is_empty() && !asked.iter().any(is_well)
}

/// Whether a test asks for one of these texts, of which there are too many for an index.
fn is_one_of(test: &Test, texts: &[&str]) -> bool {
    matches!(&test.is, Is::Equal(Value::Text(text)) if texts.contains(&text.as_str()))
}

/// The statement that counts the rows of each, up to some thousands.
pub(crate) fn count(
    dialect: Dialect,
    resource: Resource,
    candidates: &[IndexCandidate<'_>],
) -> Statement {
    let mut out = Statement::new("SELECT ");
    for (at, candidate) in candidates.iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " });
        let most = candidate.most_counted(dialect);
        if candidate.is_search() {
            // Counting takes as long as reading does.
            out.bind(most);
            continue;
        }
        out.push("(SELECT count(*) FROM (SELECT 1 FROM ");
        counted(&mut out, dialect, resource, candidate);
        out.push(" LIMIT ").bind(most).push(") AS matches)");
    }
    match candidates.iter().all(is_counted_in_order) {
        true => out,
        false => out.planned_anew(),
    }
}

/// Whether the rows of a value are counted in the order in which an index has them.
fn is_counted_in_order(candidate: &IndexCandidate<'_>) -> bool {
    match candidate {
        IndexCandidate::Column(_, test) => {
            candidate.is_in_order() && matches!(test.is, Is::Equal(_)) && !test.negated
        }
        _ => false,
    }
}

/// Appends the rows of a lead, in an index that has them all.
fn counted(
    out: &mut Statement,
    dialect: Dialect,
    resource: Resource,
    candidate: &IndexCandidate<'_>,
) {
    if let IndexCandidate::Label(key, value) = candidate {
        out.push("record_labels WHERE label = ");
        return dialect.label(out, key, value);
    }
    if let IndexCandidate::Labels(test) = candidate {
        out.push("(");
        searched::with_labels(out, test);
        out.push(")");
        return;
    }
    if let IndexCandidate::Pipeline(test) = candidate {
        out.push("(");
        of_pipelines(out, dialect, test);
        out.push(")");
        return;
    }
    if let IndexCandidate::Took(test) = candidate {
        out.push("(");
        of_took(out, dialect, test);
        out.push(")");
        return;
    }
    if let IndexCandidate::NameParts(part) = candidate {
        out.push("(");
        trigrams::records(out, dialect, "1", part);
        out.push(") AS parts");
        return;
    }
    if let IndexCandidate::Indexed { field, test, .. } = candidate {
        out.push("index_entries");
        return indexed::of_field(out, dialect, *field, test);
    }
    out.push(table(resource));
    if let (Dialect::Sqlite, Some(index)) = (dialect, candidate.index(resource)) {
        out.push(" INDEXED BY ").push(index);
    }
    out.push(" WHERE ");
    if let IndexCandidate::Parent(parent) | IndexCandidate::ParentType(parent, _) = candidate {
        out.push("parent = ").bind(*parent);
    }
    if let IndexCandidate::ParentType(..) = candidate {
        out.push(" AND ");
    }
    if let IndexCandidate::Column(_, test)
    | IndexCandidate::ParentType(_, test)
    | IndexCandidate::Names(test) = candidate
    {
        Writer::new(dialect, resource, out).test(test);
    }
    out.push(candidate.partial_index_predicate(dialect));
    if dialect == Dialect::Postgres && is_counted_in_order(candidate) {
        // Or it would look for them among all rows.
        out.push(match candidate.has_own_order() {
            true => " ORDER BY create_us + 0 DESC, row_id DESC",
            false => " ORDER BY create_us DESC, row_id DESC",
        });
    }
}

/// The values of which a test asks for one, if they are not too many.
fn values(is: &Is) -> &[Value] {
    match is {
        Is::Equal(value) => std::slice::from_ref(value),
        Is::OneOf(values) if values.len() <= cost::MOST_VALUES => values,
        _ => &[],
    }
}

/// The table of a resource.
pub(super) fn table(resource: Resource) -> &'static str {
    match resource {
        Resource::Results => "results",
        Resource::Records => "records",
    }
}
