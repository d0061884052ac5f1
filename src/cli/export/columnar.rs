//! Records as Parquet files: one, or a directory of them as Hive lays out tables.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hindsight_archive::{Limits, Partition, Reader, Row, Writer};
use hindsight_filter::model::{Etag, Payload, Record, RecordName, RunResult, Summary};
use hindsight_proto::v1alpha2 as pb;
use hindsight_runtime::error::report;
use indicatif::ProgressBar;
use jiff::Timestamp;
use tonic::Code;

use super::{Cursor, Export, What};
use crate::cli::{connect::Connect, failure::Failure, import::counted, output};

/// Bytes of payloads that are gathered before the files of a directory are written.
const GATHERED: usize = 128 << 20;
/// Results that are asked for at once.
const AT_ONCE: usize = 16;
/// What a file is called until it is whole.
const UNFINISHED: &str = "part";

/// Where files go: into one that is named, or below a directory by namespace and day.
enum Target<'e> {
    File(&'e Path),
    Directory(&'e Path),
}

pub(super) async fn export(export: &Export, cursor: Cursor) -> Result<ExitCode, Failure> {
    let target = target(export)?;
    let bar = ProgressBar::new_spinner().with_message("records");
    let mut source = Source {
        export,
        bar: &bar,
        results: HashMap::new(),
    };
    let said = match target {
        Target::File(path) => source.write_file(path, cursor).await,
        Target::Directory(path) => source.write_directory(path, cursor).await,
    };
    bar.finish_and_clear();
    output::note(&said?);
    Ok(ExitCode::SUCCESS)
}

/// Where files go, if such an export can be.
fn target(export: &Export) -> Result<Target<'_>, Failure> {
    if export.what != What::Records {
        return Err(Failure::usage(
            "only records are exported as Parquet, with the columns of runs: `export records -o parquet`",
        ));
    }
    match (&export.file, &export.dir) {
        (Some(_), _) if export.cursor.is_some() => Err(Failure::usage(
            "one Parquet file is whole or nothing and has no cursor; --dir writes files that it goes on after",
        )),
        (Some(file), _) => Ok(Target::File(file)),
        (None, Some(dir)) => Ok(Target::Directory(dir)),
        (None, None) => Err(Failure::usage(
            "Parquet is not written to standard output; name --file FILE or --dir DIR",
        )),
    }
}

/// The rows that are exported.
struct Source<'e> {
    export: &'e Export,
    bar: &'e ProgressBar,
    /// Those of the rows that were read last, by name.
    results: HashMap<String, Arc<RunResult>>,
}

impl Source<'_> {
    async fn write_file(&mut self, path: &Path, mut cursor: Cursor) -> Result<String, Failure> {
        let mut out = Output::create(path.to_owned())?;
        while !cursor.done {
            for row in self.page(&mut cursor).await? {
                out.push(row)?;
            }
            self.results.clear();
        }
        let rows = out.finish()?;
        Ok(format!("exported {}", counted(rows, "record")))
    }

    async fn write_directory(&mut self, dir: &Path, mut cursor: Cursor) -> Result<String, Failure> {
        if cursor.id.is_empty() {
            cursor.id = uuid::Uuid::new_v4().simple().to_string();
        }
        self.save(&cursor)?;
        remove_leftovers(dir, &cursor)?;
        let (mut rows, mut files) = (0, 0);
        while !cursor.done {
            let mut next = cursor.clone();
            let gathered = self.gather(&mut next).await;
            let gathered = gathered.map_err(|failure| self.export.interrupted(&cursor, failure))?;
            for (partition, of_it) in gathered {
                let name = format!("{}-{:06}.parquet", cursor.id, cursor.part);
                let mut out = Output::create(dir.join(partition.to_string()).join(name))?;
                for row in of_it {
                    out.push(row)?;
                }
                rows += out.finish()?;
                files += 1;
            }
            next.part += 1;
            cursor = next;
            self.save(&cursor)?;
        }
        let (rows, files) = (counted(rows, "record"), counted(files, "file"));
        Ok(format!("exported {rows} in {files}"))
    }

    fn save(&self, cursor: &Cursor) -> Result<(), Failure> {
        let path = self.export.cursor.as_ref();
        path.map_or(Ok(()), |path| cursor.save(path))
    }

    /// The next rows by directory, as many as fit into memory.
    async fn gather(
        &mut self,
        cursor: &mut Cursor,
    ) -> Result<BTreeMap<Partition, Vec<Row>>, Failure> {
        let mut gathered: BTreeMap<Partition, Vec<Row>> = BTreeMap::new();
        let mut bytes = 0;
        while !cursor.done && bytes < GATHERED {
            for row in self.page(cursor).await? {
                bytes += row.payload_bytes();
                let partition = Partition::of(&row.result);
                gathered.entry(partition).or_default().push(row);
            }
        }
        self.results.clear();
        Ok(gathered)
    }

    /// The next page of the list.
    async fn page(&mut self, cursor: &mut Cursor) -> Result<Vec<Row>, Failure> {
        let (records, next) = self.export.records(cursor).await?;
        cursor.done = next.is_empty();
        cursor.after = next;
        let mut read = Vec::with_capacity(records.len());
        for record in records {
            read.push(self::record(record)?);
        }
        self.fetch(&read).await?;
        self.bar.inc(read.len() as u64);
        // A result that is not there was deleted meanwhile, and its records with it.
        let row = |record: Record| {
            let result = self.results.get(&record.name.result().to_string())?;
            let result = Arc::clone(result);
            Some(Row {
                record,
                result,
                stored: None,
            })
        };
        Ok(read.into_iter().filter_map(row).collect())
    }

    /// Reads the results of these records that are not known.
    async fn fetch(&mut self, records: &[Record]) -> Result<(), Failure> {
        let names = records.iter().map(|it| it.name.result().to_string());
        let mut names: Vec<String> = names.filter(|it| !self.results.contains_key(it)).collect();
        names.sort();
        names.dedup();
        let client = self.export.connect.client()?;
        let read: Vec<Option<RunResult>> = stream::iter(names)
            .map(|name| get(&self.export.connect, client.rpc(), name))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        for result in read.into_iter().flatten() {
            self.results
                .insert(result.name.to_string(), Arc::new(result));
        }
        Ok(())
    }
}

