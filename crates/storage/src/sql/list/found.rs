//! How a list finds its rows: which table and index, and which of its rows.

use super::{List, direction, keys};
use crate::sql::{
    access_path::{AccessPath, scope, walk},
    candidate::{self, IndexCandidate},
    condition::{Writer, is_selective, searched},
    dialect::Dialect,
    indexed, labels,
    statement::Statement,
    stored_time, trigrams,
};
use hindsight_filter::condition::{Is, Test};
use hindsight_filter::model::{ParentPattern, Resource};

impl<'q> List<'q> {
    /// Whether another column says more than the parent does.
    fn elsewhere(&self) -> bool {
        match self.path {
            AccessPath::PrefixScan(_)
            | AccessPath::IndexScan
            | AccessPath::FullSort
            | AccessPath::LabelIndex(_) => false,
            AccessPath::DatabaseChoice => is_selective(&self.query.condition),
            AccessPath::Index(IndexCandidate::Parent(_) | IndexCandidate::ParentType(..)) => false,
            AccessPath::Index(_) | AccessPath::NextOf(..) | AccessPath::Late => true,
        }
    }

    /// How the parent is written. SQLite without statistics takes any index that saves the sorting, and
    /// PostgreSQL does not know how few rows were stored late: what is no name of a column keeps them off those
    /// that begin with the parent where another index says more.
    fn parent(&self) -> &'static str {
        match (self.dialect, self.path) {
            (Dialect::Sqlite, _) if self.elsewhere() => "+parent",
            (Dialect::Postgres, AccessPath::Late) => "parent || ''",
            _ => "parent",
        }
    }

    /// Appends the table, and on SQLite the index, which it otherwise chooses without knowing
    /// how many rows have a value.
    fn from(&mut self) {
        self.out.push(" FROM ");
        if self.by_label().is_some() {
            self.out.push("record_labels AS driving CROSS JOIN ");
        } else if let Some(parent) = self.by_parent() {
            self.out
                .push("(SELECT create_us AS at_us, row_id AS record_row FROM records ");
            self.out
                .push("INDEXED BY records_by_parent_create WHERE parent = ");
            self.out.bind(parent).push(") AS driving CROSS JOIN ");
        } else if self.by_one_key() {
            self.out.push("index_entries AS driving CROSS JOIN ");
        }
        if let (Dialect::Postgres, AccessPath::Index(IndexCandidate::NameParts(part))) =
            (self.dialect, self.path)
        {
            self.out.push("(");
            trigrams::records(&mut self.out, self.dialect, "*", part);
            self.out.push(") AS ");
        }
        self.out.push(candidate::table(self.resource));
        if self.dialect == Dialect::Postgres {
            return;
        }
        let key = self.query.order.keys().first();
        let index = match self.path {
            AccessPath::DatabaseChoice
            | AccessPath::FullSort
            | AccessPath::NextOf(..)
            | AccessPath::LabelIndex(_) => return,
            AccessPath::PrefixScan(_) | AccessPath::IndexScan => {
                key.and_then(|key| walk(self.resource, self.query, &key.column))
            }
            AccessPath::Late => Some("records_late"),
            AccessPath::Index(_) if self.has_driving_index() => None,
            AccessPath::Index(candidate) => candidate.index(self.resource),
        };
        match index {
            Some(index) => self.out.push(" INDEXED BY ").push(index),
            None => self.out.push(" NOT INDEXED"),
        };
    }

    /// Appends which rows the lead has, where it is no index of the table.
    fn led(&mut self) {
        if self.path == AccessPath::Late {
            self.out.push(" AND ").push(stored_time::LATE);
        }
        let AccessPath::Index(candidate) = self.path else {
            return;
        };
        if let IndexCandidate::Indexed { field, test, .. } = candidate {
            return self.by_field(field, test, candidate);
        }
        if self.dialect == Dialect::Postgres {
            return;
        }
        match candidate {
            IndexCandidate::Column(_, test) | IndexCandidate::ParentType(_, test) => {
                self.out.push(" AND ");
                Writer::new(self.dialect, self.resource, &mut self.out).test(test);
                self.out
                    .push(candidate.partial_index_predicate(self.dialect));
            }
            IndexCandidate::Parent(_) if self.has_driving_index() => {
                self.out.push(" AND row_id = driving.record_row");
                candidate::other_labels(&mut self.out, &self.query.condition, None);
            }
            IndexCandidate::Parent(_) | IndexCandidate::Indexed { .. } => {}
            IndexCandidate::Long => {
                self.out.push(" AND ").push(candidate::LONG);
            }
            IndexCandidate::Label(key, value) => {
                self.out
                    .push(" AND row_id = driving.record_row AND driving.label = ");
                self.dialect.label(&mut self.out, key, value);
                candidate::of_types(&mut self.out, &self.query.condition, "driving.type");
                // In this order: rows of a label lie closer together than those of a parent.
                candidate::other_labels(&mut self.out, &self.query.condition, Some((key, value)));
                self.of_parent();
            }
            IndexCandidate::Pipeline(test) => {
                self.out.push(" AND row_id IN (");
                candidate::of_pipelines(&mut self.out, self.dialect, test);
                self.out.push(")");
            }
            IndexCandidate::Took(test) => {
                self.out.push(" AND row_id IN (");
                candidate::of_took(&mut self.out, self.dialect, test);
                self.out.push(")");
            }
            IndexCandidate::Labels(test) => {
                self.out.push(" AND row_id IN (");
                searched::with_labels(&mut self.out, test);
                candidate::of_types(&mut self.out, &self.query.condition, "type");
                self.out.push(")");
            }
            IndexCandidate::NameParts(part) => {
                self.out.push(" AND row_id IN (");
                trigrams::records(&mut self.out, self.dialect, "rowid", part);
                self.out.push(")");
            }
            IndexCandidate::Names(test) => {
                self.out.push(" AND row_id IN (SELECT row_id FROM records ");
                self.out.push("INDEXED BY records_by_object_name WHERE ");
                Writer::new(self.dialect, self.resource, &mut self.out).test(test);
                self.out.push(")");
            }
        }
    }

    /// Appends that the rows of a label are of the list's parent, so that those of others are
    /// passed over before they are read: an index says so many times faster than a row.
    fn of_parent(&mut self) {
        if let ParentPattern::Exact(parent) = &self.query.scope.parent {
            self.out
                .push(" AND (SELECT 1 FROM records AS own INDEXED BY ")
                .push("records_by_parent_create WHERE own.parent = ")
                .bind(parent.as_str())
                .push(
                    " AND own.create_us = driving.at_us AND own.row_id = driving.record_row) = 1",
                );
        }
    }

    /// Appends which rows an indexed path leads to.
    fn by_field(&mut self, field: i64, test: &Test, candidate: IndexCandidate<'_>) {
        if let (true, Is::Equal(_)) = (candidate.is_one_key(), &test.is) {
            self.out
                .push(" AND row_id = driving.record_row AND driving.field = ");
            self.out.bind(field).push(" AND ");
            indexed::key_test(&mut self.out, self.dialect, "driving.value", test);
            return;
        }
        self.out.push(" AND row_id IN ");
        indexed::rows(&mut self.out, self.dialect, field, test);
    }

    /// Appends when rows were stored.
    fn times(&mut self) {
        let column = self.stored_at();
        stored_time::times(&mut self.out, &self.query.condition, column);
    }

    /// When a row was stored.
    pub(super) fn stored_at(&self) -> &'static str {
        match self.path {
            _ if self.has_driving_index() => "driving.at_us",
            // No index has this: gathering all rows of the time would take longer than looking
            // at those with the label, whose index knows the time as well.
            AccessPath::LabelIndex(Some(_)) => labels::STORED_AT,
            AccessPath::NextOf(..) => labels::STORED_AT,
            _ => "create_us",
        }
    }

    /// The label whose records are gone through in the order of time, which is known of them
    /// before they are read. SQLite alone.
    pub(super) fn by_label(&self) -> Option<(&'q str, &'q str)> {
        match (self.dialect, self.path) {
            (Dialect::Sqlite, AccessPath::Index(IndexCandidate::Label(key, value))) => {
                Some((key, value))
            }
            _ => None,
        }
    }

    /// The parent whose records are gone through likewise, if labels are asked for, whose table
    /// knows the same of them.
    fn by_parent(&self) -> Option<&'q str> {
        match (self.dialect, self.resource, self.path) {
            (
                Dialect::Sqlite,
                Resource::Records,
                AccessPath::Index(IndexCandidate::Parent(parent)),
            ) => labels::has_label(self.query).then_some(parent),
            _ => None,
        }
    }

    /// Whether the rows of the path have all labels that each row must have.
    pub(super) fn knows_labels(&self) -> bool {
        self.by_label().is_some() || self.by_parent().is_some()
    }

    /// Whether the rows of one key of an indexed path are gone through likewise.
    fn by_one_key(&self) -> bool {
        matches!(self.path, AccessPath::Index(candidate) if candidate.is_one_key())
    }

    /// Whether rows are gone through in an order that is known before they are read.
    pub(super) fn has_driving_index(&self) -> bool {
        self.by_label().is_some() || self.by_parent().is_some() || self.by_one_key()
    }

    /// What decides among rows that are equal in every key.
    pub(super) fn tie(&self) -> &'static str {
        if self.has_driving_index() {
            "driving.record_row"
        } else {
            "row_id"
        }
    }

    /// Appends the rows that a list chooses from, up to its condition.
    pub(super) fn found(&mut self) {
        if let (Dialect::Postgres, AccessPath::PrefixScan(rows)) = (self.dialect, self.path) {
            // A list within a list, which no index of the condition leads past.
            self.out.push(" FROM (SELECT *");
            self.scoped();
            self.next_in_order(rows);
            self.out
                .push(") AS ")
                .push(candidate::table(self.resource))
                .push(" WHERE 1 = 1");
            return;
        }
        if (self.dialect, self.path) == (Dialect::Postgres, AccessPath::Late) {
            // Likewise without an end: PostgreSQL takes most rows for late, and would look for other tests in their indexes.
            self.out.push(" FROM (SELECT *");
            self.scoped();
            self.led();
            self.order_of_first_key();
            self.out.push(" OFFSET 0) AS records WHERE 1 = 1");
            return;
        }
        if let AccessPath::NextOf(candidate, rows) = self.path {
            return self.next_of(candidate, rows);
        }
        self.scoped();
        self.led();
        self.labelled();
        self.prefix_bound();
    }

    /// Appends a list within a list, of the next rows of an index, or of those of each of its values.
    fn next_of(&mut self, candidate: IndexCandidate<'q>, rows: i64) {
        let each = candidate.of_each_value();
        let ways: Vec<_> = match each.is_empty() {
            true => vec![candidate],
            false => each.iter().map(|test| candidate.of_value(test)).collect(),
        };
        let several = ways.len() > 1;
        self.out.push(if several {
            " FROM (SELECT * FROM ("
        } else {
            " FROM "
        });
        for (at, way) in ways.into_iter().enumerate() {
            self.out.push(if at == 0 { "(" } else { " UNION ALL (" });
            self.out.push("SELECT *");
            self.scoped();
            if let IndexCandidate::Column(_, test) = way {
                self.out.push(" AND ");
                Writer::new(self.dialect, self.resource, &mut self.out).test(test);
                self.out.push(way.partial_index_predicate(self.dialect));
            }
            self.next_in_order(rows);
            self.out.push(")");
        }
        if several {
            self.out.push(") AS each");
            self.next_in_order(rows);
            self.out.push(")");
        }
        self.out.push(" AS records WHERE 1 = 1");
        // Within the list, a parent with few of the rows would have it go through all.
        scope(&mut self.out, self.resource, &self.query.scope, "parent");
    }

    /// Appends what the index of labels knows beside them.
    fn labelled(&mut self) {
        let AccessPath::LabelIndex(stored) = self.path else {
            return;
        };
        labels::of_parent(&mut self.out, self.query);
        labels::of_types(&mut self.out, self.query);
        labels::unwell(&mut self.out, self.query);
        if let Some(window) = stored {
            labels::stored_in(&mut self.out, window);
        }
    }

    /// Appends the rows of the scope and of the time that come after those that were given out.
    fn scoped(&mut self) {
        self.from();
        self.out.push(" WHERE 1 = 1");
        self.bounds();
    }

    fn bounds(&mut self) {
        let parent = self.parent();
        // The index of labels is asked for the parent in its own way, and the next rows of an index are of all parents.
        let elsewhere = matches!(
            self.path,
            AccessPath::LabelIndex(_) | AccessPath::NextOf(..)
        );
        if let Some(parent) = self.parent_in_order() {
            self.out
                .push(" AND parent = ANY(ARRAY[")
                .bind(parent)
                .push("])");
        } else if !elsewhere || self.query.scope.id.is_some() {
            scope(&mut self.out, self.resource, &self.query.scope, parent);
        }
        self.times();
        self.seek();
    }

    /// Appends where the near rows end, on SQLite, which goes through an index up to there
    /// without making a list of it.
    fn prefix_bound(&mut self) {
        let Some(key) = keys(self.resource, self.query).next() else {
            return;
        };
        let AccessPath::PrefixScan(rows) = self.path else {
            return;
        };
        let column = &key.key.column;
        let descending = key.key.descending;
        self.out.push(" AND ");
        self.key(column, key.place);
        self.out
            .push(if descending { " >= " } else { " <= " })
            .push("coalesce((SELECT ");
        self.key(column, key.place);
        self.out
            .push(" FROM ")
            .push(candidate::table(self.resource));
        self.out.push(" WHERE 1 = 1");
        self.bounds();
        self.order(false);
        self.out.push(" LIMIT 1 OFFSET ").bind(rows).push("), ");
        self.out.push(if descending {
            "-9223372036854775807)"
        } else {
            "9223372036854775807)"
        });
    }

    /// Appends that so many rows are taken, on PostgreSQL, in the order of the first key alone, with all that
    /// are equal in it: no index has what decides among those, and sorting every row of the list within the list by it takes
    /// three times as long as looking at it.
    fn next_in_order(&mut self, rows: i64) {
        self.order_of_first_key();
        self.out
            .push(" FETCH FIRST ")
            .number(rows)
            .push(" ROWS WITH TIES");
    }

    /// Appends the same of as many rows as are wanted.
    pub(super) fn first_with_ties(&mut self, limit: i64) {
        self.order_of_first_key();
        self.out
            .push(" FETCH FIRST ")
            .bind(limit)
            .push(" ROWS WITH TIES");
    }

    /// The parent of which PostgreSQL looks at the next rows. The order of that list begins with the parent, which is tested in
    /// a way that does not say that all rows have the same one: so it is that of one index alone, and not also of one of all parents,
    /// which would lead through very many rows of others where the parent is rare.
    fn parent_in_order(&self) -> Option<&'q str> {
        match (self.dialect, self.path, &self.query.scope.parent) {
            (Dialect::Postgres, AccessPath::PrefixScan(_), ParentPattern::Exact(parent)) => {
                Some(parent.as_str())
            }
            _ => None,
        }
    }

    /// Appends the order of the first key alone.
    fn order_of_first_key(&mut self) {
        if let Some(first) = keys(self.resource, self.query).next() {
            let direction = direction(first.key.descending);
            self.out.push(" ORDER BY ");
            if self.parent_in_order().is_some() {
                self.out.push("parent").push(direction).push(", ");
            }
            self.key(&first.key.column, first.place);
            self.out.push(direction);
        }
    }

    /// The whole statement that gives a row if there are others than the near ones.
    pub(super) fn beyond_prefix(mut self) -> Statement {
        let AccessPath::PrefixScan(rows) = self.path else {
            return self.out;
        };
        self.out.push("1");
        self.scoped();
        // Without what decides among equal rows, which would have PostgreSQL read them.
        self.order_of_first_key();
        self.out.push(" LIMIT 1 OFFSET ").number(rows);
        match self.dialect {
            Dialect::Postgres => self.out.planned_once(),
            Dialect::Sqlite => self.out,
        }
    }
}
