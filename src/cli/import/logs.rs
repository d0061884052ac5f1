//! `hindsight import logs`: what `hindsight export logs` wrote, stored again.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use clap::{ArgMatches, Args, FromArgMatches as _};
use hindsight_client::Client;
use hindsight_proto::{
    v1::{AppendLogRequest, DescribeLogRequest, LogContainer, LogLines, LogSource},
    v1alpha2 as pb,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::{Count, counted, hopeless};
use crate::cli::{
    connect::Connect,
    failure::Failure,
    log_line::{End, LogLine, hex},
    runtime,
};

/// Bytes of text of one message, and of one call.
const MESSAGE: usize = 1 << 20;
const CALL: usize = 8 << 20;
/// Bytes of a message of an upload.
const PART: usize = 256 << 10;

/// Store logs that `hindsight export logs` wrote, byte for byte
///
/// Logs get the names that they had. Lines that are stored already are passed over, so that importing
/// again, or after an interruption, changes nothing that is there. A log that was sealed is sealed, and
/// has the same SHA-256 as before; if not, because the server has another log of this name or replaces
/// secrets (logs_redact), it is listed as refused, and the exit code is 1. A log that was uploaded whole
/// needs the record of its run, which `hindsight import` stores.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight import logs logs.jsonl
  hindsight export logs -A | hindsight import logs - --server http://127.0.0.1:8081")]
pub(in crate::cli) struct ImportLogs {
    /// Files to read; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    connect: Connect,
}

pub(in crate::cli) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = ImportLogs::from_arg_matches(matches);
    let given = given.map_err(|error| Failure::usage(error.to_string()))?;
    runtime()?.block_on(given.import())
}

impl ImportLogs {
    async fn import(&self) -> Result<ExitCode, Failure> {
        let client = self.connect.client()?;
        let (began, mut count) = (Instant::now(), Count::default());
        for file in &self.files {
            let name = file.display().to_string();
            let input = open(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            self.file(&client, &name, input, &mut count).await?;
        }
        let files = counted(self.files.len() as u64, "file");
        count.conclude(&files, began.elapsed())
    }

    async fn file(
        &self,
        client: &Client,
        file: &str,
        input: Box<dyn BufRead>,
        count: &mut Count,
    ) -> Result<(), Failure> {
        let mut log: Option<Log> = None;
        for (number, line) in (1..).zip(input.lines()) {
            let wrong = |why: &str| Failure::usage(format!("{file}: line {number}: {why}"));
            let line = line.map_err(|error| wrong(&error.to_string()))?;
            if line.is_empty() {
                continue;
            }
            let line = LogLine::read(&line).map_err(|why| wrong(&why))?;
            let done = match (line, &mut log) {
                (LogLine::Begin(name, source), None) => {
                    let begun = Log::begin(client, name, source).await;
                    log = Some(begun.map_err(|status| self.connect.failure(&status))?);
                    continue;
                }
                (LogLine::Begin(..), Some(_)) => return Err(wrong("the log before has no end")),
                (_, None) => return Err(wrong("no log begins before it")),
                (LogLine::End(end), Some(it)) => {
                    let ended = it.end(client, &end).await;
                    log = None;
                    ended
                }
                (line, Some(log)) => {
                    log.line(client, line).await;
                    continue;
                }
            };
            match done {
                Fate::Created => count.created += 1,
                Fate::Updated => count.updated += 1,
                Fate::Unchanged => count.unchanged += 1,
                Fate::Refused(name, why) => count.refuse(&name, &why),
                Fate::Stop(status) => return Err(self.connect.failure(&status)),
            }
        }
        if let Some(log) = log {
            count.refuse(&log.described(), "the file ends before it does");
        }
        Ok(())
    }
}

fn open(file: &Path) -> std::io::Result<Box<dyn BufRead>> {
    Ok(match file == Path::new("-") {
        true => Box::new(BufReader::new(std::io::stdin())),
        false => Box::new(BufReader::new(File::open(file)?)),
    })
}

/// What became of a log.
enum Fate {
    Created,
    Updated,
    Unchanged,
    Refused(String, String),
    /// The server is not there, so that going on makes no sense.
    Stop(Status),
}

/// A log that is being read from the file.
struct Log {
    name: String,
    source: Option<LogSource>,
    /// What the server has of it.
    held: Option<LogContainer>,
    /// The number of the next line of the file.
    next: i64,
    /// The time of the line before, of those that are sent.
    time_us: i64,
    /// Why it is not stored, if that is known; nothing more is sent then.
    wrong: Option<Status>,
    ready: Vec<AppendLogRequest>,
    /// An upload that is under way.
    upload: Option<Upload>,
}

/// Parts on their way to the server, and its answer.
struct Upload {
    parts: mpsc::Sender<pb::Log>,
    answer: JoinHandle<Result<(), Status>>,
    gathered: Vec<u8>,
}

impl Log {
    async fn begin(
        client: &Client,
        name: String,
        source: Option<LogSource>,
    ) -> Result<Self, Status> {
        let request = DescribeLogRequest {
            name: name.clone(),
            only_stored: true,
        };
        let held = match client.logs().describe_log(request).await {
            Ok(reply) => reply.into_inner().containers,
            Err(status) if status.code() == Code::NotFound => Vec::new(),
            Err(status) => return Err(status),
        };
        let wanted = source.clone().unwrap_or_default();
        let is_same = |log: &LogContainer| log.source.clone().unwrap_or_default() == wanted;
        Ok(Self {
            held: held.into_iter().find(is_same),
            name,
            source,
            next: 0,
            time_us: 0,
            wrong: None,
            ready: Vec::new(),
            upload: None,
        })
    }

