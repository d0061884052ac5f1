//! What looking after promoted fields needs of a file.

use async_trait::async_trait;
use futures::TryStreamExt;
use sqlx::sqlite::SqliteConnection;

use super::{Sqlite, driver::query, errors::classify};
use crate::{
    Error, ListQuery,
    objects::Objects,
    pieces::Pieces,
    promoted::{Desk, Known, Promotions, is_asked},
    snapshot::Row,
    sql::{dialect::Dialect, promoted, statement::Statement},
};

#[async_trait]
impl Desk for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn packed(&self) -> &Pieces {
        &self.pieces
    }

    fn noticed(&self) -> &Promotions {
        &self.promotions
    }

    fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    async fn ask(&self, statement: &Statement) -> Result<Vec<Row>, Error> {
        rows(&mut *self.reader().await?, statement).await
    }

    async fn tell(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        self.writer.tell(statements).await
    }
}

async fn rows(connection: &mut SqliteConnection, statement: &Statement) -> Result<Vec<Row>, Error> {
    let rows = query(statement).fetch(connection);
    rows.map_ok(|row| Box::new(row) as Row)
        .try_collect()
        .await
        .map_err(|e| classify("reading what is promoted", e))
}

/// The same list, with the promoted fields that are whole at the moment that is read.
pub(super) async fn resolved(
    connection: &mut SqliteConnection,
    asked: &ListQuery,
) -> Result<ListQuery, Error> {
    if !is_asked(&asked.condition) {
        return Ok(asked.clone());
    }
    let known = Known::read(&rows(connection, &promoted::known()).await?)?;
    let mut resolved = asked.clone();
    resolved.condition = known.resolved(&asked.condition);
    Ok(resolved)
}
