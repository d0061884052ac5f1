//! Messages of `hindsight.v1.Runs/ExplainFailure`, to types and back.

use hindsight_proto::v1 as pb;
use tonic::metadata::MetadataMap;

use super::{
    super::ResultsServer, super::call::credentials, super::convert, diff::difference, tree,
};
use crate::service::{Error, Failure, FailureLog, FailureLogAsk, FailureLogLine, RunPoint};
use hindsight_access::auth::{Error as AuthError, Guarded, Verb};
use hindsight_filter::model::{ParentPattern, RecordName, Resource};

pub(super) async fn explain_failure(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: pb::ExplainFailureRequest,
) -> Result<pb::FailureExplanation, Error> {
    let name: RecordName = convert::name("name", &request.name)?;
    let parent = ParentPattern::Exact(name.result().parent().clone());
    let (by, grant) = server
        .grant(&metadata, Verb::List, Resource::Records, parent)
        .await?;
    let parent = ParentPattern::Exact(name.result().parent().clone());
    let logs = server
        .allow(
            &credentials(metadata.as_ref()),
            Verb::Get,
            Guarded::Logs,
            parent,
        )
        .await;
    let logs = match logs {
        Ok(grant) => Some(grant),
        Err(AuthError::Denied { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let log = logs.as_ref().map(|grant| FailureLogAsk {
        grant,
        lines: request.log_lines,
    });
    let why = server
        .service
        .explain_failure(&by, &grant, &name, request.limit, log);
    Ok(reply(why.await?))
}

fn reply(why: Failure) -> pb::FailureExplanation {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let step = why.leaf.failed_step().cloned();
    let told = pb::FailureExplanation {
        run: Some(tree::node(why.run)),
        leaf: Some(tree::node(why.leaf)),
        path: why.path,
        step: step.map(tree::step),
        signature: why.signature.map(|signature| pb::FailureSignature {
            key: signature.key.to_string(),
            template: signature.template,
        }),
        notes: why.notes,
        log: why.log.map(log),
        ..pb::FailureExplanation::default()
    };
    let Some(since) = why.since else {
        return told;
    };
    pb::FailureExplanation {
        series: since.series,
        last_success: since.last_success.map(point),
        first_failure: since.first_failure.map(point),
        runs_since: count(since.runs),
        failed_since: count(since.failed),
        changes_left_out: count(since.changes.left_out as u64),
        changes: since
            .changes
            .differences
            .into_iter()
            .map(difference)
            .collect(),
        alike: since.alike.map(|alike| pb::FailedAlike {
            count: count(alike.count),
            of: count(alike.of),
            records: alike.records.iter().map(ToString::to_string).collect(),
        }),
        ..told
    }
}

fn log(log: FailureLog) -> pb::FailureLog {
    let source = &log.source;
    pb::FailureLog {
        name: log.name.to_string(),
        source: (!source.container.is_empty()).then(|| pb::LogSource {
            pod: source.pod.clone(),
            container: source.container.clone(),
            restart: source.restart,
        }),
        lines: log.lines,
        tail: log.tail.into_iter().map(line).collect(),
    }
}

fn line(line: FailureLogLine) -> pb::FailureLogLine {
    let time = jiff::Timestamp::from_microsecond(line.time_us);
    pb::FailureLogLine {
        line: line.line,
        time: time.ok().map(convert::from_time),
        text: line.text,
    }
}

pub(super) fn point(point: RunPoint) -> pb::RunPoint {
    pb::RunPoint {
        record: point.record.to_string(),
        name: point.name,
        start_time: point.started.map(convert::from_time),
    }
}
