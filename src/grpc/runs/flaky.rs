//! Messages of `hindsight.v1.Runs/ListFlaky`, to types and back.

use hindsight_proto::v1 as pb;
use tonic::metadata::MetadataMap;

use super::{
    super::{ResultsServer, convert, selector::selector},
    failure::point,
    list::label_keys,
    regressions::{count, series},
};
use crate::service::{Error, FlakyPair, FlakyPipeline, HistoryAsk};

pub(super) async fn list_flaky(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: pb::ListFlakyRequest,
) -> Result<pb::ListFlakyResponse, Error> {
    let (by, grant, of) = server.grant_list(&metadata, &request.parent).await?;
    let versions = label_keys("version_labels", request.version_labels)?;
    let ask = HistoryAsk {
        selector: selector(&metadata, request.filter)?,
        query: request.query,
        time_zone: request.time_zone,
        days: request.days,
        parts: request.parts,
    };
    let found = server
        .service
        .list_flaky(&by, &grant, of.id, ask, versions, request.limit);
    let found = found.await?;
    Ok(pb::ListFlakyResponse {
        pipelines: found.found.into_iter().map(pipeline).collect(),
        pipelines_left_out: count(found.left_out),
        since: Some(convert::from_time(found.since)),
        runs_read: count(found.runs_read),
        incomplete: !found.is_whole,
        query_filter: found.query_filter,
    })
}

fn pipeline(it: FlakyPipeline) -> pb::FlakyPipeline {
    pb::FlakyPipeline {
        series: Some(series(it.series)),
        flaky: it.is_flaky,
        runs: count(it.runs),
        episodes: count(it.episodes),
        pairs: it.pairs.into_iter().map(pair).collect(),
    }
}

fn pair(pair: FlakyPair) -> pb::FlakyPair {
    pb::FlakyPair {
        version: pair.version,
        failed: pair.failed.map(point),
        succeeded: Some(point(pair.succeeded)),
    }
}
