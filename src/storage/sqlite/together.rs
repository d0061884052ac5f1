//! Changes of one kind, sent to the driver at once.
//!
//! A statement goes to a thread of the driver and its answer comes back, which takes as long as
//! the statement. So changes that are said alike go together; if any of them is refused, none
//! has happened, and each is done by itself, which tells them apart.

use sqlx::{Executor, sqlite::SqliteConnection};

use super::{
    driver::query,
    errors::{classify, is_taken},
};
use crate::storage::{
    Error,
    row::Ready,
    sql::{dialect::Dialect, statement::Statement, write},
};

/// How many go together. Each number would be a text of its own for the driver to remember.
pub(super) const TOGETHER: usize = 16;

/// Does these changes if all of them can be done, and says whether it did. There is a
/// transaction already.
///
/// # Errors
/// If the database fails, and the transaction with it.
pub(super) async fn done(tx: &mut SqliteConnection, changes: &[&Ready]) -> Result<bool, Error> {
    let affected: Option<u64> = changes.iter().map(|change| write::affected(change)).sum();
    let Some(affected) = affected else {
        return Ok(false);
    };
    let statements: Vec<_> = changes
        .iter()
        .map(|change| write::write(Dialect::Sqlite, change))
        .collect();
    if !statements.windows(2).all(|pair| pair[0].is_like(&pair[1])) {
        return Ok(false);
    }
    let failed = |error| classify("writing", error);
    tx.execute("SAVEPOINT together").await.map_err(failed)?;
    let joined = Statement::joined(&statements);
    match query(&joined).execute(&mut *tx).await {
        Ok(rows) if rows.rows_affected() == affected => {
            tx.execute("RELEASE together").await.map_err(failed)?;
            return Ok(true);
        }
        Ok(_) => {}
        Err(error) if is_taken(&error) => {}
        Err(error) => return Err(failed(error)),
    }
    let back = tx.execute("ROLLBACK TO together; RELEASE together").await;
    back.map_err(failed)?;
    Ok(false)
}
