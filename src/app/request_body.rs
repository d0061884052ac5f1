//! Bodies of requests: memory is reserved before a byte is read, and reads time out.
//!
//! A gRPC message says how long it is before it comes, and is unpacked here, so that what it takes
//! is known too. A body of REST takes what its `content-length` says, or more as it comes.

mod outline;

use std::{io::Read as _, time::Duration};

use axum::{
    body::{Body, BodyDataStream},
    http::HeaderMap,
};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use flate2::read::GzDecoder;
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use self::outline::Outline;
use crate::grpc::refusal;
use hindsight_access::budget::{Arrival, MemoryPermit};
use hindsight_runtime::low_priority;

/// A message on the wire is preceded by a flag and its length.
const FRAME: usize = 5;
/// How many bytes a second a message must come with, once it had its time to begin.
const LEAST_RATE: u64 = 16 << 10;
/// What is unpacked where it comes.
const SMALL: usize = 4 << 10;
/// By how much memory of what turns out to be larger grows.
const STEP: usize = 1 << 20;

/// Limits of one body: its memory, size and time.
#[derive(Debug, Clone)]
pub(super) struct BodyLimits {
    /// The request that its memory is charged to; none for small bodies of unknown callers.
    pub(super) arrival: Option<Arrival>,
    pub(super) limit: usize,
    /// How long nothing may come.
    pub(super) patience: Duration,
    /// Whether messages follow one another, with any time between them.
    pub(super) streams: bool,
    /// In how many messages within each other the payload is.
    pub(super) depth: usize,
}

impl BodyLimits {
    async fn take(&self, bytes: usize) -> Result<MemoryPermit, Status> {
        match &self.arrival {
            Some(arrival) => arrival
                .take(bytes, self.streams)
                .await
                .map_err(|spent| refusal("a request", &spent)),
            None => Ok(MemoryPermit::default()),
        }
    }

    fn resize(&self, held: &mut MemoryPermit, bytes: usize) -> Result<(), Status> {
        self.arrival.as_ref().map_or(Ok(()), |arrival| {
            arrival
                .resize(held, bytes)
                .map_err(|spent| refusal("a request", &spent))
        })
    }

    fn keep(&self, held: MemoryPermit) {
        match &self.arrival {
            Some(arrival) if self.streams => arrival.keep_for_message(held),
            Some(arrival) => arrival.keep(held),
            None => {}
        }
    }

    /// Until when a message of so many bytes must have come.
    fn end(&self, bytes: usize) -> Instant {
        Instant::now() + self.patience + Duration::from_secs(bytes as u64 / LEAST_RATE)
    }
}

/// The parts of a body, as they come.
struct Parts {
    body: BodyDataStream,
    /// What came and was not asked for yet.
    left: Bytes,
}

impl Parts {
    fn of(body: Body) -> Self {
        Self {
            body: body.into_data_stream(),
            left: Bytes::new(),
        }
    }

    /// The next bytes, at most so many; nothing at the end.
    async fn next(
        &mut self,
        most: usize,
        patience: Duration,
        end: Option<Instant>,
    ) -> Result<Bytes, Status> {
        while self.left.is_empty() {
            let next = match end {
                None => self.body.next().await,
                Some(end) => {
                    let end = end.min(Instant::now() + patience);
                    let next = timeout_at(end, self.body.next()).await;
                    next.map_err(|_elapsed| {
                        Status::deadline_exceeded(format!(
                            "the request did not go on within {patience:?} (client_timeout)"
                        ))
                    })?
                }
            };
            match next {
                Some(part) => self.left = part.map_err(|error| Status::from_error(error.into()))?,
                None => return Ok(Bytes::new()),
            }
        }
        Ok(self.left.split_to(most.min(self.left.len())))
    }
}

/// A gRPC body whose messages are unpacked and have their memory. What is wrong with its framing
/// is passed on, to be refused as ever.
pub(super) fn messages(body: Body, headers: &HeaderMap, limits: BodyLimits) -> Body {
    let coding = headers.get("grpc-encoding");
    let messages = Messages {
        parts: Parts::of(body),
        gzip: coding.is_some_and(|coding| coding == "gzip"),
        outline: Outline::of(limits.depth),
        limits,
        rest: 0,
        end: None,
    };
    let steps = stream::try_unfold(messages, async |mut messages| {
        let next = messages.next().await?;
        Ok::<_, Status>((!next.is_empty()).then_some((next, messages)))
    });
    Body::from_stream(steps)
}

