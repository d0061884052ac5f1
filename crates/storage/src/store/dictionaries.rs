//! Reading and storing the pieces that bodies refer to.

use async_trait::async_trait;

use super::SqlStore;
use crate::{
    codec::dictionary::{Key, NewPiece, Shelf, StoredPiece},
    driver::Database,
    seam::Error,
    sql::{pieces as sql, read},
};

#[async_trait]
impl<D: Database> Shelf for SqlStore<D> {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredPiece)>, Error> {
        let statement = read::current_pieces(keys);
        let rows = self.rows(&statement, "reading pieces").await?;
        rows.iter().map(read::current_piece).collect()
    }

    async fn pieces(&self, ids: &[i64]) -> Result<Vec<StoredPiece>, Error> {
        let statement = read::pieces(D::DIALECT, ids);
        let rows = self.rows(&statement, "reading pieces").await?;
        rows.iter().map(|row| read::piece(row, 0)).collect()
    }

    async fn put(&self, new: Vec<NewPiece>) -> Result<(), Error> {
        let statements = new.iter().flat_map(sql::put).collect();
        self.db.execute_each(statements).await
    }
}
