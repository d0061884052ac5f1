//! What looking after promoted fields needs of a database.

use async_trait::async_trait;
use futures::TryStreamExt;
use sqlx::{Connection, postgres::PgConnection};

use super::{
    Postgres,
    batch::RETRIES,
    driver::query,
    errors::{classify, is_conflict},
};
use crate::{
    Error, ListQuery,
    objects::Objects,
    pieces::Pieces,
    promoted::{Desk, Known, Promotions, is_asked},
    snapshot::Row,
    sql::{dialect::Dialect, promoted, statement::Statement},
};

#[async_trait]
impl Desk for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
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
        rows(&mut *self.connection().await?, statement).await
    }

    async fn tell(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        let mut connection = self.connection().await?;
        let mut left = RETRIES;
        loop {
            match attempt(&mut connection, &statements).await {
                Err(error) if is_conflict(&error) && left > 0 => left -= 1,
                outcome => return outcome.map_err(|e| classify("writing what is promoted", e)),
            }
        }
    }
}

async fn attempt(
    connection: &mut PgConnection,
    statements: &[Statement],
) -> Result<u64, sqlx::Error> {
    let mut tx = connection.begin().await?;
    let mut changed = 0;
    for statement in statements {
        changed += query(statement).execute(&mut *tx).await?.rows_affected();
    }
    tx.commit().await?;
    Ok(changed)
}

async fn rows(connection: &mut PgConnection, statement: &Statement) -> Result<Vec<Row>, Error> {
    let rows = query(statement).fetch(connection);
    rows.map_ok(|row| Box::new(row) as Row)
        .try_collect()
        .await
        .map_err(|e| classify("reading what is promoted", e))
}

/// The same list, with the promoted fields that are whole at the moment that is read.
pub(super) async fn resolved(
    connection: &mut PgConnection,
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