    fn described(&self) -> String {
        match &self.source {
            None => self.name.clone(),
            Some(LogSource {
                pod,
                container,
                restart,
            }) => format!("{} {pod}/{container}/{restart}", self.name),
        }
    }

    /// Whether nothing can be added to what the server has.
    fn is_sealed(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.sealed)
    }

    async fn line(&mut self, client: &Client, line: LogLine) {
        let LogLine::Line {
            number,
            time_us,
            text,
            is_hole,
        } = line
        else {
            return;
        };
        if number != self.next {
            let status = Status::invalid_argument(format!(
                "line {number} comes where {} is expected",
                self.next
            ));
            self.wrong.get_or_insert(status);
        }
        self.next = number.saturating_add(1);
        let lines = self.held.as_ref().map_or(0, |held| held.lines);
        let is_known = self.source.is_some() && number < lines;
        if self.wrong.is_some() || self.is_sealed() || is_known {
            return;
        }
        let sent = match self.source {
            None => self.upload(client, &text).await,
            Some(_) => self.append(client, number, time_us, &text, is_hole).await,
        };
        if let Err(status) = sent {
            self.wrong = Some(status);
        }
    }

    async fn append(
        &mut self,
        client: &Client,
        number: i64,
        time_us: i64,
        text: &[u8],
        is_hole: bool,
    ) -> Result<(), Status> {
        let size = |it: &AppendLogRequest| it.lines.as_ref().map_or(0, |lines| lines.text.len());
        if self.ready.iter().map(size).sum::<usize>() >= CALL {
            self.send(client, false).await?;
        }
        let fits = self
            .ready
            .last()
            .is_some_and(|last| size(last) + text.len() <= MESSAGE);
        if !fits {
            self.ready.push(AppendLogRequest {
                name: self.name.clone(),
                source: self.source.clone(),
                lines: Some(LogLines {
                    first_line: number,
                    ..LogLines::default()
                }),
                seal: false,
            });
        }
        if let Some(lines) = self.ready.last_mut().and_then(|last| last.lines.as_mut()) {
            let before = if fits { self.time_us } else { 0 };
            lines.times.push(time_us.saturating_sub(before));
            self.time_us = time_us;
            lines.text.extend_from_slice(text);
            lines.holes.extend(is_hole.then_some(number));
        }
        Ok(())
    }

