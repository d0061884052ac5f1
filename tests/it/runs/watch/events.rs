//! The changes of runs as server-sent events: over HTTP/1.1, from a place on, and until the caller is gone.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{PATIENCE, given, release};
use crate::support::{TestServer, server::on_each};

const TARGET: &str = "/apis/hindsight.dev/v1/parents/-/results/-/runs/changes";

/// An answer that is read event by event.
struct Events {
    body: Incoming,
    read: String,
}

/// An event: its id and its data.
type Event = (String, Value);

impl Events {
    async fn open(server: &TestServer, target: &str, last: Option<&str>) -> Self {
        let address = server.url.strip_prefix("http://").unwrap();
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(target).header("host", "localhost");
        request = request.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            body: answer.into_body(),
            read: String::new(),
        }
    }

    /// The next block of lines that has data.
    async fn next(&mut self) -> Event {
        loop {
            while let Some((block, rest)) = self.read.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.read = rest;
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                if let Some(data) = field("data: ") {
                    let data = serde_json::from_str(&data).unwrap();
                    return (field("id: ").unwrap_or_default(), data);
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("something comes in time").unwrap().unwrap();
            let data = frame.into_data().unwrap();
            self.read += std::str::from_utf8(&data).unwrap();
        }
    }
}

#[tokio::test]
async fn events_have_the_cursor_as_their_id_and_go_on_after_it() {
    on_each(|server| async move {
        let mut events = Events::open(&server, TARGET, None).await;
        let (start, first) = events.next().await;
        assert_eq!(first["kind"], "BOOKMARK");
        assert_eq!(first["cursor"], start.as_str());
        let hostile = "one\u{1b}]0;x\u{7}\n\ndata: {}\r\nid: 7\u{2028}\u{202e}";
        let mut object = release("one", 8, "a", "Failed");
        object["metadata"]["name"] = hostile.into();
        given(&server, &object).await;
        given(&server, &release("two", 9, "a", "Succeeded")).await;
        let (one, event) = events.next().await;
        assert_eq!(event["kind"], "CHANGED");
        assert_eq!(event["run"]["name"], hostile);
        let (two, event) = events.next().await;
        assert_eq!(event["run"]["name"], "two");
        drop(events);
        given(&server, &release("three", 10, "a", "Succeeded")).await;
        // The header wins, as browsers leave the address as it was.
        let target = format!("{TARGET}?cursor={start}");
        let mut events = Events::open(&server, &target, Some(&two)).await;
        assert_eq!(events.next().await.1["run"]["name"], "three");
        let target = format!("{TARGET}?cursor={one}&query=succeeded");
        let mut events = Events::open(&server, &target, None).await;
        assert_eq!(events.next().await.1["run"]["name"], "two");
        assert_eq!(events.next().await.1["run"]["name"], "three");
    })
    .await;
}
