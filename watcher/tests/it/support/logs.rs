//! A server of logs in memory: it numbers, refuses and seals as `hindsight.v1.Logs` says.

use std::collections::BTreeMap;

use hindsight_proto::{
    time::{at, to_wire},
    v1::{
        AppendLogRequest, AppendLogResponse, DescribeLogRequest, ListLogsRequest, ListLogsResponse,
        LogContainer, LogDescription, LogLines, LogSource, ReadLogRequest, ReadLogResponse,
        SearchLogsRequest, SearchLogsResponse, logs_server::Logs,
    },
};
use jiff::Timestamp;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tonic::{Request, Response, Status, Streaming};

type Key = (String, String, String, i32);

/// What is stored of one source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    pub(crate) lines: Vec<(i64, Vec<u8>)>,
    /// Numbers of lines that stand for missing ones.
    pub(crate) holes: Vec<usize>,
    pub(crate) sealed: bool,
}

impl Stored {
    /// The lines, without those that stand for missing ones.
    pub(crate) fn texts(&self) -> Vec<String> {
        let lines = self.lines.iter().enumerate();
        let lines = lines.filter(|(n, _)| !self.holes.contains(n));
        lines
            .map(|(_, (_, text))| String::from_utf8_lossy(text).trim_end().to_owned())
            .collect()
    }

    /// The lines that stand for missing ones.
    pub(crate) fn holes(&self) -> Vec<String> {
        let lines = self.holes.iter();
        lines
            .map(|n| {
                String::from_utf8_lossy(&self.lines[*n].1)
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }

    fn append(&mut self, lines: &LogLines) -> Result<(), Status> {
        let texts = split(&lines.text);
        if texts.len() != lines.times.len() {
            return Err(Status::invalid_argument("as many times as lines"));
        }
        let first = usize::try_from(lines.first_line).unwrap();
        if first > self.lines.len() {
            let why = format!("line {first} of a log of {}", self.lines.len());
            return Err(Status::failed_precondition(why));
        }
        let mut time = 0;
        let times: Vec<i64> = lines
            .times
            .iter()
            .map(|after| {
                time += after;
                time
            })
            .collect();
        // Other lines may have been numbered alike: the last one that is there tells.
        let last = self.lines.len().min(first + times.len()).checked_sub(1);
        if let Some(last) = last.filter(|last| *last >= first)
            && self.lines[last].0 != times[last - first]
        {
            let why = format!("line {last} is stored with another time");
            return Err(Status::failed_precondition(why));
        }
        for (n, (text, time)) in texts.into_iter().zip(times).enumerate() {
            let number = first + n;
            if number < self.lines.len() {
                continue;
            }
            if self.sealed {
                return Err(Status::failed_precondition("it is sealed"));
            }
            self.lines.push((time, text));
            if lines.holes.contains(&i64::try_from(number).unwrap()) {
                self.holes.push(number);
            }
        }
        Ok(())
    }
}

/// A line ends after its line feed, or after 262,144 bytes.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| line.chunks(262_144).map(<[u8]>::to_vec))
        .collect()
}

/// All logs; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogStore(
    Arc<Mutex<BTreeMap<Key, Stored>>>,
    Arc<AtomicUsize>,
    Arc<Mutex<Denied>>,
);

/// A parent whose logs may not be read, and how often one was asked for.
#[derive(Debug, Default)]
struct Denied {
    parent: Option<&'static str>,
    count: usize,
}

impl LogStore {
    /// What is stored of a container, by the name of its pod.
    pub(crate) fn of(&self, pod: &str, container: &str, restart: i32) -> Stored {
        let logs = self.0.lock().unwrap();
        let found = logs
            .iter()
            .find(|((_, p, c, r), _)| (p.as_str(), c.as_str(), *r) == (pod, container, restart));
        found.map(|(_, stored)| stored.clone()).unwrap_or_default()
    }

