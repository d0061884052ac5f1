//! The audit log: one line of JSON for every write and delete that a known caller asked for, with
//! who asked, what for, and what came of it. A line is written before the caller is answered.
//!
//! What cannot be written is in the log of the program and counted; it refuses nothing but deletes of retention and of
//! `hindsight purge`, which are written before they are done as well.

mod metrics;

use std::{
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use self::metrics::Metrics;
use crate::{RequestContext, auth::Verb};
use hindsight_runtime::error::{ErrorKind, HasKind};
use hindsight_runtime::telemetry::Registry;

/// How many writes may wait for their lines.
const WAITING: usize = 1024;

/// Destination of the audit log, which gets one JSON object per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Standard output of the server process.
    Stdout,
    /// The end of a file, which is made if it is not there.
    File(PathBuf),
}

/// A write to one result or record, without its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Created, updated or deleted.
    pub verb: Verb,
    /// Name of the result or record.
    pub name: String,
    /// The etag that it must have had, if that matters.
    pub before: Option<String>,
    /// The etag that it has then, if it is still there.
    pub after: Option<String>,
}

/// One change that was asked for, and its outcome: a line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEvent {
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    caller: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    verb: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    outcome: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    expired: Option<Expired>,
}

/// Why retention deleted a result, and what that was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expired {
    /// Name of the policy of retention by which it was due.
    pub policy: String,
    /// Identifier of the result, which tells it from later ones of its name.
    pub uid: String,
    /// Bytes of its payloads as they were sent, and of its logs as they were kept.
    pub bytes: u64,
}

impl AuditEvent {
    /// A change that a request asks for, before its outcome is known.
    #[must_use]
    pub fn new(by: &RequestContext, change: Changed, time: Timestamp) -> Self {
        let Changed {
            verb,
            name,
            before,
            after,
        } = change;
        Self {
            time,
            request: by.request_id.as_deref().map(str::to_owned),
            caller: by.caller.name.clone(),
            by: by.caller.by.clone(),
            verb: verb.name(),
            name,
            before,
            after,
            outcome: "OK",
            expired: None,
        }
    }

    /// The same, as a delete by retention.
    #[must_use]
    pub fn expired(self, expired: Expired) -> Self {
        Self {
            expired: Some(expired),
            ..self
        }
    }

    /// What a request asked for and was refused before the store was asked.
    #[must_use]
    pub fn refused(
        by: &RequestContext,
        verb: Verb,
        name: String,
        why: ErrorKind,
        time: Timestamp,
    ) -> Self {
        let change = Changed {
            verb,
            name,
            before: None,
            after: None,
        };
        Self {
            outcome: why.grpc_name(),
            ..Self::new(by, change, time)
        }
    }

    /// That an operator, who has this name, deletes for good what has this name, past every server.
    #[must_use]
    pub fn purged(caller: String, name: String, time: Timestamp) -> Self {
        Self {
            time,
            request: None,
            caller,
            by: None,
            verb: "purge",
            name,
            before: None,
            after: None,
            outcome: "OK",
            expired: None,
        }
    }

    /// The same, before it is done: a line that no other follows was cut off midway.
    #[must_use]
    pub fn pending(&self) -> Self {
        Self {
            outcome: "PENDING",
            ..self.clone()
        }
    }

    /// The same, with what came of it.
    #[must_use]
    pub fn ended(mut self, outcome: Result<(), &impl HasKind>) -> Self {
        if let Err(error) = outcome {
            self.outcome = error.kind().grpc_name();
            self.after = None;
        }
        self
    }
}

struct Message {
    lines: Vec<AuditEvent>,
    durability: Durability,
    written: oneshot::Sender<io::Result<()>>,
}

/// What lines must outlive before they are said to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Durability {
    /// The end of this process.
    Process,
    /// The end of the machine, if they are in a file.
    Machine,
}

/// The log, or none. Clones write to the same.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    sender: Option<mpsc::Sender<Message>>,
    denied_reads: bool,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").finish_non_exhaustive()
    }
}

