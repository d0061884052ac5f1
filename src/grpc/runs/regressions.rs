//! Messages of `hindsight.v1.Runs/ListRegressions`, to types and back.

use hindsight_analysis::regression::{Kind, Quantiles};
use hindsight_proto::v1 as pb;
use tonic::metadata::MetadataMap;

use super::{
    super::{ResultsServer, convert, selector::selector},
    failure::point,
};
use crate::service::{Error, HistoryAsk, Regression, RunSeries};

pub(super) async fn list_regressions(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: pb::ListRegressionsRequest,
) -> Result<pb::ListRegressionsResponse, Error> {
    let (by, grant, of) = server.grant_list(&metadata, &request.parent).await?;
    let ask = HistoryAsk {
        selector: selector(&metadata, request.filter)?,
        query: request.query,
        time_zone: request.time_zone,
        days: request.days,
        parts: request.parts,
    };
    let found = server
        .service
        .list_regressions(&by, &grant, of.id, ask, request.limit);
    let found = found.await?;
    Ok(pb::ListRegressionsResponse {
        regressions: found.found.into_iter().map(regression).collect(),
        regressions_left_out: count(found.left_out),
        since: Some(convert::from_time(found.since)),
        runs_read: count(found.runs_read),
        incomplete: !found.is_whole,
        query_filter: found.query_filter,
    })
}

fn regression(it: Regression) -> pb::Regression {
    let (kind, before, after) = match it.kind {
        Kind::Tail => (pb::regression::Kind::Tail, it.before.p95, it.after.p95),
        _ => (pb::regression::Kind::Slower, it.before.p50, it.after.p50),
    };
    pb::Regression {
        series: Some(series(it.series)),
        kind: kind.into(),
        began: Some(point(it.began)),
        ended: it.ended.map(point),
        before: Some(durations(it.before)),
        after: Some(durations(it.after)),
        ratio: seconds(after) / seconds(before.max(1)),
        runs_since: count(it.runs),
    }
}

pub(super) fn series(series: RunSeries) -> pb::RunSeries {
    pb::RunSeries {
        parent: series.parent,
        namespace: series.namespace,
        kind: series.kind,
        pipeline: series.pipeline,
        task: series.task,
    }
}

fn durations(of: Quantiles) -> pb::RunDurations {
    pb::RunDurations {
        p50_seconds: seconds(of.p50),
        p95_seconds: seconds(of.p95),
    }
}

pub(super) fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of 285,000 years are exact"
)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}
