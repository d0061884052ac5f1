//! What is locked before a result goes by its age, or its records to a file.

use super::{statement::Statement, write::is_result};
use crate::codec::row::PreparedChange;

/// The statements that come before a change on PostgreSQL, in its transaction, so that what it compares does
/// not change any more: a row that is being inserted locks its result.
pub(crate) fn locks(change: &PreparedChange) -> Vec<Statement> {
    let (PreparedChange::ExpireResult(name, ..) | PreparedChange::ArchiveResult(name, ..)) = change
    else {
        return Vec::new();
    };
    let mut result = Statement::new("SELECT row_id FROM results WHERE ");
    is_result(&mut result, name);
    result.push(" FOR UPDATE");
    let mut records = Statement::new(
        "SELECT row_id FROM records WHERE result_row IN (SELECT row_id FROM results WHERE ",
    );
    is_result(&mut records, name);
    records.push(") ORDER BY row_id FOR UPDATE");
    // One that replaces an expired one does not lock its result.
    let mut hold = Statement::new(
        "SELECT result_row FROM holds WHERE result_row IN (SELECT row_id FROM results WHERE ",
    );
    is_result(&mut hold, name);
    hold.push(") FOR UPDATE");
    vec![result, records, hold]
}
