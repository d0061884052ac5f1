//! Logs: appended, read, followed, searched; as clients of Tekton Results ask for them; and on the command line.

mod append;
mod collected;
mod command;
mod faults;
mod homes;
mod kills;
mod list;
mod outside;
mod quota;
mod search;
mod texts;

use hindsight_client::{Client, Logs, Options};
use hindsight_logs::ends;
use hindsight_proto::{
    v1::{
        AppendLogRequest, AppendLogResponse, LogLines, LogSource, ReadLogRequest, ReadLogResponse,
    },
    v1alpha2 as pb,
};
use tonic::{Status, transport::Channel};

use crate::support::server::TestServer;

/// The beginning of the times of lines, in microseconds.
const BEGAN: i64 = 1_772_445_600_000_000;

fn logs(server: &TestServer) -> Logs {
    server.client().logs()
}

/// The same for the caller with a token.
pub(crate) fn logs_as(server: &TestServer, token: &str) -> Logs {
    let options = Options {
        token: Some(token.to_owned()),
        ..Options::new(&server.url)
    };
    Client::new(&options).unwrap().logs()
}

/// The service of Tekton Results.
async fn tekton(server: &TestServer) -> pb::logs_client::LogsClient<Channel> {
    let endpoint = Channel::from_shared(server.url.clone()).unwrap();
    pb::logs_client::LogsClient::new(endpoint.connect().await.unwrap())
}

fn source(container: &str) -> LogSource {
    LogSource {
        pod: "pod".to_owned(),
        container: container.to_owned(),
        restart: 0,
    }
}

/// Lines from a number on, each a second after the one before.
fn lines(first: i64, text: &[u8]) -> LogLines {
    let count = ends(text).count();
    let time = |at| match at {
        0 => BEGAN + first * 1_000_000,
        _ => 1_000_000,
    };
    LogLines {
        first_line: first,
        text: text.to_vec(),
        times: (0..count).map(time).collect(),
        holes: Vec::new(),
    }
}

pub(crate) fn message(name: &str, container: &str, first: i64, text: &[u8]) -> AppendLogRequest {
    AppendLogRequest {
        name: name.to_owned(),
        source: Some(source(container)),
        lines: Some(lines(first, text)),
        seal: false,
    }
}

pub(crate) fn seal(name: &str, container: &str) -> AppendLogRequest {
    AppendLogRequest {
        lines: None,
        seal: true,
        ..message(name, container, 0, b"")
    }
}

pub(crate) async fn append(
    server: &TestServer,
    messages: Vec<AppendLogRequest>,
) -> Result<AppendLogResponse, Status> {
    let sent = tokio_stream::iter(messages);
    Ok(logs(server).append_log(sent).await?.into_inner())
}

/// What a request reads: the text, and the numbers of its lines.
async fn read(server: &TestServer, request: ReadLogRequest) -> Result<(Vec<u8>, Vec<i64>), Status> {
    let mut stream = logs(server).read_log(request).await?.into_inner();
    let (mut text, mut numbers) = (Vec::new(), Vec::new());
    while let Some(ReadLogResponse { lines, .. }) = stream.message().await? {
        let lines = lines.unwrap();
        text.extend_from_slice(&lines.text);
        numbers.extend((lines.first_line..).take(lines.times.len()));
    }
    Ok((text, numbers))
}

pub(crate) fn whole(name: &str) -> ReadLogRequest {
    ReadLogRequest {
        name: name.to_owned(),
        ..ReadLogRequest::default()
    }
}

/// A log as `GetLog` gives it, and the sizes of its parts.
pub(crate) async fn get_log(
    server: &TestServer,
    name: &str,
) -> Result<(Vec<u8>, Vec<usize>), Status> {
    let request = pb::GetLogRequest {
        name: name.to_owned(),
    };
    let mut parts = tekton(server).await.get_log(request).await?.into_inner();
    let (mut text, mut sizes) = (Vec::new(), Vec::new());
    while let Some(part) = parts.message().await? {
        sizes.push(part.data.len());
        text.extend_from_slice(&part.data);
    }
    Ok((text, sizes))
}

/// Uploads a log in parts.
pub(crate) async fn update_log(
    server: &TestServer,
    parts: &[(&str, &[u8])],
) -> Result<pb::LogSummary, Status> {
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, data)| pb::Log {
            name: (*name).to_owned(),
            data: data.to_vec().into(),
        })
        .collect();
    let sent = tokio_stream::iter(parts);
    let mut client = tekton(server).await;
    Ok(client.update_log(sent).await?.into_inner())
}
