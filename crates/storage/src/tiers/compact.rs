//! Files without rows of results that left them, and fewer of them.

use std::collections::{BTreeMap, HashSet};

use hindsight_archive::{Error as FileError, Row};
use hindsight_filter::model::Parent;
use jiff::Timestamp;

use super::files::Archive;
use crate::seam::{ArchiveFile, Condemn, Error};

/// Bytes of payloads after which a file is written.
const PAYLOADS: usize = 64 << 20;
/// Bytes of a file that is joined with others.
const SMALL: u64 = 4 << 20;
/// How many small files a directory has before they are joined.
const MANY: usize = 4;

impl Archive {
    /// Files that are worth to be written again, in groups of one directory each: those of which at most half of the
    /// results are left, and small ones of a directory that has at least four.
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
        for mut small in directories.into_values() {
            if small.len() < MANY {
                small.retain(|(file, results)| results * 2 <= file.results);
            }
            if !small.is_empty() {
                groups.push(small.into_iter().map(|(file, _)| file).collect());
            }
        }
        Ok(groups)
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
            if bytes >= PAYLOADS {
                self.replace(std::mem::take(&mut sources), std::mem::take(&mut rows), now)
                    .await?;
                bytes = 0;
            }
        }
        self.replace(sources, rows, now).await
    }

    /// The files of a parent that have rows of results that left them, also those that are condemned.
    pub async fn erasable(&self, parent: &Parent) -> Result<Vec<ArchiveFile>, Error> {
        let files = self.index.results_of_files().await?.into_iter();
        let files = files.filter(|(file, now)| *now < file.results);
        let condemned = self.index.condemned_files(Timestamp::MAX).await?;
        let all = files.map(|(file, _)| file).chain(condemned);
        Ok(all.filter(|file| file.parent == *parent).collect())
    }

    /// Writes the files of a parent again that have rows of results that left them, and removes those files at once. A
    /// list that is reading one begins again. It gives the files that stay: results came into them meanwhile.
    pub async fn erase(&self, parent: &Parent, now: Timestamp) -> Result<Vec<ArchiveFile>, Error> {
        let mut files = self.erasable(parent).await?;
        for file in &files {
            self.compact(std::slice::from_ref(file), now).await?;
            self.index
                .condemn_files(Condemn::File(file.id), now)
                .await?;
        }
        for condemned in self.index.condemned_files(Timestamp::MAX).await? {
            if condemned.parent == *parent {
                self.remove(&condemned).await?;
                files.retain(|file| file.id != condemned.id);
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
