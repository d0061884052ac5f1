//! What is too large, too much or has no end, made by hand.

use std::{io::Write as _, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};

use super::{
    random::Random,
    requests::{Attempt, TOKEN, framed},
    valid::Method,
};
use crate::support::http::PREFIX;

const LIST: &str = "/tekton.results.v1alpha2.Results/ListRecords";
const UPSERT: &str = "/hindsight.v1.Ingest/Upsert";

/// A few bytes that are 64 MiB when they are unpacked.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap()
});

pub fn attempt(methods: &[Method], random: &mut Random) -> Attempt {
    match random.below(3) {
        0 => Attempt::One(one(random)),
        1 => two(methods, random),
        _ => Attempt::Frames(frames(random)),
    }
}

fn one(random: &mut Random) -> Vec<u8> {
    let size = 1 << (10 + random.below(11));
    let long = "x".repeat(size);
    let deep = ["[", "{\"a\":", "("][random.below(3)].repeat(size / 5);
    let auth = format!("host: s\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n");
    let post = format!("POST {PREFIX}/ci/results HTTP/1.1\r\n{auth}");
    let get = format!("GET {PREFIX}/ci/results/-/records");
    let whole = |body: String| format!("{post}content-length: {}\r\n\r\n{body}", body.len());
    let text = match random.below(9) {
        0 => format!("{get}?{long} HTTP/1.1\r\n{auth}\r\n"),
        1 => format!("{get}?filter={deep} HTTP/1.1\r\n{auth}\r\n"),
        2 => format!("{get} HTTP/1.1\r\n{auth}x-long: {long}\r\n\r\n"),
        3 => format!(
            "{get} HTTP/1.1\r\n{auth}{}\r\n",
            "x-many: y\r\n".repeat(size / 100)
        ),
        4 => whole(format!("{{\"name\":\"{long}\"}}")),
        5 => whole(format!("{{\"annotations\":{deep}")),
        6 => whole(format!(
            "{{\"annotations\":{{{}\"z\":\"\"}}}}",
            "\"é\\n\":\"\",".repeat(size / 10)
        )),
        7 => format!(
            "{post}transfer-encoding: chunked\r\n\r\n{}",
            "1\r\n \r\n".repeat(size / 50)
        ),
        _ => format!("{post}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{long}"),
    };
    text.into_bytes()
}

fn two(methods: &[Method], random: &mut Random) -> Attempt {
    let mut path = methods[random.below(methods.len())].path.clone();
    let size = 1 << (10 + random.below(11));
    let mut encoding = None;
    let body = match random.below(6) {
        0 => {
            let mut body = framed(b"", 0);
            body[1..5].copy_from_slice(&u32::MAX.to_be_bytes());
            body
        }
        1 => {
            encoding = Some("gzip");
            framed(&BOMB, 1)
        }
        2 => {
            // Empty requests without end.
            UPSERT.clone_into(&mut path);
            framed(b"", 0).repeat(size / 100)
        }
        3 => {
            LIST.clone_into(&mut path);
            let parts = [
                "(",
                "!",
                "a==1||",
                "data.a[0].b.",
                "'\\u0000'+",
                "[",
                "a.exists(x,",
            ];
            let part = random.pick(&parts);
            framed(&field(2, part.repeat(size / part.len()).as_bytes()), 0)
        }
        // Groups inside groups, and fields that nobody knows.
        4 => framed(&vec![0x0b; size], 0),
        _ => framed(&field(999, &vec![b'x'; size]), 0),
    };
    let mut headers = vec![
        ("content-type".to_owned(), b"application/grpc".to_vec()),
        ("te".to_owned(), b"trailers".to_vec()),
        (
            "authorization".to_owned(),
            format!("Bearer {TOKEN}").into_bytes(),
        ),
    ];
    headers.extend(encoding.map(|name| ("grpc-encoding".to_owned(), name.as_bytes().to_vec())));
    Attempt::Two {
        path,
        headers,
        body,
    }
}

/// A field of a message with bytes in it.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for mut value in [u64::from(number) << 3 | 2, bytes.len() as u64] {
        while value > 0x7f {
            all.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        all.push(value.to_le_bytes()[0]);
    }
    all.extend(bytes);
    all
}

/// What a client of HTTP/2 says first.
pub fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, b""));
    bytes
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A POST of gRPC; without its end if `cut`.
pub fn headers(stream: u32, path: &str, cut: bool) -> Vec<u8> {
    let token = format!("Bearer {TOKEN}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "server"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("authorization", token.as_str()),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.bytes());
        }
    }
    frame(1, if cut { 0 } else { 4 }, stream, &block)
}

fn frames(random: &mut Random) -> Vec<u8> {
    let mut bytes = preface();
    let streams = |count: u32| (0..count).map(|n| n * 2 + 1);
    match random.below(8) {
        0 => {
            for stream in streams(500) {
                bytes.extend(headers(stream, LIST, false));
                bytes.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
            }
        }
        1 => {
            bytes.extend(headers(1, LIST, true));
            for _ in 0..1000 {
                bytes.extend(frame(9, 0, 1, &[0x82; 1000]));
            }
        }
        2 => bytes.extend(frame(4, 0, 0, b"").repeat(5000)),
        3 => bytes.extend(frame(6, 0, 0, &[7; 8]).repeat(5000)),
        4 => {
            for stream in streams(1500) {
                bytes.extend(headers(stream, UPSERT, false));
            }
        }
        5 => {
            bytes.extend(headers(1, LIST, false));
            for _ in 0..3 {
                bytes.extend(frame(8, 0, 1, &0x7fff_ffff_u32.to_be_bytes()));
            }
        }
        6 => {
            // Answers that nobody has room for.
            bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
            for stream in streams(100) {
                bytes.extend(headers(stream, LIST, false));
                bytes.extend(frame(0, 1, stream, &framed(&field(1, b"-/results/-"), 0)));
            }
        }
        _ => {
            bytes.extend(headers(1, UPSERT, false));
            bytes.extend(frame(0, 0, 1, &framed(b"", 0)).repeat(3000));
        }
    }
    bytes
}