struct Messages {
    parts: Parts,
    limits: BodyLimits,
    gzip: bool,
    /// What is still to come of the message that is passed on.
    rest: usize,
    /// What was passed on of it.
    outline: Outline,
    /// Until when it must have come.
    end: Option<Instant>,
}

impl Messages {
    async fn next(&mut self) -> Result<Bytes, Status> {
        let patience = self.limits.patience;
        if self.rest > 0 {
            let part = self.parts.next(self.rest, patience, self.end).await?;
            self.rest -= part.len();
            self.outline.read(&part)?;
            return Ok(part);
        }
        let first = (!self.limits.streams).then(|| self.limits.end(0));
        let head = self.read(FRAME, first).await?;
        if head.len() < FRAME {
            return Ok(head);
        }
        let mut fields = head.clone();
        let (flag, length) = (fields.get_u8(), fields.get_u32() as usize);
        let limit = self.limits.limit;
        if length > limit {
            return Err(Status::resource_exhausted(format!(
                "Error, decoded message length too large: found {length} bytes, the limit is: \
                 {limit} bytes"
            )));
        }
        let held = self.limits.take(length).await?;
        self.end = Some(self.limits.end(length));
        if (flag, self.gzip) != (1, true) {
            self.limits.keep(held);
            self.rest = length;
            self.outline = Outline::of(self.limits.depth);
            return Ok(head);
        }
        let packed = self.read(length, self.end).await?;
        if packed.len() < length {
            return Ok([head, packed].concat().into());
        }
        let limits = self.limits.clone();
        let held = match unpacked(&packed, held, &limits, SMALL)? {
            Unpacked::Whole(message) => return Ok(message),
            Unpacked::Larger(held) => held,
        };
        // Some milliseconds for each MiB: at low priority, and in turns with other callers.
        let turn = match &limits.arrival {
            Some(arrival) => Some(arrival.turn().await),
            None => None,
        };
        let work = async move {
            let _turn = turn;
            unpacked(&packed, held, &limits, limits.limit)
        };
        let done = low_priority::run(work).await;
        match done.map_err(|broken| Status::internal(broken.to_string()))?? {
            Unpacked::Whole(message) => Ok(message),
            Unpacked::Larger(_) => Err(Status::resource_exhausted(format!(
                "Error decompressing: size limit, of {limit} bytes, exceeded while decompressing \
                 message"
            ))),
        }
    }

    /// So many bytes, or fewer at the end.
    async fn read(&mut self, bytes: usize, end: Option<Instant>) -> Result<Bytes, Status> {
        let mut read = BytesMut::new();
        let mut end = end;
        while read.len() < bytes {
            let more = bytes - read.len();
            let part = self.parts.next(more, self.limits.patience, end).await?;
            if part.is_empty() {
                break;
            }
            read.put(part);
            end = end.or_else(|| Some(self.limits.end(0)));
        }
        Ok(read.freeze())
    }
}

/// A message that came packed.
enum Unpacked {
    /// As it would have come unpacked.
    Whole(Bytes),
    /// It is larger than it may be; the memory is given back.
    Larger(MemoryPermit),
}

/// Unpacks a message of at most `most` bytes. Whatever is in it, no more of it is unpacked than
/// there is memory for.
fn unpacked(
    packed: &[u8],
    mut held: MemoryPermit,
    limits: &BodyLimits,
    most: usize,
) -> Result<Unpacked, Status> {
    let most = most.min(limits.limit) + FRAME;
    let mut message = vec![0; FRAME];
    let mut input = GzDecoder::new(packed);
    loop {
        let before = message.len();
        let step = STEP.min(most + 1 - before);
        limits.resize(&mut held, packed.len() + before + step)?;
        message.reserve_exact(step);
        let read = input.by_ref().take(step as u64).read_to_end(&mut message);
        read.map_err(|error| {
            Status::internal(format!(
                "Error decompressing: {error}, while sending request"
            ))
        })?;
        if message.len() > most {
            limits.resize(&mut held, packed.len())?;
            return Ok(Unpacked::Larger(held));
        }
        if message.len() == before {
            break;
        }
    }
    let length = message.len() - FRAME;
    Outline::of(limits.depth).read(&message[FRAME..])?;
    limits.resize(&mut held, length)?;
    limits.keep(held);
    let length = u32::try_from(length).expect("the limit is smaller");
    message[1..FRAME].copy_from_slice(&length.to_be_bytes());
    Ok(Unpacked::Whole(message.into()))
}

#[cfg(test)]
mod tests;
mod whole;

pub(super) use whole::whole;
