//! Logs that Tekton Results wrote as files or objects, stored as the uploaded logs of their runs.
//!
//! Where a log lies follows from the name of the record that tells of it and the name of its run. What clients wrote
//! in `status.path` is compared with that and leads nowhere.

use bytes::BytesMut;
use futures::TryStreamExt as _;
use hindsight_filter::model::{Record, RecordName};
use hindsight_logs::{Lines, MAX_LINE, Redaction, ends};
use hindsight_run::json;
use jiff::{Timestamp, ToSpan as _};
use sha2::{Digest as _, Sha256};

use super::copy::{Count, Event, Said, Source, Tell};
use crate::{
    codec::objects::ForeignObjects,
    seam::{Error, LogAppend, LogKey, LogKind, LogSource, LogStore, StoredLog},
};

/// The types of records that tell of logs.
const TYPES: [&str; 2] = [
    "results.tekton.dev/v1alpha3.Log",
    "results.tekton.dev/v1alpha2.Log",
];
/// Bytes that are stored at once.
const GATHERED: usize = 2 << 20;

/// Where the logs are, and what must not be stored of them.
#[derive(Debug)]
pub struct ForeignLogs {
    /// The directory or bucket, with `LOGS_PATH`.
    pub objects: ForeignObjects,
    /// What is replaced in each line.
    pub redaction: Redaction,
    /// When it is.
    pub now: Timestamp,
}

/// What became of the logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogsOutcome {
    /// Logs that are stored, or are not because of what was told.
    pub logs: Count,
    /// Logs that are not where they should be; an event says so of each.
    pub missing: u64,
    /// Runs of which lines of containers are stored, which stay as they are.
    pub kept: u64,
    /// Bytes that were stored.
    pub bytes: u64,
    /// Texts that were replaced in them.
    pub redactions: u64,
}

/// Stores the logs of all records of `source`.
pub(super) async fn import(
    source: &mut dyn Source,
    store: &dyn LogStore,
    from: &ForeignLogs,
    tell: Tell<'_>,
) -> Result<LogsOutcome, Error> {
    let (_, total) = source.totals().await?;
    tell(Event::Stage {
        what: "logs",
        total,
    });
    source.rewind();
    let mut outcome = LogsOutcome::default();
    while let Some(page) = source.outlines().await? {
        let is_log = |data_type: &Option<String>| {
            let data_type = data_type.as_deref();
            data_type.is_some_and(|data_type| TYPES.contains(&data_type))
        };
        let logs = page.rows.iter().filter(|row| is_log(&row.data_type));
        let places: Vec<_> = logs.map(|row| row.place).collect();
        for record in source.records(&places).await? {
            // Those that cannot be read were told as records.
            let Ok(record) = record else { continue };
            let importing = Importing {
                store,
                from,
                outcome: &mut outcome,
            };
            if let Some(event) = importing.one(&record).await? {
                tell(event);
            }
        }
        tell(Event::Seen(page.count));
    }
    Ok(outcome)
}

/// What a record says of a log.
struct Told {
    run: RecordName,
    path: String,
}

/// Reads a record. It fails with why its log cannot be found.
fn told(record: &Record) -> Result<Told, String> {
    let data = record.data.as_ref().ok_or("it has no data")?;
    let object = json::parse(&data.value).map_err(|error| error.to_string())?;
    let uid = object["spec"]["resource"]["uid"].as_str();
    let uid = uid.ok_or("it names no run in `spec.resource.uid`")?;
    let result = record.name.result();
    let run = result.record(uid).map_err(|error| error.to_string())?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if matches!(name, "" | "." | "..") || !name.chars().all(is_plain) {
        return Err("its `metadata.name` is no name of a file".to_owned());
    }
    let path = format!("{}/{}/{name}", result.parent(), record.name.id());
    let said = object["status"]["path"].as_str().unwrap_or_default();
    if !said.is_empty() && said.trim_start_matches('/') != path {
        return Err(format!(
            "its `status.path` is not `{path}`, where the log of this record is"
        ));
    }
    Ok(Told { run, path })
}

/// One log that is imported.
struct Importing<'a> {
    store: &'a dyn LogStore,
    from: &'a ForeignLogs,
    outcome: &'a mut LogsOutcome,
}

/// What was read of an object.
#[derive(Default)]
struct Seen {
    sha256: Sha256,
    lines: i64,
    bytes: u64,
    redactions: u64,
}

