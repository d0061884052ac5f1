//! What arrives in time and within its memory, and what does not.

use std::{io::Write as _, sync::Arc};

use axum::http::HeaderValue;
use flate2::{Compression, write::GzEncoder};
use http_body_util::BodyExt as _;
use tonic::Code;

use super::*;
use hindsight_access::budget::{Budgets, Limits};
use hindsight_runtime::clock::SystemClock;
use hindsight_runtime::telemetry::Registry;

const PATIENCE: Duration = Duration::from_secs(10);
const LIMIT: usize = 4 << 20;

/// A request of a caller who may have half of `memory`.
fn arrival(memory: usize) -> Arrival {
    let limits = Limits {
        in_flight: 10,
        per_second: None,
        scan_per_minute: None,
    };
    let clock = Arc::new(SystemClock);
    let budgets = Budgets::new(limits, 1, memory, clock, &mut Registry::new());
    budgets.arrive("ann", 0).unwrap()
}

fn limits(arrival: &Arrival) -> BodyLimits {
    BodyLimits {
        arrival: Some(arrival.clone()),
        limit: LIMIT,
        patience: PATIENCE,
        streams: false,
        depth: 3,
    }
}

fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag][..], &length, message].concat()
}

/// A message with a payload, of so many bytes in all.
fn message(size: usize) -> Vec<u8> {
    let mut message = Vec::new();
    for _ in 0..3 {
        let length = u32::try_from(size - message.len() - 6).unwrap();
        let digit = |n: u32| u8::try_from(length >> (7 * n) & 0x7f).unwrap();
        message.push(0x12);
        message.extend((0..4).map(|n| digit(n) | 0x80));
        message.push(digit(4));
    }
    message.resize(size, b'x');
    message
}

fn packed(message: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(message).unwrap();
    frame(1, &gzip.finish().unwrap())
}

fn headers() -> HeaderMap {
    let gzip = ("grpc-encoding", HeaderValue::from_static("gzip"));
    [gzip]
        .into_iter()
        .map(|(n, v)| (n.parse().unwrap(), v))
        .collect()
}

/// All that comes, or why no more does.
async fn read(body: Body) -> Result<Bytes, Status> {
    let read = body.collect().await;
    read.map(http_body_util::Collected::to_bytes)
        .map_err(|error| Status::from_error(error.into()))
}

/// These bytes, and then nothing more, and no end.
fn stalled(bytes: Vec<u8>) -> Body {
    let sent = stream::iter([Ok::<_, axum::Error>(Bytes::from(bytes))]);
    Body::from_stream(sent.chain(stream::pending()))
}

#[tokio::test]
async fn messages_come_through_whole_and_unpacked() {
    let arrival = arrival(64 << 20);
    let large = message(3 << 20);
    let sent = [frame(0, b"plain"), packed(&large), frame(0, b"")].concat();
    let parts = sent
        .chunks(1000)
        .map(|part| Ok::<_, axum::Error>(part.to_vec()));
    let body = Body::from_stream(stream::iter(parts.collect::<Vec<_>>()));
    let came = read(messages(body, &headers(), limits(&arrival))).await;
    let expected = [frame(0, b"plain"), frame(0, &large), frame(0, b"")].concat();
    assert!(came.unwrap() == expected);
    // What is wrong is for those to refuse who read it.
    for odd in [frame(7, b"odd"), frame(0, b"cut")[..6].to_vec(), vec![0, 0]] {
        let came = read(messages(
            Body::from(odd.clone()),
            &headers(),
            limits(&arrival),
        ))
        .await;
        assert_eq!(came.unwrap(), odd);
    }
}

