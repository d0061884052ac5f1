//! Which results have their records in files.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use hindsight_filter::model::ResultName;
use jiff::Timestamp;

use super::{SqlStore, sum};
use crate::{
    driver::Database,
    seam::{AggregateQuery, ArchiveFile, ArchiveIndex, ArchiveState, Beside, Condemn, Error},
    sql::{archive as sql, read, row::Row},
};

/// Ids in one statement.
const IDS: usize = 500;

#[async_trait]
impl<D: Database> ArchiveIndex for SqlStore<D> {
    async fn archive_state(&self) -> Result<ArchiveState, Error> {
        state_in(self.ask(&sql::state()).await?.first())
    }

    async fn archive_files(&self) -> Result<Vec<ArchiveFile>, Error> {
        self.ask(&sql::files())
            .await?
            .iter()
            .map(sql::file)
            .collect()
    }

    async fn begin_file(&self, file: &ArchiveFile, now: Timestamp) -> Result<i64, Error> {
        self.tell(vec![sql::begin(file, now), sql::changed()])
            .await?;
        let rows = self.ask(&sql::number(&file.path)).await?;
        let number = rows.first().map(|row| row.int(0)).transpose()?.flatten();
        number.ok_or_else(|| Error::Missing(file.path.clone()))
    }

    async fn file_of(&self, name: &ResultName) -> Result<Option<i64>, Error> {
        let rows = self.ask(&sql::file_of(name)).await?;
        Ok(rows.first().map(|row| row.int(0)).transpose()?.flatten())
    }

    async fn aggregate_beside(
        &self,
        query: &AggregateQuery,
        files: &[i64],
    ) -> Result<Beside, Error> {
        let mut statements = vec![sql::state()];
        statements.extend(files.iter().map(|file| sql::results_in(*file)));
        let (groups, rows) = sum::aggregate(&self.db, query, &statements).await?;
        let (state, of_files) = rows.split_first().unzip();
        let state = state_in(state.and_then(|rows| rows.first()))?;
        let mut results = HashMap::new();
        for (file, rows) in files.iter().zip(of_files.unwrap_or_default()) {
            results.insert(*file, ids(rows)?);
        }
        Ok(Beside {
            groups,
            results,
            state,
        })
    }

    async fn results_in(&self, file: i64) -> Result<HashSet<String>, Error> {
        ids(&self.ask(&sql::results_in(file)).await?)
    }

    async fn results_of_files(&self) -> Result<Vec<(ArchiveFile, u64)>, Error> {
        let rows = self.ask(&sql::files_and_results()).await?;
        let file = |row| Ok((sql::file(row)?, sql::results(row)?));
        rows.iter().map(file).collect()
    }

    async fn change_file(&self, from: i64, to: i64, ids: &[String]) -> Result<(), Error> {
        let change = |ids| sql::change_file(D::DIALECT, from, to, ids);
        self.tell(ids.chunks(IDS).map(change).collect())
            .await
            .map(drop)
    }

    async fn condemn_files(&self, which: Condemn, now: Timestamp) -> Result<(), Error> {
        if self.tell(sql::condemn(which, now)).await? > 0 {
            self.tell(vec![sql::changed()]).await?;
        }
        Ok(())
    }

    async fn condemned_files(&self, before: Timestamp) -> Result<Vec<ArchiveFile>, Error> {
        let rows = self.ask(&sql::condemned(before)).await?;
        rows.iter().map(sql::file).collect()
    }

    async fn forget_file(&self, file: i64) -> Result<(), Error> {
        self.tell(vec![sql::forget(file)]).await.map(drop)
    }
}

fn state_in(row: Option<&Row>) -> Result<ArchiveState, Error> {
    let lost = || Error::Corrupt("the table archive_state has no row".to_owned());
    row.map_or_else(|| Err(lost()), sql::state_in)
}

fn ids(rows: &[Row]) -> Result<HashSet<String>, Error> {
    let id = |row| Ok(read::text(row, 0)?.unwrap_or_default());
    rows.iter().map(id).collect()
}
