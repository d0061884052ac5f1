//! Records of Parquet files that `hindsight export` wrote.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use hindsight_archive::{MAGIC, Reader};
use hindsight_client::Batched;
use hindsight_runtime::error::report;
use indicatif::ProgressBar;
use tonic::Status;

use super::{Count, Parents, chains};
use crate::{cli::failure::Failure, import::Object};

/// Records that are parsed before they are sent.
const AT_ONCE: usize = 512;

/// A Parquet file that `hindsight export` wrote, whose rows are sent as they were stored.
pub(super) struct Archived {
    path: PathBuf,
    reader: Reader<File>,
}

/// Whether `path` is a Parquet file, or a directory, in which they are looked for.
pub(super) fn is_archive(path: &Path) -> std::io::Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    if path.is_dir() {
        return Ok(true);
    }
    let mut start = Vec::new();
    let mut file = File::open(path)?.take(MAGIC.len() as u64);
    file.read_to_end(&mut start)?;
    Ok(start == MAGIC)
}

/// Opens a file, or every file below a directory whose name ends with `.parquet`.
pub(super) fn open(path: &Path) -> Result<Vec<Archived>, Failure> {
    let wrong = |why: &str| Failure::usage(format!("{}: {why}", path.display()));
    if !path.is_dir() {
        let file = File::open(path).map_err(|error| wrong(&error.to_string()))?;
        let reader = Reader::open(file).map_err(|error| wrong(&report(&error)))?;
        let path = path.to_owned();
        return Ok(vec![Archived { path, reader }]);
    }
    let list = || fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
    let list: std::io::Result<Vec<PathBuf>> = list();
    let mut list = list.map_err(|error| wrong(&error.to_string()))?;
    list.retain(|path| path.is_dir() || path.extension().is_some_and(|it| it == "parquet"));
    list.sort();
    let opened: Result<Vec<Vec<Archived>>, Failure> = list.iter().map(|path| open(path)).collect();
    Ok(opened?.into_iter().flatten().collect())
}

impl Archived {
    pub(super) fn rows(&self) -> u64 {
        self.reader.rows()
    }

    /// Stores the records. It fails if the file cannot be read, or the server is not there.
    pub(super) async fn send(
        &self,
        client: &Batched,
        parents: &Parents,
        at_once: u16,
        bar: &ProgressBar,
        count: &mut Count,
    ) -> Result<(), Stopped> {
        for group in 0..self.reader.groups() {
            let mut rows = self.reader.group(group).map_err(|error| {
                let why = format!("{}: {}", self.path.display(), report(&error));
                Stopped::File(Failure::other(why))
            })?;
            while !rows.is_empty() {
                let rest = rows.split_off(rows.len().min(AT_ONCE));
                let mut objects = Vec::with_capacity(rows.len());
                for row in rows {
                    let data = row.record.data.map(|data| data.value.to_vec());
                    match Object::exact(data.unwrap_or_default()) {
                        Ok(object) => objects.push(object),
                        Err(error) => {
                            let why = format!("its payload is not JSON: {error}");
                            bar.suspend(|| count.refuse(&row.record.name.to_string(), &why));
                            bar.inc(1);
                        }
                    }
                }
                rows = rest;
                let chains = chains(objects, parents);
                let sent = count.send(client, chains, at_once, || bar.inc(1)).await;
                sent.map_err(Stopped::Server)?;
            }
        }
        Ok(())
    }
}

/// Why not all was stored.
pub(super) enum Stopped {
    File(Failure),
    Server(Status),
}