#[tokio::test]
async fn a_message_is_refused_for_its_length_before_it_comes_and_while_it_is_unpacked() {
    let arrival = arrival(64 << 20);
    let mut head = frame(0, b"");
    head[1..].copy_from_slice(&u32::try_from(LIMIT + 1).unwrap().to_be_bytes());
    for body in [stalled(head), Body::from(packed(&message(LIMIT + 1)))] {
        let status = read(messages(body, &headers(), limits(&arrival))).await;
        let status = status.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(status.message().contains("limit"), "{status:?}");
    }
    let body = Body::from(packed(&message(LIMIT)));
    let came = read(messages(body, &headers(), limits(&arrival))).await;
    assert_eq!(came.unwrap().len(), LIMIT + FRAME);
    let odd = Body::from(frame(1, b"this is not gzip at all"));
    let status = read(messages(odd, &headers(), limits(&arrival))).await;
    assert!(
        status
            .unwrap_err()
            .message()
            .starts_with("Error decompressing"),
        "as it was said before"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_without_memory_is_refused_after_a_while() {
    let arrival = arrival(8 << 20);
    let held = arrival.take(1 << 20, false).await.unwrap();
    let message = message((1 << 20) + 1);
    let small = messages(frame(0, b"small").into(), &headers(), limits(&arrival));
    assert!(read(small).await.is_ok());
    for body in [
        messages(frame(0, &message).into(), &headers(), limits(&arrival)),
        messages(packed(&message).into(), &headers(), limits(&arrival)),
        whole(message.clone().into(), &HeaderMap::new(), limits(&arrival)),
    ] {
        let status = read(body).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("max_request_memory"));
    }
    drop(held);
    let body = messages(frame(0, &message).into(), &headers(), limits(&arrival));
    assert!(read(body).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_on_is_given_up_and_so_is_what_drips() {
    let arrival = arrival(64 << 20);
    let began = Instant::now();
    for begun in [vec![], vec![0; 3], frame(0, b"message")[..9].to_vec()] {
        let body = messages(stalled(begun), &headers(), limits(&arrival));
        let status = read(body).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(status.message().contains("client_timeout"), "{status:?}");
    }
    // The end of the body is a part of it too.
    let ended = messages(stalled(frame(0, b"")), &headers(), limits(&arrival));
    assert!(read(ended).await.is_err());
    let stopped = whole(stalled(b"{".to_vec()), &HeaderMap::new(), limits(&arrival));
    assert!(read(stopped).await.is_err());
    assert!(began.elapsed() <= PATIENCE * 6);
    let drops = stream::unfold((), async |()| {
        tokio::time::sleep(PATIENCE / 2).await;
        Some((Ok::<_, axum::Error>("x"), ()))
    });
    let drips = stream::iter([Ok(Bytes::from(frame(0, &[b'x'; 10_000])[..5].to_vec()))])
        .chain(drops.map(|drop| drop.map(Bytes::from)));
    let body = messages(Body::from_stream(drips), &headers(), limits(&arrival));
    let began = Instant::now();
    assert!(read(body).await.is_err());
    assert!(began.elapsed() <= PATIENCE * 3);
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_silent_between_messages_and_gives_memory_back_one_by_one() {
    let arrival = arrival(8 << 20);
    let limits = BodyLimits {
        streams: true,
        ..limits(&arrival)
    };
    let message = message(2 << 20);
    let sent = [frame(0, &message), frame(0, &message)].concat();
    let (first, second) = sent.split_at(sent.len() / 2);
    let parts = [first.to_vec(), second.to_vec()];
    let body = stream::iter(parts).then(async |part| {
        tokio::time::sleep(PATIENCE * 10).await;
        Ok::<_, axum::Error>(Bytes::from(part))
    });
    let mut body = messages(Body::from_stream(body), &HeaderMap::new(), limits).into_data_stream();
    let mut came = 0;
    while came < sent.len() / 2 {
        came += body.next().await.unwrap().unwrap().len();
    }
    let first = arrival.of_message();
    let mut next = Box::pin(body.next());
    let held_back = tokio::time::timeout(PATIENCE * 100, next.as_mut()).await;
    assert!(held_back.is_err(), "the first has all the memory there is");
    drop(first);
    assert!(next.await.unwrap().is_ok());
}
