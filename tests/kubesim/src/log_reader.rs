//! Reading the log of a container as an API server and a kubelet let it be read: which container is
//! meant, whether it has a log, and the stream of its lines.

mod options;

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    faults::Signals,
    logs::{self, Line, Log, SharedLog, lock},
    refusal::Refusal,
    route::Query,
    shared::Shared,
};
use options::Options;

/// How many bytes are sent at once, about.
const CHUNK: usize = 32 << 10;

/// Opens the log that is asked for; none if no node has the pod yet.
///
/// It fails as an API server and a kubelet refuse: 400 for what has no log, 422 for bad options.
pub(crate) fn open(
    shared: &Arc<Shared>,
    pod: &Value,
    query: &Query,
) -> Result<Option<impl Stream<Item = io::Result<Bytes>> + use<>>, Refusal> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let options = Options::read(query, name, shared.clock.now())?;
    let container = container(pod, name, &options.container)?;
    let is_placed = pod["spec"]["nodeName"].is_string() || pod["status"]["phase"].is_string();
    if !is_placed {
        return Ok(None);
    }
    let number = start(pod, name, &container, options.previous)?;
    let log = shared.logs.start(uid, &container, Some(number));
    let reader = Reader::new(shared, log.unwrap_or_else(over), options);
    Ok(Some(reader.stream()))
}

fn over() -> SharedLog {
    let log = Log {
        ended: true,
        ..Log::default()
    };
    SharedLog::new(log.into())
}

/// Which container is meant.
fn container(pod: &Value, name: &str, asked: &str) -> Result<String, Refusal> {
    if !asked.is_empty() {
        return match logs::list_of(pod, asked) {
            Some(_) => Ok(asked.to_owned()),
            None => Err(Refusal::bad_request(format!(
                "container {asked} is not valid for pod {name}"
            ))),
        };
    }
    let names = |list: &str| {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers
            .filter_map(|container| container["name"].as_str())
            .collect::<Vec<_>>()
    };
    let (main, init) = (names("containers"), names("initContainers"));
    match &main[..] {
        [only] => Ok((*only).to_owned()),
        [] => Err(Refusal::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        _ => Err(Refusal::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            [init, main].concat().join(" ")
        ))),
    }
}

/// Which start of a container is meant, as the kubelet finds it in the status.
fn start(pod: &Value, name: &str, container: &str, previous: bool) -> Result<usize, Refusal> {
    let found = logs::of(pod, container);
    let (state, last) = (&found["state"], &found["lastState"]["terminated"]);
    let count = found["restartCount"].as_u64().unwrap_or_default();
    let count = usize::try_from(count).unwrap_or_default();
    let refuse = |why: &str| {
        Refusal::bad_request(format!("container \"{container}\" in pod \"{name}\" {why}"))
    };
    match () {
        () if previous && last.is_object() => {
            let is_waiting = state["waiting"].is_object();
            Ok(if is_waiting {
                count
            } else {
                count.saturating_sub(1)
            })
        }
        () if previous => Err(Refusal::bad_request(format!(
            "previous terminated container \"{container}\" in pod \"{name}\" not found"
        ))),
        () if state["running"].is_object() || state["terminated"].is_object() => Ok(count),
        () if last.is_object() => Ok(count),
        () => match state["waiting"]["reason"].as_str() {
            Some("ErrImagePull") => Err(refuse("is waiting to start: image can't be pulled")),
            Some("ImagePullBackOff") => Err(refuse(
                "is waiting to start: trying and failing to pull image",
            )),
            Some(reason) => Err(refuse(&format!("is waiting to start: {reason}"))),
            None if found.is_null() => Err(refuse("is waiting to start: ContainerCreating")),
            None => Err(refuse("is waiting to start - no logs yet")),
        },
    }
}

struct Reader {
    shared: Arc<Shared>,
    log: SharedLog,
    options: Options,
    /// The number of the next line, counted from the first that was ever written.
    next: usize,
    /// How many bytes may still be sent.
    left: usize,
    drops: u64,
}

/// What there is to send now.
enum Found {
    Some(Bytes),
    /// More may come.
    Nothing,
    End,
}

impl Reader {
    fn new(shared: &Arc<Shared>, log: SharedLog, options: Options) -> Self {
        let next = {
            let log = lock(&log);
            let all = log.rotated + log.lines.len();
            let tail = options.tail.unwrap_or(usize::MAX);
            all.saturating_sub(tail).max(log.rotated)
        };
        Self {
            drops: shared.faults.signals().borrow().log_drops,
            shared: Arc::clone(shared),
            log,
            left: options.limit.unwrap_or(usize::MAX),
            options,
            next,
        }
    }

    fn stream(self) -> impl Stream<Item = io::Result<Bytes>> + use<> {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut news = self.shared.logs.news();
        let mut signals = self.shared.faults.signals();
        loop {
            news.mark_unchanged();
            match self.look() {
                Found::Some(bytes) => return Ok(Some(bytes)),
                Found::End => return Ok(None),
                Found::Nothing => {}
            }
            let drops = self.drops;
            let is_cut = |signals: &Signals| signals.down || signals.log_drops != drops;
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return Ok(None) },
                _ = signals.wait_for(is_cut) => {
                    let why = "the connection to the kubelet was lost";
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, why));
                }
            }
        }
    }

    fn look(&mut self) -> Found {
        let log = lock(&self.log);
        // Who follows has the file open and misses nothing; where it was rotated meanwhile, as a
        // slow reader finds it, lines are missing.
        self.next = self.next.max(log.rotated);
        let mut out = BytesMut::new();
        while let Some(line) = log.lines.get(self.next - log.rotated)
            && out.len() < CHUNK
            && out.len() < self.left
        {
            self.next += 1;
            if self.options.since.is_none_or(|since| since <= line.at) {
                write(line, self.options.timestamps, &mut out);
            }
        }
        let is_over = log.ended || !self.options.follow;
        let is_read = self.next - log.rotated >= log.lines.len();
        drop(log);
        out.truncate(self.left);
        self.left -= out.len();
        match () {
            () if !out.is_empty() => Found::Some(out.freeze()),
            () if self.left == 0 || (is_over && is_read) => Found::End,
            () => Found::Nothing,
        }
    }
}

fn write(line: &Line, timestamps: bool, out: &mut BytesMut) {
    if timestamps {
        out.extend_from_slice(nanoseconds(line.at).as_bytes());
        out.extend_from_slice(b" ");
    }
    out.extend_from_slice(&line.text);
}

/// As Go writes `RFC3339Nano` with all of its digits.
fn nanoseconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()
}
