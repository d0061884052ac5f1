//! A bucket over a directory: as much of the API of S3 as reading needs, on plain HTTP, with latency. It counts
//! requests and bytes.

use std::{
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Method, Request, Response, StatusCode, header},
};
use percent_encoding::percent_decode_str;
use tokio::{net::TcpListener, task::JoinHandle};

/// An answer begins so long after its request.
const LATENCY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug)]
pub struct Bucket {
    endpoint: String,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bucket {
    /// A bucket called `bucket` that has the files of a directory.
    pub async fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let counts = Arc::<Counts>::default();
        let (mine, folder) = (Arc::clone(&counts), Arc::<Path>::from(folder));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (counts, folder) = (Arc::clone(&mine), Arc::clone(&folder));
            let (head, _) = request.into_parts();
            async move {
                let work = move || answer(&folder, &counts, &Request::from_parts(head, ()));
                let work = tokio::task::spawn_blocking(work);
                let (answer, ()) = tokio::join!(work, tokio::time::sleep(LATENCY));
                answer.unwrap()
            }
        });
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            endpoint,
            counts,
            task,
        }
    }

    /// The environment of a process that uses it.
    pub fn env(&self) -> [(&'static str, &str); 5] {
        [
            ("AWS_ENDPOINT", &self.endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "eu-1"),
            ("AWS_ACCESS_KEY_ID", "the-key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ]
    }

    /// Requests, and bytes of answers, until now.
    pub fn taken(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counts.requests), count(&self.counts.bytes))
    }
}

fn error(status: StatusCode, code: &str) -> Response<Body> {
    let text = format!("<Error><Code>{code}</Code></Error>");
    let answer = Response::builder().status(status);
    answer.body(text.into()).unwrap()
}

fn answer(folder: &Path, counts: &Counts, request: &Request<()>) -> Response<Body> {
    counts.requests.fetch_add(1, Ordering::Relaxed);
    let text = |name| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    };
    if !text(header::AUTHORIZATION).starts_with("AWS4-HMAC-SHA256 Credential=the-key/") {
        return error(StatusCode::FORBIDDEN, "AccessDenied");
    }
    if request.method() != Method::GET {
        return error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    }
    let Some(key) = request.uri().path().strip_prefix("/bucket/") else {
        return error(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    let key = percent_decode_str(key).decode_utf8().unwrap();
    let Ok(file) = std::fs::File::open(folder.join(&*key)) else {
        return error(StatusCode::NOT_FOUND, "NoSuchKey");
    };
    let size = file.metadata().unwrap().len();
    let wanted = text(header::RANGE).strip_prefix("bytes=");
    let wanted = wanted.and_then(|range| range.split_once('-'));
    let (from, to) = match wanted {
        Some((from, to)) => (from.parse().unwrap(), to.parse::<u64>().unwrap() + 1),
        None => (0, size),
    };
    let to = to.min(size);
    let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
    file.read_exact_at(&mut bytes, from).unwrap();
    let read = bytes.len() as u64;
    counts.bytes.fetch_add(read, Ordering::Relaxed);
    let mut answer = Response::builder()
        .header(header::ETAG, "\"e\"")
        .header(header::LAST_MODIFIED, "Thu, 01 Jan 2026 00:00:00 GMT")
        .header(header::CONTENT_LENGTH, read);
    if wanted.is_some() {
        let part = format!("bytes {from}-{}/{size}", to - 1);
        let status = StatusCode::PARTIAL_CONTENT;
        answer = answer.status(status).header(header::CONTENT_RANGE, part);
    }
    answer.body(Bytes::from(bytes).into()).unwrap()
}
