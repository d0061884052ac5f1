//! Messages of `hindsight.v1.Runs/ListRuns`, to types and back.

use std::num::NonZeroU32;

use hindsight_proto::v1::{ListRunsRequest, ListRunsResponse, RunRow};
use hindsight_run::{Engine, keys};
use hindsight_storage::RecordColumns;
use jiff::Timestamp;
use tonic::metadata::MetadataMap;

use super::super::{ResultsServer, convert, selector::selector};
use crate::service::{Error, ListRequest, RunsAsk, page_size};
use hindsight_filter::condition::ObjectField;

/// Most keys of labels that one list answers with.
const MAX_LABEL_KEYS: usize = 20;
/// Most runs that are counted for one list.
const MAX_COUNT: u32 = 100_000;
/// Longest key of a label in Kubernetes, prefix and name.
const MAX_KEY_BYTES: usize = 317;

pub(super) async fn list_runs(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: ListRunsRequest,
) -> Result<ListRunsResponse, Error> {
    let (by, grant, of) = server.grant_list(&metadata, &request.parent).await?;
    let keys = label_keys("label_keys", request.label_keys)?;
    let ask = RunsAsk {
        list: ListRequest {
            selector: selector(&metadata, request.filter)?,
            order_by: request.order_by,
            size: page_size(request.page_size)?,
            token: request.page_token,
            payloads: false,
        },
        query: request.query,
        time_zone: request.time_zone,
        count_up_to: count_up_to(request.count_up_to)?,
    };
    let service = server.of_tier(&metadata)?;
    let found = service.list_runs(&by, &grant, of.id, ask).await?;
    let labels = match request.all_labels {
        true => Labels::All,
        false => Labels::Of(&keys),
    };
    let rows = found.page.items.into_iter();
    let rows = rows.map(|columns| run_row(server, columns, labels));
    Ok(ListRunsResponse {
        runs: rows.collect(),
        next_page_token: found.page.next,
        query_filter: found.query_filter,
        count: found.count.map(|count| i64::from(count.runs)),
        more: found.count.is_some_and(|count| count.more),
    })
}

/// Which labels of a run are shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Labels<'k> {
    All,
    /// Those of these keys.
    Of(&'k [String]),
}

/// What is shown of a run.
pub(super) fn run_row(
    server: &ResultsServer,
    columns: RecordColumns,
    labels: Labels<'_>,
) -> RunRow {
    let mut row = row(columns, labels);
    let name = server.service.cluster_name(&row.cluster);
    row.cluster_name = name.unwrap_or_default().to_owned();
    row
}

/// Up to how many runs are counted.
fn count_up_to(most: i32) -> Result<Option<NonZeroU32>, Error> {
    match u32::try_from(most) {
        Ok(most) if most <= MAX_COUNT => Ok(NonZeroU32::new(most)),
        _ => Err(Error::Invalid(format!(
            "count_up_to {most} is out of range: want 1 to {MAX_COUNT}, or 0 for none"
        ))),
    }
}

/// Keys of labels that the field `name` of a request has.
pub(super) fn label_keys(name: &str, keys: Vec<String>) -> Result<Vec<String>, Error> {
    if keys.len() > MAX_LABEL_KEYS {
        return Err(Error::Invalid(format!(
            "{name} has {} keys, at most {MAX_LABEL_KEYS} are possible",
            keys.len()
        )));
    }
    match keys.iter().find(|key| key.len() > MAX_KEY_BYTES) {
        None => Ok(keys),
        Some(long) => Err(Error::Invalid(format!(
            "{name}: a key has {} bytes, those of labels have {MAX_KEY_BYTES} at most",
            long.len()
        ))),
    }
}

fn row(columns: RecordColumns, labels: Labels<'_>) -> RunRow {
    let RecordColumns { record, object } = columns;
    let text = |field| object.text(field).unwrap_or_default().to_owned();
    let label = |key: &str| object.labels.get(key).cloned();
    let run = object.run;
    let data_type = record.data.map(|data| data.data_type).unwrap_or_default();
    let created = object.time(ObjectField::CreationTime);
    let reason = object.reason();
    let parent_run = [keys::PIPELINE_RUN, keys::RAY_ORIGIN]
        .into_iter()
        .find_map(label);
    let labels = match labels {
        Labels::All => object.labels.clone(),
        Labels::Of(keys) => keys
            .iter()
            .filter_map(|key| Some((key.clone(), label(key)?)))
            .collect(),
    };
    let time = |us: i64| Timestamp::from_microsecond(us).ok().map(convert::from_time);
    RunRow {
        engine: Engine::of_type(&data_type).name().to_owned(),
        kind: text(ObjectField::Kind),
        namespace: text(ObjectField::Namespace),
        name: text(ObjectField::Name),
        uid: text(ObjectField::Uid),
        pipeline: object.pipeline().unwrap_or_default().to_owned(),
        parent_run: parent_run.unwrap_or_default(),
        outcome: run.outcome.map(outcome).unwrap_or_default(),
        reason: reason.unwrap_or_default().to_owned(),
        start_time: run.began.and_then(time),
        end_time: run.ended.and_then(time),
        queue_seconds: created
            .zip(run.began)
            .and_then(|(created, began)| seconds(created.as_microsecond(), began)),
        duration_seconds: run
            .began
            .zip(run.ended)
            .and_then(|(began, ended)| seconds(began, ended)),
        labels,
        created: created.map(convert::from_time),
        create_time: Some(convert::from_time(record.create_time)),
        update_time: Some(convert::from_time(record.update_time)),
        cluster: record
            .name
            .result()
            .parent()
            .cluster()
            .unwrap_or_default()
            .to_owned(),
        cluster_name: String::new(),
        message: object.message.unwrap_or_default(),
        signature: object.signature.unwrap_or_default(),
        attempt: object
            .attempt
            .and_then(|attempt| i32::try_from(attempt).ok()),
        record: record.name.to_string(),
        r#type: data_type,
    }
}

/// The name of an outcome's number, or the number if it has none.
fn outcome(number: i64) -> String {
    use hindsight_proto::v1alpha2::record_summary::Status;
    let status = i32::try_from(number).map(Status::try_from);
    match status {
        Ok(Ok(status)) => status.as_str_name().to_owned(),
        _ => number.to_string(),
    }
}

/// Seconds between two times in microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of 285 years are exact"
)]
fn seconds(from: i64, to: i64) -> Option<f64> {
    Some(to.checked_sub(from)? as f64 / 1e6)
}
