//! Which records are in files of the archive, for programs that read the files.

use std::{collections::HashSet, sync::Arc};

use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{ParentPattern, Resource};
use hindsight_storage::ArchiveFile;

use super::{Error, Service};
use crate::query::Error as QueryError;

const RECORDS: Resource = Resource::Records;
/// What a page token belongs to.
const METHOD: &str = "ListArchiveFiles";

/// A file that has records of results.
#[derive(Debug)]
pub struct LiveFile {
    /// The file, as it was written.
    pub file: ArchiveFile,
    /// How many results it still has.
    pub results: u64,
    /// Their ids, unless it has all that it was written with.
    pub ids: Option<HashSet<String>>,
}

/// The files of one page of a list, and where the next begins.
#[derive(Debug, Default)]
pub struct LiveFiles {
    /// In the order of their numbers.
    pub files: Vec<LiveFile>,
    /// The token of the next page; empty on the last.
    pub next: String,
    /// How many results left files until after the files were read.
    pub left: i64,
}

impl Service {
    /// The same use-cases over records of the database alone, if old ones are in files.
    #[must_use]
    pub fn of_database(&self) -> Self {
        match self.store.parts() {
            None => self.clone(),
            Some(parts) => Self {
                engine: self.engine.over(Arc::clone(&parts.database)),
                store: parts.database,
                ..self.clone()
            },
        }
    }

    /// A page of the files with records of the parent that `grant` is for.
    pub async fn list_archive_files(
        &self,
        grant: &Grant,
        size: usize,
        token: &str,
    ) -> Result<LiveFiles, Error> {
        let parent = grant.scope(Verb::List, RECORDS)?;
        let (tokens, within) = (self.engine.tokens(), parent.to_string());
        let after = tokens.open_row(token, METHOD, &within);
        let after = after.map_err(QueryError::from)?;
        let Some(parts) = self.store.parts() else {
            return Ok(LiveFiles::default());
        };
        let mut found = parts.index.results_of_files().await?;
        found.retain(|(file, results)| {
            let is_asked = match parent {
                ParentPattern::Any => true,
                ParentPattern::Exact(parent) => file.parent == *parent,
            };
            is_asked && *results > 0 && after < file.id
        });
        found.sort_by_key(|(file, _)| file.id);
        let is_last = found.len() <= size;
        found.truncate(size);
        let next = found.last().filter(|_| !is_last);
        let next = next
            .map(|(file, _)| tokens.seal_row(file.id, METHOD, &within))
            .unwrap_or_default();
        let mut files = Vec::with_capacity(found.len());
        for (file, results) in found {
            let ids = match results == file.results {
                true => None,
                false => Some(parts.index.results_in(file.id).await?),
            };
            files.push(LiveFile { file, results, ids });
        }
        // After the files, so that a result which left one of them before it was read is counted.
        let left = parts.index.archive_state().await?.left;
        Ok(LiveFiles { files, next, left })
    }
}
