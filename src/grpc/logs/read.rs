//! The stream of `ReadLog`, and when it ends.

use std::pin::Pin;

use futures::{Stream, stream};
use hindsight_logs::{Lines, Selection, Window};
use hindsight_proto::v1::{self as pb, ReadLogRequest, ReadLogResponse};
use hindsight_storage::LogSource;
use tokio::time::Instant;
use tonic::{Status, metadata::MetadataMap};

use super::of;
use crate::grpc::{
    ResultsServer, convert,
    lifetime::{Lifetime, Over},
    status::status,
};
use crate::service::{Error, LogReading, ReadAsk};
use hindsight_access::auth::{Guarded, Verb};
use hindsight_filter::model::LogName;

const METHOD: &str = "ReadLog";
/// Most containers that a request names.
const CONTAINERS: usize = 100;

/// The messages of one call.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<ReadLogResponse, Status>> + Send>>;

pub(super) async fn read_log(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: ReadLogRequest,
) -> Result<Messages, Error> {
    let began = Instant::now();
    let name: LogName = convert::name("name", &request.name)?;
    let parent = of(&name);
    let (by, grant) = server
        .grant(&metadata, Verb::Get, Guarded::Logs, parent.clone())
        .await?;
    let ask = asked(request)?;
    let service = &server.service;
    let mut reading = service.read_log(&by, &grant, &name, ask.clone()).await?;
    // What cannot be read says so before the answer begins.
    let first = match ask.follow {
        true => None,
        false => reading.next().await?,
    };
    let access = (Verb::Get, Guarded::Logs, parent);
    let sending = Sending {
        lifetime: Lifetime::new(server, &metadata, access, began),
        reading,
        first,
        follows: ask.follow,
        is_over: false,
    };
    Ok(Box::pin(stream::unfold(sending, Sending::step)))
}

fn asked(request: ReadLogRequest) -> Result<ReadAsk, Error> {
    let number = |field, number: i64| {
        u64::try_from(number)
            .map_err(|_below| Error::Invalid(format!("{field} of {number} is below 0")))
    };
    if request.containers.len() > CONTAINERS {
        let many = request.containers.len();
        return Err(Error::Invalid(format!(
            "containers: {many} are named; a request may name {CONTAINERS}"
        )));
    }
    let window = Window::default();
    let time = |field, time: Option<prost_types::Timestamp>, without| match time {
        None => Ok(without),
        Some(time) => convert::to_time(field, time).map(jiff::Timestamp::as_microsecond),
    };
    number("first_line", request.first_line)?;
    Ok(ReadAsk {
        pod: request.pod,
        containers: request.containers,
        restart: request.restart,
        selection: Selection {
            first_line: request.first_line,
            tail: number("tail", request.tail)?,
            window: Window {
                since: time("since", request.since, window.since)?,
                until: time("until", request.until, window.until)?,
            },
        },
        limit: number("limit", request.limit)?,
        follow: request.follow,
    })
}

/// A stream that is under way.
struct Sending {
    lifetime: Lifetime,
    reading: LogReading,
    first: Option<(LogSource, Lines)>,
    follows: bool,
    is_over: bool,
}

impl Sending {
    /// The next message, and the stream after it. Only a read that is whole ends with OK, and one that was
    /// followed for as long as a stream may last.
    async fn step(mut self) -> Option<(Result<ReadLogResponse, Status>, Self)> {
        if self.is_over {
            return None;
        }
        if let Some((source, lines)) = self.first.take() {
            return Some((Ok(message(source, &lines)), self));
        }
        let next = self.lifetime.wait(self.reading.next()).await;
        let over = match next.and_then(|lines| lines.map_err(Over::Failed)) {
            Ok(Some((source, lines))) => return Some((Ok(message(source, &lines)), self)),
            Ok(None) => return None,
            Err(over) => over,
        };
        self.is_over = true;
        let status = match over {
            Over::Ended if self.follows => return None,
            Over::Ended => Status::deadline_exceeded(
                "a read lasts 30 minutes at most; go on after the last line",
            ),
            Over::Stopping => Status::unavailable("the server stops; go on after the last line"),
            Over::Deadline => Over::deadline(),
            Over::Failed(error) => status(METHOD, &error),
        };
        Some((Err(status), self))
    }
}

fn message(source: LogSource, lines: &Lines) -> ReadLogResponse {
    let mut before = 0;
    let times = lines.times.iter().map(|time| {
        let difference = time.wrapping_sub(before);
        before = *time;
        difference
    });
    ReadLogResponse {
        source: Some(super::source(source)),
        lines: Some(pb::LogLines {
            first_line: lines.first,
            text: lines.text.to_vec(),
            times: times.collect(),
            holes: lines.holes.clone(),
        }),
    }
}