    /// How many lines are stored of each source, in no order.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let logs = self.0.lock().unwrap();
        logs.values().map(|stored| stored.lines.len()).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let logs = self.0.lock().unwrap();
        let mut names: Vec<_> = logs.keys().map(|(name, ..)| name.clone()).collect();
        names.dedup();
        names
    }

    /// Refuses lines above so many bytes in all.
    pub(crate) fn bound(&self, bytes: usize) {
        self.1.store(bytes, Ordering::Relaxed);
    }

    /// Denies the logs of one parent, or of none.
    pub(crate) fn deny(&self, parent: Option<&'static str>) {
        self.2.lock().unwrap().parent = parent;
    }

    /// How often a log was denied.
    pub(crate) fn denials(&self) -> usize {
        self.2.lock().unwrap().count
    }

    /// Refuses a log of the parent that is denied.
    pub(crate) fn check(&self, log: &str) -> Result<(), Status> {
        let mut denied = self.2.lock().unwrap();
        let parent = log.split_once("/results/").map(|(parent, _)| parent);
        if denied.parent.is_some() && parent == denied.parent {
            denied.count += 1;
            return Err(Status::permission_denied("get logs"));
        }
        Ok(())
    }

    fn has_room(&self, logs: &BTreeMap<Key, Stored>, message: &AppendLogRequest) -> bool {
        let most = self.1.load(Ordering::Relaxed);
        let Some(lines) = message.lines.as_ref().filter(|_| most > 0) else {
            return true;
        };
        let is_end = message.seal && lines.holes.len() == lines.times.len();
        let texts = logs.values().flat_map(|stored| &stored.lines);
        let used: usize = texts.map(|(_, text)| text.len()).sum();
        is_end || used + lines.text.len() <= most
    }

    /// Appends a line that stands for missing ones, as another watcher may.
    pub(crate) fn add_hole(&self, pod: &str, container: &str) {
        let mut logs = self.0.lock().unwrap();
        let mut logs = logs.iter_mut();
        let found = logs.find(|((_, p, c, _), _)| (p.as_str(), c.as_str()) == (pod, container));
        let (_, stored) = found.unwrap();
        let time = stored.lines.last().unwrap().0;
        stored.holes.push(stored.lines.len());
        stored.lines.push((time, b"missing\n".to_vec()));
    }

    /// Loses everything, as if an old backup had been restored.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(crate) fn append(&self, messages: &[AppendLogRequest]) -> Result<(), Status> {
        let mut logs = self.0.lock().unwrap();
        for message in messages {
            if !self.has_room(&logs, message) {
                return Err(Status::resource_exhausted("logs_quota is reached"));
            }
            let source = message.source.clone().unwrap();
            let key = (
                message.name.clone(),
                source.pod,
                source.container,
                source.restart,
            );
            let stored = logs.entry(key).or_default();
            if let Some(lines) = &message.lines {
                stored.append(lines)?;
            }
            stored.sealed |= message.seal;
        }
        Ok(())
    }

    pub(crate) fn describe(&self, log: &str) -> Vec<LogContainer> {
        let logs = self.0.lock().unwrap();
        let of = logs.iter().filter(|((name, ..), _)| name == log);
        of.map(|((name, pod, container, restart), stored)| {
            let time = |line: Option<&(i64, Vec<u8>)>| {
                line.map(|(time, _)| to_wire(Timestamp::from_microsecond(*time).unwrap()))
            };
            let bytes: usize = stored.lines.iter().map(|(_, text)| text.len()).sum();
            LogContainer {
                name: name.clone(),
                source: Some(LogSource {
                    pod: pod.clone(),
                    container: container.clone(),
                    restart: *restart,
                }),
                lines: i64::try_from(stored.lines.len()).unwrap(),
                bytes: i64::try_from(bytes).unwrap(),
                first_time: time(stored.lines.first()),
                last_time: time(stored.lines.last()),
                sealed: stored.sealed,
                sha256: Vec::new(),
                holes: i64::try_from(stored.holes.len()).unwrap(),
                is_elsewhere: false,
            }
        })
        .collect()
    }

    /// The lines of a source since a time, in one part.
    pub(crate) fn read(&self, log: &str, source: &LogSource, since: i64) -> LogLines {
        let logs = self.0.lock().unwrap();
        let LogSource {
            pod,
            container,
            restart,
        } = source.clone();
        let Some(stored) = logs.get(&(log.to_owned(), pod, container, restart)) else {
            return LogLines::default();
        };
        let first = stored.lines.iter().position(|(time, _)| *time >= since);
        let first = first.unwrap_or(stored.lines.len());
        let mut lines = LogLines {
            first_line: i64::try_from(first).unwrap(),
            ..LogLines::default()
        };
        let mut before = 0;
        for (time, text) in &stored.lines[first..] {
            lines.text.extend_from_slice(text);
            lines.times.push(time - before);
            before = *time;
        }
        let holes = stored.holes.iter().filter(|hole| **hole >= first);
        lines.holes = holes.map(|hole| i64::try_from(*hole).unwrap()).collect();
        lines
    }
}

#[tonic::async_trait]
impl Logs for LogStore {
    async fn append_log(
        &self,
        request: Request<Streaming<AppendLogRequest>>,
    ) -> Result<Response<AppendLogResponse>, Status> {
        let mut stream = request.into_inner();
        let mut names: Vec<String> = Vec::new();
        while let Some(message) = stream.message().await? {
            self.append(std::slice::from_ref(&message))?;
            names.push(message.name);
        }
        names.dedup();
        let containers = names.iter().flat_map(|name| self.describe(name)).collect();
        Ok(Response::new(AppendLogResponse { containers }))
    }

    async fn describe_log(
        &self,
        request: Request<DescribeLogRequest>,
    ) -> Result<Response<LogDescription>, Status> {
        let containers = self.describe(&request.into_inner().name);
        Ok(Response::new(LogDescription {
            containers,
            ..LogDescription::default()
        }))
    }

    async fn list_logs(
        &self,
        _: Request<ListLogsRequest>,
    ) -> Result<Response<ListLogsResponse>, Status> {
        Err(Status::unimplemented("not asked for"))
    }

    type ReadLogStream = futures::stream::Iter<std::vec::IntoIter<Result<ReadLogResponse, Status>>>;

    async fn read_log(
        &self,
        request: Request<ReadLogRequest>,
    ) -> Result<Response<Self::ReadLogStream>, Status> {
        let asked = request.into_inner();
        let source = LogSource {
            pod: asked.pod,
            container: asked.containers[0].clone(),
            restart: asked.restart.unwrap(),
        };
        let since = asked.since.unwrap();
        let since = at(since.seconds, since.nanos).unwrap().as_microsecond();
        let lines = self.read(&asked.name, &source, since);
        let part = ReadLogResponse {
            source: Some(source),
            lines: Some(lines),
        };
        Ok(Response::new(futures::stream::iter(vec![Ok(part)])))
    }

    async fn search_logs(
        &self,
        _: Request<SearchLogsRequest>,
    ) -> Result<Response<SearchLogsResponse>, Status> {
        Err(Status::unimplemented("not asked for"))
    }
}
