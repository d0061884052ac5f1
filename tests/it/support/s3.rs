//! A bucket in this process: as much of the API of S3 as a client of it needs, on plain HTTP.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::{Method, Request, Response, StatusCode},
};
use tokio::{net::TcpListener, task::JoinHandle};

type Objects = Arc<Mutex<BTreeMap<String, Bytes>>>;

#[derive(Debug)]
pub struct Bucket {
    pub endpoint: String,
    objects: Objects,
    away: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who may come in.
pub const ACCESS_KEY: &str = "the-key";

impl Bucket {
    /// A bucket called `bucket`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let objects = Objects::default();
        let away = Arc::new(AtomicBool::new(false));
        let (mine, is_away) = (Arc::clone(&objects), Arc::clone(&away));
        let router = Router::new().fallback(move |request| {
            let (mine, away) = (Arc::clone(&mine), is_away.load(Ordering::SeqCst));
            async move {
                match away {
                    true => error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
                    false => answer(mine, request).await,
                }
            }
        });
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            endpoint,
            objects,
            away,
            task,
        }
    }

    /// The environment of a process that uses it.
    pub fn env(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", self.endpoint.clone()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "eu-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ]
    }

    /// Names of objects and their lengths.
    pub fn list(&self) -> Vec<(String, usize)> {
        let objects = self.objects.lock().unwrap();
        let objects = objects.iter();
        objects
            .map(|(name, bytes)| (name.clone(), bytes.len()))
            .collect()
    }

    /// Takes an object away.
    pub fn lose(&self, name: &str) -> Bytes {
        self.objects.lock().unwrap().remove(name).unwrap()
    }

    pub fn put(&self, name: &str, bytes: Bytes) {
        self.objects.lock().unwrap().insert(name.to_owned(), bytes);
    }

    /// From now on it serves nobody.
    pub fn go_away(&self) {
        self.away.store(true, Ordering::SeqCst);
    }

    /// It serves again.
    pub fn come_back(&self) {
        self.away.store(false, Ordering::SeqCst);
    }
}

fn xml(status: StatusCode, text: String) -> Response<Body> {
    let answer = Response::builder()
        .status(status)
        .header("content-type", "application/xml");
    answer.body(text.into()).unwrap()
}

fn error(status: StatusCode, code: &str) -> Response<Body> {
    xml(status, format!("<Error><Code>{code}</Code></Error>"))
}

async fn answer(objects: Objects, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let signed = head.headers.get("authorization");
    let signed = signed.and_then(|value| value.to_str().ok()).unwrap_or("");
    if !signed.starts_with(&format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/")) {
        return error(StatusCode::FORBIDDEN, "AccessDenied");
    }
    let body = to_bytes(body, 64 << 20).await.unwrap();
    let query = head.uri.query().unwrap_or("").to_owned();
    let Some(key) = head.uri.path().strip_prefix("/bucket") else {
        return error(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    let key = key.trim_start_matches('/').to_owned();
    let mut objects = objects.lock().unwrap();
    match head.method {
        Method::PUT => {
            objects.insert(key, body);
            let answer = Response::builder().header("etag", "\"e\"");
            answer.body(Body::empty()).unwrap()
        }
        Method::GET if query.contains("list-type=2") => list(&objects, &query),
        Method::GET | Method::HEAD => match objects.get(&key) {
            None => error(StatusCode::NOT_FOUND, "NoSuchKey"),
            Some(bytes) => {
                let answer = Response::builder()
                    .header("etag", "\"e\"")
                    .header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
                    .header("content-length", bytes.len());
                let is_head = head.method == Method::HEAD;
                let bytes = if is_head { Bytes::new() } else { bytes.clone() };
                answer.body(bytes.into()).unwrap()
            }
        },
        Method::DELETE => {
            objects.remove(&key);
            Response::builder().status(204).body(Body::empty()).unwrap()
        }
        Method::POST if query.starts_with("delete") => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            let keys = text.split("<Key>").skip(1);
            let mut deleted = String::new();
            for key in keys.filter_map(|rest| rest.split("</Key>").next()) {
                objects.remove(key);
                deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
            }
            xml(
                StatusCode::OK,
                format!("<DeleteResult>{deleted}</DeleteResult>"),
            )
        }
        _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn list(objects: &BTreeMap<String, Bytes>, query: &str) -> Response<Body> {
    let prefix = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("prefix="));
    let prefix = prefix.unwrap_or("").replace("%2F", "/");
    let found = objects.iter().filter(|(name, _)| name.starts_with(&prefix));
    let found: String = found
        .map(|(name, bytes)| {
            format!(
                "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>e</ETag><Size>{}</Size></Contents>",
                bytes.len()
            )
        })
        .collect();
    xml(
        StatusCode::OK,
        format!(
            "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated>{found}\
             </ListBucketResult>"
        ),
    )
}
