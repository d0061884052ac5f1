//! Lists of sources: pages by key, the newest results first, and those of one result by their names.

use super::{FIELDS, source};
use crate::{
    seam::{Error, ListedLog},
    sql::{
        read::{corrupt, need, text},
        row::SqlRow,
        statement::{Bind, Statement},
    },
};
use hindsight_filter::model::{ParentPattern, RecordName, ResultPattern};
use hindsight_filter::order::{KeyValue, Position};

/// The column of the record's id, after the fields of [`source`].
const LOG: usize = 15;
/// Where the columns of the result begin.
const RESULT: usize = 17;

/// Results of a scope with their sources, those without only if `how` is a left join.
fn of_results(how: &'static str, scope: &ResultPattern) -> Statement {
    let mut out = Statement::new("SELECT l.*, r.row_id, r.create_us, r.parent, r.id ");
    out.push("FROM results AS r ").push(how);
    out.push(" (SELECT ").push(FIELDS);
    out.push(", log, result_row FROM log_sources WHERE kind < 2) AS l ON l.result_row = r.row_id");
    out.push(" WHERE 1 = 1");
    if let ParentPattern::Exact(parent) = &scope.parent {
        out.push(" AND r.parent = ").bind(parent.as_str());
    }
    if let Some(id) = &scope.id {
        out.push(" AND r.id = ").bind_id(id);
    }
    out
}

/// When the result of a place was created.
fn created(after: &Position) -> i64 {
    match after.keys.first() {
        Some(Some(KeyValue::Int(created))) => *created,
        _ => i64::MIN,
    }
}

/// The statement for what follows a source in its result; nothing after a result without any.
pub(crate) fn rest_of_result(
    scope: &ResultPattern,
    after: &Position,
    most: i64,
) -> Option<Statement> {
    let [_, Some(KeyValue::Text(log)), others @ ..] = after.keys.as_slice() else {
        return None;
    };
    let mut out = of_results("JOIN", scope);
    // The number of a deleted result may be that of a new one.
    out.push(" AND r.row_id = ").bind(after.id);
    out.push(" AND r.create_us = ").bind(created(after));
    out.push(" AND (l.log, l.kind, l.pod, l.container, l.restart) > (");
    out.bind(Bind::Id(Some(log.clone())));
    for other in others {
        out.push(", ").bind(match other {
            Some(KeyValue::Text(text)) => Bind::Text(Some(text.clone())),
            Some(KeyValue::Int(number)) => Bind::Int(Some(*number)),
            None => Bind::Int(None),
        });
    }
    out.push(") ORDER BY l.log, l.kind, l.pod, l.container, l.restart LIMIT ");
    out.bind(most);
    Some(out)
}

/// The statement for the results after the one of a place.
pub(crate) fn results(scope: &ResultPattern, after: Option<&Position>, most: i64) -> Statement {
    let mut out = of_results("LEFT JOIN", scope);
    if let Some(after) = after {
        out.push(" AND (r.create_us, r.row_id) < (");
        out.bind(created(after));
        out.push(", ").bind(after.id).push(")");
    }
    out.push(" ORDER BY r.create_us DESC, r.row_id DESC");
    out.push(", l.log, l.kind, l.pod, l.container, l.restart LIMIT ");
    out.bind(most);
    // A plan for any number of rows reads whole tables.
    out.planned_anew()
}

/// The step in a row of these statements.
pub(crate) fn listed(row: &impl SqlRow) -> Result<ListedLog, Error> {
    let created = need(row.int(RESULT + 1)?, "create_us")?;
    let mut position = Position {
        keys: vec![Some(KeyValue::Int(created))],
        id: need(row.int(RESULT)?, "row_id")?,
    };
    let Some(log) = row.text(LOG)? else {
        return Ok(ListedLog {
            position,
            log: None,
        });
    };
    let parent = need(text(row, RESULT + 2)?, "parent")?;
    let id = need(text(row, RESULT + 3)?, "id")?;
    let record = need(text(row, LOG)?, "log")?;
    let name = format!("{parent}/results/{id}/records/{record}");
    let run: RecordName = name.parse().map_err(corrupt)?;
    position.keys.extend([
        Some(KeyValue::Text(log)),
        row.int(1)?.map(KeyValue::Int),
        row.text(2)?.map(KeyValue::Text),
        row.text(3)?.map(KeyValue::Text),
        row.int(4)?.map(KeyValue::Int),
    ]);
    let log = source(row, &run)?;
    Ok(ListedLog {
        position,
        log: Some(log),
    })
}
