//! Reading and storing the dictionaries that bodies refer to.

use async_trait::async_trait;

use super::SqlStore;
use crate::{
    codec::dictionary::{DictionaryStore, Key, NewDictionary, StoredDictionary},
    driver::Database,
    seam::Error,
    sql::{dictionaries as sql, read},
};

#[async_trait]
impl<D: Database> DictionaryStore for SqlStore<D> {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredDictionary)>, Error> {
        let statement = read::current_dictionaries(keys);
        let rows = self.rows(&statement, "reading dictionaries").await?;
        rows.iter().map(read::current_dictionary).collect()
    }

    async fn dictionaries(&self, ids: &[i64]) -> Result<Vec<StoredDictionary>, Error> {
        let statement = read::dictionaries(D::DIALECT, ids);
        let rows = self.rows(&statement, "reading dictionaries").await?;
        rows.iter().map(|row| read::dictionary(row, 0)).collect()
    }

    async fn put(&self, new: Vec<NewDictionary>) -> Result<(), Error> {
        let statements = new.iter().flat_map(sql::put).collect();
        self.db.execute_each(statements).await
    }
}
