//! Reading and storing the dictionaries that bodies refer to.

use async_trait::async_trait;

use super::SqlStore;
use crate::{
    codec::dictionary::{DictionaryStore, Key, NewDictionary, StoredDictionary},
    driver::Database,
    seam::{Error, Priority},
    sql::{dictionaries as sql, read},
};

/// Dictionaries as a query of this priority reads them.
pub(super) struct PrioritizedDictionaries<'s, D> {
    store: &'s SqlStore<D>,
    priority: Priority,
}

impl<D: Database> SqlStore<D> {
    /// The dictionaries for a query of `priority`.
    pub(super) fn at(&self, priority: Priority) -> PrioritizedDictionaries<'_, D> {
        PrioritizedDictionaries {
            store: self,
            priority,
        }
    }
}

#[async_trait]
impl<D: Database> DictionaryStore for PrioritizedDictionaries<'_, D> {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredDictionary)>, Error> {
        self.store.current(keys).await
    }

    async fn dictionaries(&self, ids: &[i64]) -> Result<Vec<StoredDictionary>, Error> {
        let statement = read::dictionaries(D::DIALECT, ids);
        let rows = self
            .store
            .rows_at(self.priority, &statement, "reading dictionaries");
        let rows = rows.await?;
        rows.iter().map(|row| read::dictionary(row, 0)).collect()
    }

    async fn put(&self, new: Vec<NewDictionary>) -> Result<(), Error> {
        self.store.put(new).await
    }
}

#[async_trait]
impl<D: Database> DictionaryStore for SqlStore<D> {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredDictionary)>, Error> {
        let statement = read::current_dictionaries(keys);
        let rows = self.rows(&statement, "reading dictionaries").await?;
        rows.iter().map(read::current_dictionary).collect()
    }

    async fn dictionaries(&self, ids: &[i64]) -> Result<Vec<StoredDictionary>, Error> {
        self.at(Priority::Normal).dictionaries(ids).await
    }

    async fn put(&self, new: Vec<NewDictionary>) -> Result<(), Error> {
        let statements = new.iter().flat_map(sql::put).collect();
        self.db.execute_each(statements).await
    }
}
