//! A Loki in this process: `query_range` over lines that it was given, or whatever else is asked of it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, Response, StatusCode, request::Parts},
};
use futures::{StreamExt as _, stream};
use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

/// What it does with requests.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers with the lines of the run that the query names.
    Serve,
    Refuse(u16, &'static str),
    /// Takes the request and never answers.
    Hang,
    /// Begins an answer and closes the connection.
    Truncate,
}

/// A request that was read.
#[derive(Debug, Clone)]
pub struct Got {
    pub headers: HeaderMap,
    pub query: String,
    pub limit: usize,
    pub path: String,
}

/// A line: its time in nanoseconds, and the container.
pub type Line = (i64, &'static str, String);

#[derive(Debug, Default)]
struct Shared {
    act: Option<Act>,
    got: Vec<Got>,
    /// By a text that has to be in the query.
    runs: Vec<(String, Vec<Line>)>,
}

#[derive(Debug)]
pub struct Loki {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl Drop for Loki {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Loki {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/proxy", listener.local_addr().unwrap());
        let shared = Arc::<Mutex<Shared>>::default();
        let mine = Arc::clone(&shared);
        let router = Router::new().fallback(move |request: Request<Body>| {
            let mine = Arc::clone(&mine);
            let (head, _) = request.into_parts();
            async move { answer(&mine, &head).await }
        });
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, task }
    }

    pub fn does(&self, act: Act) {
        self.shared.lock().unwrap().act = Some(act);
    }

    /// Gives it the lines of queries with a text in them.
    pub fn has(&self, query: &str, lines: Vec<Line>) {
        let mut shared = self.shared.lock().unwrap();
        shared.runs.push((query.to_owned(), lines));
    }

    pub fn got(&self) -> Vec<Got> {
        self.shared.lock().unwrap().got.clone()
    }
}

async fn answer(shared: &Mutex<Shared>, head: &Parts) -> Response<Body> {
    let query = head.uri.query().unwrap_or_default();
    let fields: HashMap<&str, String> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key, percent_decode_str(value).decode_utf8().unwrap().into()))
        .collect();
    let number = |key: &str| fields[key].parse::<i64>().unwrap();
    let got = Got {
        headers: head.headers.clone(),
        query: fields["query"].clone(),
        limit: usize::try_from(number("limit")).unwrap(),
        path: head.uri.path().to_owned(),
    };
    assert_eq!(fields["direction"], "forward");
    let (act, lines) = {
        let mut shared = shared.lock().unwrap();
        shared.got.push(got.clone());
        let runs = shared.runs.iter();
        let found = runs.filter(|(text, _)| got.query.contains(text.as_str()));
        let lines: Vec<Line> = found.flat_map(|(_, lines)| lines).cloned().collect();
        (shared.act.clone().unwrap_or(Act::Serve), lines)
    };
    let status = |status: u16, text: Body| {
        let status = StatusCode::from_u16(status).unwrap();
        Response::builder().status(status).body(text).unwrap()
    };
    match act {
        Act::Hang => std::future::pending().await,
        Act::Refuse(code, text) => status(code, text.into()),
        Act::Truncate => {
            let first = r#"{"status": "success", "data": {"result": [{"values": [["1", "a"#;
            // The first part is sent before the connection breaks.
            let broken = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Err(std::io::Error::other("it resets"))
            };
            let parts = stream::iter([Ok(first)]).chain(stream::once(broken));
            status(200, Body::from_stream(parts))
        }
        Act::Serve => {
            let window = number("start")..number("end");
            let text = served(lines, &window, got.limit);
            status(200, text.into())
        }
    }
}

/// The first lines of a window, in streams that are in no order.
fn served(mut lines: Vec<Line>, window: &std::ops::Range<i64>, limit: usize) -> String {
    lines.retain(|(time, ..)| window.contains(time));
    lines.sort_by_key(|(time, ..)| *time);
    lines.truncate(limit);
    let mut streams = BTreeMap::<&str, Vec<_>>::new();
    for (time, container, line) in lines {
        let values = streams.entry(container).or_default();
        values.push(json!([time.to_string(), line, {"trace": "x"}]));
    }
    let streams = streams.into_iter().rev().map(|(container, values)| {
        let stream = json!({"container": container, "pod": "pod", "uid": "u"});
        json!({"stream": stream, "values": values})
    });
    let result: Vec<_> = streams.collect();
    json!({"status": "success", "data": {"resultType": "streams", "result": result}}).to_string()
}
