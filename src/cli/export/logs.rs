//! The logs of a run as lines of an export.

use std::io::Write;

use hindsight_client::Client;
use hindsight_logs::ends;
use hindsight_proto::v1::{
    DescribeLogRequest, LogContainer, LogLines, ReadLogRequest, ReadLogResponse,
};
use tonic::{Code, Status, Streaming};

use crate::cli::{
    connect::Connect,
    failure::Failure,
    log_line::{End, LogLine},
    log_message,
};
use hindsight_filter::model::{LogName, RecordName};

/// Why logs were not written.
pub(super) enum Ended {
    Refused(Status),
    Failed(Failure),
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Ended {
    pub(super) fn failure(self, connect: &Connect) -> Failure {
        match self {
            Self::Refused(status) => connect.failure(&status),
            Self::Failed(failure) => failure,
        }
    }
}

/// Writes every log of a run, and says how many there were. What is appended meanwhile is left out.
pub(super) async fn write(
    client: &Client,
    record: &str,
    out: &mut impl Write,
) -> Result<usize, Ended> {
    let record = record.parse::<RecordName>();
    let record = record.map_err(|error| Failure::other(error.to_string()))?;
    let name = LogName::from(record).to_string();
    let request = DescribeLogRequest {
        name: name.clone(),
        only_stored: true,
    };
    let containers = match client.logs().describe_log(request).await {
        Ok(reply) => reply.into_inner().containers,
        Err(status) if status.code() == Code::NotFound => return Ok(0),
        Err(status) => return Err(status.into()),
    };
    let mut written = 0;
    for log in &containers {
        let opened = match log.lines {
            0 => None,
            _ => match client.logs().read_log(request_of(&name, log)).await {
                Ok(opened) => Some(opened.into_inner()),
                // It was deleted meanwhile.
                Err(status) if status.code() == Code::NotFound => continue,
                Err(status) => return Err(status.into()),
            },
        };
        let source = log.source.clone().filter(|it| !it.container.is_empty());
        LogLine::Begin(name.clone(), source).write(out)?;
        if let Some(opened) = opened {
            lines(opened, log, out).await?;
        }
        LogLine::End(End::of(log)).write(out)?;
        written += 1;
    }
    Ok(written)
}

fn request_of(name: &str, log: &LogContainer) -> ReadLogRequest {
    let source = log.source.clone().unwrap_or_default();
    let request = ReadLogRequest {
        name: name.to_owned(),
        ..ReadLogRequest::default()
    };
    match source.container.is_empty() {
        true => request,
        false => ReadLogRequest {
            pod: source.pod,
            containers: vec![source.container],
            restart: Some(source.restart),
            limit: log.lines,
            ..request
        },
    }
}

/// Writes the lines of one source, up to where it was when it was described.
async fn lines(
    mut opened: Streaming<ReadLogResponse>,
    log: &LogContainer,
    out: &mut impl Write,
) -> Result<(), Ended> {
    let mut next = 0;
    while let Some(ReadLogResponse { source, lines }) = opened.message().await? {
        // An upload is read with all that there is.
        if source == log.source {
            next = write_lines(lines.unwrap_or_default(), log.lines, out)?;
        }
    }
    match next == log.lines {
        true => Ok(()),
        false => Err(Failure::other(format!(
            "`{}` has {} lines, of which {next} came; was it deleted or replaced?",
            log.name, log.lines
        ))
        .into()),
    }
}

/// Writes lines before a number, and says which one follows.
fn write_lines(given: LogLines, end: i64, out: &mut impl Write) -> Result<i64, Failure> {
    let lines = log_message::lines(given)?;
    let mut from = 0;
    let mut next = lines.first;
    for ((until, time_us), number) in ends(&lines.text).zip(&lines.times).zip(lines.first..end) {
        let line = LogLine::Line {
            number,
            time_us: *time_us,
            text: lines.text[from..until].to_vec(),
            is_hole: lines.holes.binary_search(&number).is_ok(),
        };
        line.write(out)?;
        (from, next) = (until, number + 1);
    }
    Ok(next)
}
