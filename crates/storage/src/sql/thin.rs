//! Records with the columns of their payloads, as a list reads them.

use super::{
    columns::place, condition::value, dialect::Dialect, read, row::SqlRow, statement::Statement,
};
use crate::seam::{Error, ListQuery, Listed, Projection, RecordColumns};
use hindsight_filter::{
    Position,
    columns::{ObjectColumns, RunColumns},
    condition::{Column, Value},
    model::{Resource, Tier},
};

/// The columns of a run, in the order in which they are read.
const RUN: [Column; 3] = [Column::Outcome, Column::Began, Column::Ended];

/// Appends the columns that [`listed`] reads after the keys of the order, each after a comma.
pub(super) fn fields(out: &mut Statement, dialect: Dialect, projection: Projection) {
    let fields = projection.fields.iter().copied().map(Column::Object);
    for column in fields.chain(RUN) {
        out.push(", ");
        value(out, dialect, place(Resource::Records, &column));
    }
    if projection.labels {
        out.push(", ").push(dialect.labels());
    }
    if projection.end {
        out.push(", run_signature, run_message, run_attempt");
    }
}

/// The record in a row of such a list, and its place.
pub(crate) fn listed(row: &impl SqlRow, query: &ListQuery) -> Result<Listed<RecordColumns>, Error> {
    Ok(Listed {
        item: columns(row, query.order.keys().len(), query.projection)?,
        position: read::position(row, read::RECORD_KEYS, &query.order)?,
        tier: Tier::Hot,
    })
}

/// The record in a row that has so many other columns before those of [`fields`].
pub(super) fn columns(
    row: &impl SqlRow,
    others: usize,
    projection: Projection,
) -> Result<RecordColumns, Error> {
    let mut at = read::RECORD_KEYS + others;
    let mut object = ObjectColumns::default();
    for &field in projection.fields {
        let value = match field.is_time() {
            true => row.int(at)?.map(read::time).transpose()?.map(Value::Time),
            false => read::text(row, at)?.map(Value::Text),
        };
        if let Some(value) = value {
            object.insert(field, value);
        }
        at += 1;
    }
    object.run = RunColumns {
        outcome: row.int(at)?,
        began: row.int(at + 1)?,
        ended: row.int(at + 2)?,
    };
    at += RUN.len();
    if projection.labels {
        if let Some(labels) = row.text(at)? {
            (object.labels, object.has_odd_labels) = read::labels(&labels)?;
        }
        at += 1;
    }
    if projection.end {
        object.signature = read::text(row, at)?;
        object.message = read::text(row, at + 1)?;
        object.attempt = row.int(at + 2)?;
    }
    let record = read::record(row)?;
    Ok(RecordColumns { record, object })
}

impl read::ListRow for Listed<RecordColumns> {
    const CUT_BY_STATEMENT: bool = false;

    fn bytes(&self) -> usize {
        self.item.weight()
    }

    fn position(&self) -> &Position {
        &self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conformance::fixtures::everything,
        sql::{
            access_path::AccessPath,
            list::{Part, list_columns},
        },
    };
    use hindsight_filter::condition::ObjectField;

    #[test]
    fn no_payload_is_read() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let statement = list_columns(
                dialect,
                &everything(),
                Part::With,
                AccessPath::DatabaseChoice,
                5,
            );
            let statement = statement.unwrap();
            assert!(!statement.text().contains("bodies"), "{}", statement.text());
        }
    }

    #[test]
    fn what_is_not_asked_for_is_not_read() {
        let few = Projection::of(&[ObjectField::Name]);
        let list = |projection| {
            let query = ListQuery {
                projection,
                ..everything()
            };
            let path = AccessPath::DatabaseChoice;
            let list = list_columns(Dialect::Sqlite, &query, Part::With, path, 5);
            list.unwrap().text().to_owned()
        };
        let (all, few, labelled) = (list(Projection::ALL), list(few), list(few.with_labels()));
        for column in ["object_uid", "run_message"] {
            assert!(
                all.contains(column) && !labelled.contains(column),
                "{column}"
            );
        }
        assert!(
            few.contains("object_name") && !few.contains("labels"),
            "{few}"
        );
        assert!(labelled.contains("labels"), "{labelled}");
    }
}