impl Importing<'_> {
    /// Stores the log of a record, unless it is stored. Gives what is to be told of it.
    async fn one(self, record: &Record) -> Result<Option<Event>, Error> {
        let say = |why: String| Said {
            of: format!("the log of {}", record.name),
            why,
        };
        let Told { run, path } = match told(record) {
            Ok(told) => told,
            Err(why) => {
                self.outcome.logs.refused += 1;
                return Ok(Some(Event::Refused(say(why))));
            }
        };
        let stored = self.store.logs(&run).await?;
        if stored.iter().any(|log| log.key.kind == LogKind::Container) {
            self.outcome.kept += 1;
            return Ok(None);
        }
        let upload = stored.iter().find(|log| log.key.kind == LogKind::Uploaded);
        let stored = match self.copy(&run, &path, upload).await {
            Ok(stored) => stored,
            Err(Error::Missing(name)) => {
                self.outcome.logs.refused += 1;
                let why = format!("`{name}` is not in the target");
                return Ok(Some(Event::Refused(say(why))));
            }
            Err(error) => return Err(error),
        };
        let Some(stored) = stored else {
            self.outcome.missing += 1;
            let why = format!("there is no `{path}` in {}", self.from.objects.url());
            return Ok(Some(Event::Note(say(why))));
        };
        let logs = &mut self.outcome.logs;
        match (stored, upload) {
            (None, _) => logs.unchanged += 1,
            (Some(_), Some(_)) => logs.updated += 1,
            (Some(_), None) => logs.created += 1,
        }
        if let Some(seen) = stored {
            self.outcome.bytes += seen.0;
            self.outcome.redactions += seen.1;
        }
        Ok(None)
    }

    /// Copies an object; none if it is not there. Gives bytes and replacements unless the same is stored.
    async fn copy(
        &self,
        run: &RecordName,
        path: &str,
        upload: Option<&StoredLog>,
    ) -> Result<Option<Option<(u64, u64)>>, Error> {
        if let Some(upload) = upload {
            let Some(seen) = self.read(path, None).await? else {
                return Ok(None);
            };
            if upload.sha256.as_deref() == Some(&seen.sha256.finalize()[..]) {
                return Ok(Some(None));
            }
        }
        let now = self.from.now;
        let stale = now.checked_sub(1.hours()).unwrap_or(now);
        self.store.delete_stale_uploads(run, stale).await?;
        let key = LogKey {
            run: run.clone(),
            kind: LogKind::Uploading,
            source: LogSource {
                pod: uuid::Uuid::new_v4().to_string(),
                ..LogSource::default()
            },
        };
        let seen = match self.read(path, Some(&key)).await {
            Ok(Some(seen)) => seen,
            other => {
                self.store.delete_log(&key).await?;
                return other.map(|_none| None);
            }
        };
        self.store.replace_upload(&key, now).await?;
        Ok(Some(Some((seen.bytes, seen.redactions))))
    }

    /// Reads an object to its end, and appends it to `key` if there is one; none if it is not there.
    async fn read(&self, path: &str, key: Option<&LogKey>) -> Result<Option<Seen>, Error> {
        let Some((object, mut bytes)) = self.from.objects.read(path).await? else {
            return Ok(None);
        };
        let time = object.modified.as_microsecond();
        let (mut seen, mut gathered) = (Seen::default(), BytesMut::new());
        while let Some(part) = bytes.try_next().await? {
            gathered.extend_from_slice(&part);
            if gathered.len() >= GATHERED {
                let lines = self.lines(&mut gathered, time, &mut seen, false)?;
                self.append(lines, key).await?;
            }
        }
        let lines = self.lines(&mut gathered, time, &mut seen, true)?;
        self.append(lines, key).await?;
        Ok(Some(seen))
    }

    /// Takes the whole lines of what was gathered, and at the end the rest.
    fn lines(
        &self,
        gathered: &mut BytesMut,
        time: i64,
        seen: &mut Seen,
        is_end: bool,
    ) -> Result<Lines, Error> {
        let mut whole = 0;
        for end in ends(gathered) {
            let is_whole = gathered[end - 1] == b'\n' || end - whole == MAX_LINE;
            if is_whole || is_end {
                whole = end;
            }
        }
        let text = gathered.split_to(whole).freeze();
        let times = vec![time; ends(&text).count()];
        let lines = Lines::new(seen.lines, text, times, Vec::new());
        let mut lines = lines.map_err(|wrong| Error::Corrupt(wrong.to_string()))?;
        seen.redactions += self.from.redaction.apply(&mut lines);
        seen.lines = lines.end();
        seen.bytes += lines.text.len() as u64;
        seen.sha256.update(&lines.text);
        Ok(lines)
    }

    async fn append(&self, lines: Lines, key: Option<&LogKey>) -> Result<(), Error> {
        let Some(key) = key.filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        let append = LogAppend {
            key: key.clone(),
            parts: vec![lines],
        };
        let appended = self.store.append_logs(&[append], self.from.now).await;
        appended.into_iter().try_for_each(|stored| stored.map(drop))
    }
}