    /// Sends what is ready, and seals the log if that is wanted.
    async fn send(&mut self, client: &Client, seal: bool) -> Result<(), Status> {
        let mut messages = std::mem::take(&mut self.ready);
        if seal || (messages.is_empty() && self.held.is_none()) {
            messages.push(AppendLogRequest {
                name: self.name.clone(),
                source: self.source.clone(),
                lines: None,
                seal,
            });
        }
        if messages.is_empty() {
            return Ok(());
        }
        let stored = client
            .logs()
            .append_log(tokio_stream::iter(messages))
            .await?;
        let stored = stored.into_inner().containers.into_iter().next();
        self.held = stored.or(self.held.take());
        Ok(())
    }

    async fn upload(&mut self, client: &Client, text: &[u8]) -> Result<(), Status> {
        let upload = self.upload.get_or_insert_with(|| Upload::begin(client));
        upload.gathered.extend_from_slice(text);
        if upload.gathered.len() >= PART {
            upload.flush(&self.name).await;
        }
        Ok(())
    }

    async fn end(&mut self, client: &Client, end: &End) -> Fate {
        let was = self.held.clone();
        if self.wrong.is_none() && self.next != end.lines {
            let status = format!("it has {} lines, and the file {}", end.lines, self.next);
            self.wrong = Some(Status::invalid_argument(status));
        }
        let sent = match (self.wrong.take(), &self.source) {
            (Some(status), _) => Err(status),
            (None, _) if self.is_sealed() => Ok(()),
            (None, Some(_)) => self.send(client, end.sha256.is_some()).await,
            (None, None) => self.end_upload(client).await,
        };
        match sent {
            Err(status) if hopeless(status.code()) => return Fate::Stop(status),
            Err(status) => return Fate::Refused(self.described(), status.message().to_owned()),
            Ok(()) => {}
        }
        let held = self.held.as_ref();
        let sha256 = held
            .filter(|held| held.sealed)
            .map(|held| hex(&held.sha256));
        if end.sha256.is_some() && sha256 != end.sha256 {
            let why = "the server has other bytes under this name, or replaced secrets in them";
            return Fate::Refused(self.described(), why.to_owned());
        }
        let state = |log: &LogContainer| (log.lines, log.sealed);
        match was.as_ref().map(state) {
            None => Fate::Created,
            was if was == held.map(state) => Fate::Unchanged,
            Some(_) => Fate::Updated,
        }
    }

    /// Ends an upload, and looks up what is stored then.
    async fn end_upload(&mut self, client: &Client) -> Result<(), Status> {
        let mut upload = self.upload.take().unwrap_or_else(|| Upload::begin(client));
        upload.flush(&self.name).await;
        drop(upload.parts);
        let answer = upload.answer.await;
        answer.map_err(|broken| Status::internal(broken.to_string()))??;
        let stored = Self::begin(client, self.name.clone(), None).await?;
        self.held = stored.held;
        Ok(())
    }
}

impl Upload {
    fn begin(client: &Client) -> Self {
        let (parts, received) = mpsc::channel(4);
        let mut uploads = client.uploads();
        let answer = tokio::spawn(async move {
            let stream = ReceiverStream::new(received);
            uploads.update_log(stream).await.map(drop)
        });
        Self {
            parts,
            answer,
            gathered: Vec::new(),
        }
    }

    /// Sends what was gathered. A server that has refused takes nothing more; its answer says why.
    async fn flush(&mut self, name: &str) {
        let part = pb::Log {
            name: name.to_owned(),
            data: std::mem::take(&mut self.gathered).into(),
        };
        drop(self.parts.send(part).await);
    }
}
