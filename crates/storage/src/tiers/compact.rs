//! Files without rows of results that left them, and fewer of them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::PoisonError,
};

use hindsight_archive::{Error as FileError, Row};
use hindsight_filter::{condition::Condition, model::Parent};
use jiff::Timestamp;

use super::files::Archive;
use crate::seam::{ArchiveFile, Condemn, Error};

/// Bytes of a file that is joined with others, unless it has half of the payloads of a full one.
const SMALL: u64 = 4 << 20;
/// How many small files a directory has before they are joined.
const MANY: usize = 4;

impl Archive {
    /// Files that are worth to be written again, in groups of one directory each: those of which at most half of the
    /// results are left, and small ones of a directory that has at least four that are not full.
    pub async fn compactable(&self) -> Result<Vec<Vec<ArchiveFile>>, Error> {
        let (mut directories, mut groups) = (BTreeMap::new(), Vec::new());
        for (file, results) in self.index.results_of_files().await? {
            if results == 0 {
                continue;
            }
            if file.bytes <= SMALL {
                let directory = file.path.rsplit_once('/').map_or("", |(parts, _)| parts);
                let small: &mut Vec<(ArchiveFile, u64)> =
                    directories.entry(directory.to_owned()).or_default();
                small.push((file, results));
            } else if results * 2 <= file.results {
                groups.push(vec![file]);
            }
        }
        for small in directories.into_values() {
            let (has_many, mut group, mut joined) = (small.len() >= MANY, Vec::new(), Vec::new());
            for (file, results) in small {
                if results * 2 <= file.results {
                    group.push(file);
                } else if has_many && !self.is_full(&file).await {
                    joined.push(file);
                }
            }
            if group.len() + joined.len() >= MANY {
                group.extend(joined);
            }
            if !group.is_empty() {
                groups.push(group);
            }
        }
        Ok(groups)
    }

    /// Whether a file has payloads of half of the bytes of a full one: payloads that resemble each other take few bytes. One
    /// that cannot be read is not.
    async fn is_full(&self, file: &ArchiveFile) -> bool {
        let full = || self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full().contains(&file.id) {
            return true;
        }
        let sizes = self.with_reader(file, |reader| {
            let places = reader.find(&Condition::All)?.places;
            reader.sizes(&places)
        });
        let bytes: u64 = sizes.await.unwrap_or_default().iter().sum();
        let is_full = bytes >= self.file_bytes as u64 / 2;
        if is_full {
            full().insert(file.id);
        }
        is_full
    }

    /// Writes the rows of the results that are in files of one directory into as few files as hold them, and names
    /// those in the results. The other files have no results any more; [`Self::sweep`] removes them. A result
    /// that is deleted or restored meanwhile stays so.
    pub async fn compact(&self, files: &[ArchiveFile], now: Timestamp) -> Result<(), Error> {
        let (mut rows, mut sources, mut bytes) = (Vec::new(), Vec::new(), 0);
        for file in files {
            let live = self.index.results_in(file.id).await?;
            if live.is_empty() {
                continue;
            }
            let read = self.rows_of(file, live).await?;
            let ids: HashSet<&str> = read.iter().map(|row| row.result.name.id()).collect();
            sources.push((file.id, ids.into_iter().map(str::to_owned).collect()));
            bytes += read.iter().map(Row::payload_bytes).sum::<usize>();
            rows.extend(read);
            if bytes >= self.file_bytes {
                self.replace(std::mem::take(&mut sources), std::mem::take(&mut rows), now)
                    .await?;
                bytes = 0;
            }
        }
        self.replace(sources, rows, now).await
    }

    /// The files of a parent that have rows of results that left them, also those that are condemned and still there.
    pub async fn erasable(&self, parent: &Parent) -> Result<Vec<ArchiveFile>, Error> {
        let files = self.index.results_of_files().await?.into_iter();
        let files = files.filter(|(file, now)| *now < file.results);
        let files = files.map(|(file, _)| file);
        let mut all: Vec<_> = files.filter(|file| file.parent == *parent).collect();
        for file in self.index.condemned_files(Timestamp::MAX).await? {
            if file.parent == *parent && self.bucket.has(&file.path).await? {
                all.push(file);
            }
        }
        Ok(all)
    }

    /// Writes the files of a parent again that have rows of results that left them, and removes those files at once. A
    /// list that is reading one begins again. It gives the files that stay: results came into them meanwhile.
    pub async fn erase(&self, parent: &Parent, now: Timestamp) -> Result<Vec<ArchiveFile>, Error> {
        let files = self.erasable(parent).await?;
        self.rewrite(files, now).await
    }

    /// The same of one file, of which a result was changed or deleted before it came into the file.
    pub async fn erase_from(&self, file: i64, now: Timestamp) -> Result<(), Error> {
        let mut files = self.index.results_of_files().await?;
        files.retain(|(known, now)| known.id == file && *now < known.results);
        let files = files.into_iter().map(|(file, _)| file).collect();
        self.rewrite(files, now).await.map(drop)
    }

    /// Writes files again, and removes those that have no results any more. It gives the others.
    async fn rewrite(
        &self,
        mut files: Vec<ArchiveFile>,
        now: Timestamp,
    ) -> Result<Vec<ArchiveFile>, Error> {
        for file in &files {
            self.compact(std::slice::from_ref(file), now).await?;
            self.index
                .condemn_files(Condemn::File(file.id), now)
                .await?;
        }
        let condemned = self.index.condemned_files(Timestamp::MAX).await?;
        let ids: HashSet<i64> = condemned.iter().map(|file| file.id).collect();
        for file in files.extract_if(.., |file| ids.contains(&file.id)) {
            // Bytes that are on their way may come after a crash of their writer, and are swept then.
            if self.bucket.has(&file.path).await? {
                self.remove(&file).await?;
            }
        }
        Ok(files)
    }

    /// The rows of some results of a file, with their payloads.
    async fn rows_of(
        &self,
        file: &ArchiveFile,
        results: HashSet<String>,
    ) -> Result<Vec<Row>, Error> {
        self.with_reader(file, move |reader| {
            let mut rows = Vec::new();
            for group in 0..reader.groups() {
                let read = reader.group(group)?.into_iter();
                rows.extend(read.filter(|row| results.contains(row.result.name.id())));
            }
            Ok::<_, FileError>(rows)
        })
        .await
    }

    async fn replace(
        &self,
        sources: Vec<(i64, Vec<String>)>,
        rows: Vec<Row>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(to) = self.write_rows(rows, now).await? {
            for (from, ids) in sources {
                self.index.change_file(from, to, &ids).await?;
            }
        }
        Ok(())
    }
}