impl Audit {
    /// A log in `place`, which is opened now, and again whenever a file was moved away.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(place: Place, registry: &mut Registry) -> io::Result<Self> {
        let open = place.open()?;
        let mut writer = Writer {
            torn: open.as_ref().is_some_and(is_torn),
            open,
            place,
            metrics: Metrics::new(registry),
        };
        let (sender, mut messages) = mpsc::channel::<Message>(WAITING);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                while let Some(first) = messages.blocking_recv() {
                    let mut together = vec![first];
                    while let Ok(next) = messages.try_recv() {
                        together.push(next);
                    }
                    let outcome = writer.write(&together);
                    for message in together {
                        let outcome = outcome.as_ref().copied();
                        let own = outcome
                            .map_err(|error| io::Error::new(error.kind(), error.to_string()));
                        // The caller may have gone.
                        message.written.send(own).unwrap_or(());
                    }
                }
            })?;
        Ok(Self {
            sender: Some(sender),
            denied_reads: false,
        })
    }

    /// The same log, with lines of reads that are denied if `denied_reads`.
    #[must_use]
    pub fn with_denied_reads(self, denied_reads: bool) -> Self {
        Self {
            denied_reads,
            ..self
        }
    }

    /// Whether anything is written.
    pub fn is_on(&self) -> bool {
        self.sender.is_some()
    }

    /// Whether reads that are denied are written.
    pub fn has_denied_reads(&self) -> bool {
        self.is_on() && self.denied_reads
    }

    /// Writes lines, in order, and returns once they are written.
    pub async fn write(&self, lines: Vec<AuditEvent>) {
        // A failure is counted, and in the log of the program.
        self.send(lines, Durability::Process).await.unwrap_or(());
    }

    /// Writes lines about what is to be done, which outlive the machine if they are in a file. Unless it
    /// succeeds, that must not be done.
    pub async fn write_ahead(&self, lines: Vec<AuditEvent>) -> io::Result<()> {
        self.send(lines, Durability::Machine).await
    }

    async fn send(&self, lines: Vec<AuditEvent>, durability: Durability) -> io::Result<()> {
        let Some(sender) = self.sender.as_ref().filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        let (written, done) = oneshot::channel();
        let message = Message {
            lines,
            durability,
            written,
        };
        if sender.send(message).await.is_ok()
            && let Ok(outcome) = done.await
        {
            return outcome;
        }
        tracing::error!("the audit log ended; what was changed is not in it");
        Err(io::Error::other("the audit log ended"))
    }
}

impl Place {
    fn open(&self) -> io::Result<Option<File>> {
        match self {
            Self::Stdout => Ok(None),
            Self::File(path) => File::options()
                .append(true)
                .read(true)
                .create(true)
                .open(path)
                .map(Some),
        }
    }
}

/// Whether a file ends within a line, as after a full disk or a crash of the machine.
fn is_torn(file: &File) -> bool {
    use std::os::unix::fs::FileExt as _;
    let mut last = [b'\n'];
    let end = file.metadata().map_or(0, |found| found.len());
    end > 0 && file.read_exact_at(&mut last, end - 1).is_ok() && last != [b'\n']
}

struct Writer {
    place: Place,
    open: Option<File>,
    /// Whether what is there may end within a line.
    torn: bool,
    metrics: Metrics,
}

impl Writer {
    fn write(&mut self, messages: &[Message]) -> io::Result<()> {
        let (mut text, mut count) = (Vec::new(), 0);
        for line in messages.iter().flat_map(|message| &message.lines) {
            serde_json::to_writer(&mut text, line).expect("a line is JSON");
            text.push(b'\n');
            count += 1;
        }
        let durability = messages.iter().map(|message| message.durability).max();
        let written = self.append(&text, durability.unwrap_or(Durability::Process));
        match &written {
            Ok(()) => self.metrics.written(count),
            Err(error) => {
                self.torn = true;
                self.metrics.lost(count);
                let text = String::from_utf8_lossy(&text);
                tracing::error!(%error, lines = %text.trim_end(), "cannot write the audit log");
            }
        }
        written
    }

    fn append(&mut self, text: &[u8], durability: Durability) -> io::Result<()> {
        self.find()?;
        let start: &[u8] = match self.torn {
            true => b"\n",
            false => b"",
        };
        let text = [start, text].concat();
        match &mut self.open {
            Some(file) => {
                file.write_all(&text)?;
                // A pipe has no disk.
                if durability == Durability::Machine && file.metadata()?.is_file() {
                    file.sync_data()?;
                }
            }
            None => {
                let mut out = io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())?;
            }
        }
        self.torn = false;
        Ok(())
    }

    /// Opens the file again if it is no longer where it was, as after `logrotate`.
    fn find(&mut self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let (Place::File(path), Some(file)) = (&self.place, &self.open) else {
            return Ok(());
        };
        let of = |found: std::fs::Metadata| (found.dev(), found.ino());
        let is_there = std::fs::metadata(path)
            .is_ok_and(|found| file.metadata().is_ok_and(|own| of(own) == of(found)));
        if !is_there {
            self.open = self.place.open()?;
            self.torn = self.open.as_ref().is_some_and(is_torn);
        }
        Ok(())
    }
}