async fn get(
    connect: &Connect,
    mut rpc: hindsight_client::Rpc,
    name: String,
) -> Result<Option<RunResult>, Failure> {
    match rpc.get_result(pb::GetResultRequest { name }).await {
        Ok(reply) => result(reply.into_inner()).map(Some),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(connect.failure(&status)),
    }
}

/// A file that has its name once it is whole and was read again.
struct Output {
    path: PathBuf,
    unfinished: PathBuf,
    /// None once it is finished.
    writer: Option<Writer<File>>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self, Failure> {
        if path.exists() {
            return Err(cannot(&path, &"it is there already"));
        }
        let unfinished = path.with_added_extension(UNFINISHED);
        let create = || {
            fs::create_dir_all(folder(&path))?;
            File::create(&unfinished)
        };
        let file = create().map_err(|error| cannot(&path, &error))?;
        let writer = Writer::new(file, Limits::default());
        let writer = writer.map_err(|error| cannot(&path, &report(&error)))?;
        Ok(Self {
            path,
            unfinished,
            writer: Some(writer),
        })
    }

    fn push(&mut self, row: Row) -> Result<(), Failure> {
        let pushed = self.writer.as_mut().map_or(Ok(()), |it| it.push(row));
        pushed.map_err(|error| cannot(&self.path, &report(&error)))
    }

    /// Ends the file, compares it with what was written, and says how many rows it has.
    fn finish(mut self) -> Result<u64, Failure> {
        let Some(writer) = self.writer.take() else {
            return Ok(0);
        };
        let checked = finished(writer, &self.unfinished, &self.path);
        if checked.is_err() {
            drop(fs::remove_file(&self.unfinished));
        }
        checked.map_err(|why| cannot(&self.path, &why))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            drop(fs::remove_file(&self.unfinished));
        }
    }
}

fn finished(writer: Writer<File>, unfinished: &Path, path: &Path) -> Result<u64, String> {
    let (file, tally) = writer.finish().map_err(|error| report(&error))?;
    let sync = || {
        file.sync_all()?;
        File::open(unfinished)
    };
    let file = sync().map_err(|error| error.to_string())?;
    let read = Reader::open(file).and_then(|reader| reader.verify());
    if read.map_err(|error| report(&error))? != tally {
        return Err("it is not what was written".to_owned());
    }
    let rename = || {
        fs::rename(unfinished, path)?;
        File::open(folder(path))?.sync_all()
    };
    rename().map_err(|error| error.to_string())?;
    Ok(tally.rows())
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn cannot(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("`{}` cannot be written: {why}", path.display()))
}

/// Removes what an interrupted export wrote since its cursor was saved.
fn remove_leftovers(dir: &Path, cursor: &Cursor) -> Result<(), Failure> {
    let fails = |error: std::io::Error| cannot(dir, &error);
    if !dir.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(fails)? {
        let entry = entry.map_err(fails)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(fails)?.is_dir() {
            remove_leftovers(&entry.path(), cursor)?;
            continue;
        }
        let number = name
            .strip_prefix(&cursor.id)
            .and_then(|rest| rest.get(1..7));
        let number = number.and_then(|digits| digits.parse::<u64>().ok());
        if number.is_some_and(|number| number >= cursor.part) {
            fs::remove_file(entry.path()).map_err(fails)?;
        }
    }
    Ok(())
}

fn record(record: pb::Record) -> Result<Record, Failure> {
    let name = named::<RecordName>(&record.name)?;
    Ok(Record {
        name,
        etag: Etag::from_text(record.etag),
        uid: record.uid,
        create_time: time(&record.name, record.create_time)?,
        update_time: time(&record.name, record.update_time)?,
        data: record
            .data
            .map(|data| Payload::new(data.r#type, data.value)),
    })
}

fn result(result: pb::Result) -> Result<RunResult, Failure> {
    let summary = result.summary.map(|summary| {
        Ok::<_, Failure>(Summary {
            record: named(&summary.record)?,
            data_type: summary.r#type,
            start_time: summary.start_time.and_then(output::time),
            end_time: summary.end_time.and_then(output::time),
            status: summary.status,
            annotations: summary.annotations.into_iter().collect(),
        })
    });
    Ok(RunResult {
        name: named(&result.name)?,
        etag: Etag::from_text(result.etag),
        uid: result.uid,
        create_time: time(&result.name, result.create_time)?,
        update_time: time(&result.name, result.update_time)?,
        annotations: result.annotations.into_iter().collect(),
        summary: summary.transpose()?,
    })
}

fn named<N: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<N, Failure> {
    let name = text.parse::<N>();
    name.map_err(|error| Failure::other(error.to_string()))
}

fn time(name: &str, time: Option<prost_types::Timestamp>) -> Result<Timestamp, Failure> {
    let time = time.and_then(output::time);
    time.ok_or_else(|| Failure::other(format!("`{name}` came without the times of its storing")))
}
