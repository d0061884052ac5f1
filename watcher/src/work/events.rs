//! Storing the Kubernetes events about a run.

use std::collections::BTreeMap;

use hindsight_proto::names::RecordName;
use hindsight_run::{Grouping, Lifetime, Upload, View, json};
use serde_json::Value;
use tracing::debug;

use super::{Interrupted, Task};
use crate::{
    cluster::{Address, ClusterError},
    plan::{self, EventRecord, Finished},
    refusals::Action,
};

/// `data.type` of a list of events.
const EVENT_LIST: &str = "results.tekton.dev/v1.EventList";
/// Most events that are kept of a run that lasts until it is deleted.
const MOST: usize = 200;

impl Task<'_> {
    /// Stores the events of the run and of its pods as they are now, unless that was done before:
    /// events are forgotten by the cluster, so that a later list may be a shorter one. Of a run that lasts until it is
    /// deleted those that are stored are kept, and newer ones added.
    pub(super) async fn store_events(&self, record: &RecordName) -> Result<(), Interrupted> {
        let (Some(at), Some(object)) = (self.address(), &self.object) else {
            return Ok(());
        };
        let sink = &self.shared.server.sink;
        if at.kind.lifetime() == Lifetime::UntilDeleted {
            return self.add_events(&at, object, record).await;
        }
        let may_be_there = self
            .shared
            .ledger()
            .get(&self.uid)
            .is_none_or(|entry| matches!(entry.remembered.finished, Finished::AtFirstSight(_)));
        let is_there = may_be_there
            && self
                .call_server(Action::Read, || sink.stored(record))
                .await?
                .is_some();
        if !is_there {
            let list = self.events(&at, &self.shared.view(object)).await?;
            let (upload, value) = (upload(record), list.to_string().into_bytes());
            self.call_server(Action::Store, || sink.store(&upload, &value))
                .await?;
            debug!(run.uid = %self.uid, record.name = %record, "events stored");
        }
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            let own = plan::events_record(record, self.uid.as_str());
            entry.remembered.events = match own.as_ref() == Some(record) {
                true => EventRecord::Own,
                false => EventRecord::Foreign,
            };
        }
        Ok(())
    }

    /// Adds the events that the cluster tells now to those that are stored.
    async fn add_events(
        &self,
        at: &Address,
        object: &Value,
        record: &RecordName,
    ) -> Result<(), Interrupted> {
        let sink = &self.shared.server.sink;
        let now = self.shared.clock.now();
        let told = self.events(at, &self.shared.view(object)).await?;
        let held = self.call_server(Action::Read, || sink.stored(record));
        let held = held.await?.and_then(|held| json::parse(&held).ok());
        let list = match &held {
            Some(held) => merged(held, told),
            None => told,
        };
        let is_news = match &held {
            Some(held) => list["items"] != held["items"],
            None => list["items"]
                .as_array()
                .is_some_and(|items| !items.is_empty()),
        };
        if is_news {
            let (upload, value) = (upload(record), list.to_string().into_bytes());
            self.call_server(Action::Store, || sink.store_again(&upload, &value))
                .await?;
            debug!(run.uid = %self.uid, record.name = %record, "events stored");
        }
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.events = EventRecord::Until(now);
        }
        Ok(())
    }

    async fn events(&self, at: &Address, run: &View<'_>) -> Result<Value, Interrupted> {
        let cluster = &self.shared.cluster.api;
        let of_run = format!("involvedObject.uid={}", self.uid);
        let (mut items, version) = cluster
            .events(&at.namespace, &of_run)
            .await
            .map_err(later)?;
        for pod in pods(run) {
            let of_pod = format!("involvedObject.kind=Pod,involvedObject.name={pod}");
            let (more, _) = cluster
                .events(&at.namespace, &of_pod)
                .await
                .map_err(later)?;
            items.extend(more);
        }
        let items: Vec<Value> = items.into_iter().map(cut).collect();
        Ok(serde_json::json!({"metadata": {"resourceVersion": version}, "items": items}))
    }
}

/// What a list of events is stored as.
fn upload(record: &RecordName) -> Upload {
    Upload {
        grouping: Grouping {
            record: record.clone(),
            is_root: false,
            notes: Vec::new(),
        },
        data_type: EVENT_LIST.to_owned(),
        annotations: BTreeMap::new(),
        summary: None,
    }
}

/// The events of `held`, as `told` has them if it does, and then those that only `told` has; the last [`MOST`] of them.
fn merged(held: &Value, mut told: Value) -> Value {
    let key = |event: &Value| {
        let metadata = &event["metadata"];
        (
            metadata["name"].to_string(),
            metadata["creationTimestamp"].to_string(),
        )
    };
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    let mut newer: BTreeMap<_, _> = items(&told)
        .into_iter()
        .map(|event| (key(&event), event))
        .collect();
    let kept = items(held);
    let mut all: Vec<Value> = kept
        .into_iter()
        .map(|event| newer.remove(&key(&event)).unwrap_or(event))
        .collect();
    let rest = items(&told).into_iter();
    all.extend(rest.filter(|event| newer.contains_key(&key(event))));
    let first = all.len().saturating_sub(MOST);
    told["items"] = all.split_off(first).into();
    told
}

/// A list that was overtaken while it was read is read again.
fn later(error: ClusterError) -> Interrupted {
    match error {
        ClusterError::Moved => Interrupted::passing("the list of events changed while it was read"),
        error => error.into(),
    }
}

/// The pods of a TaskRun: the last one, and those of attempts before it.
fn pods<'a>(run: &View<'a>) -> Vec<&'a str> {
    let Some(status) = run.object().get("status") else {
        return Vec::new();
    };
    let attempts = status.get("retriesStatus").and_then(Value::as_array);
    let mut pods: Vec<&str> = std::iter::once(status)
        .chain(attempts.into_iter().flatten())
        .filter_map(|status| status.get("podName")?.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    pods.sort_unstable();
    pods.dedup();
    pods
}

/// Of its metadata an event keeps what tells it from others, and when it came to be.
fn cut(mut event: Value) -> Value {
    if let Some(metadata) = event.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata
            .retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "creationTimestamp"));
    }
    if let Some(event) = event.as_object_mut() {
        event.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
    }
    event
}
