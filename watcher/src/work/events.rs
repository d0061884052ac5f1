//! Storing the Kubernetes events about a run.

use hindsight_proto::names::RecordName;
use hindsight_run::{Grouping, Upload, View};
use serde_json::{Value, json};
use tracing::debug;

use super::{Interrupted, Task};
use crate::{
    cluster::{Address, ClusterError},
    plan::{self, EventRecord, Finished},
    refusals::Action,
};

/// `data.type` of a list of events.
const EVENT_LIST: &str = "results.tekton.dev/v1.EventList";

impl Task<'_> {
    /// Stores the events of the run and of its pods as they are now, unless that was done before:
    /// events are forgotten by the cluster, so that a later list may be a shorter one.
    pub(super) async fn store_events(&self, record: &RecordName) -> Result<(), Interrupted> {
        let (Some(at), Some(object)) = (self.address(), &self.object) else {
            return Ok(());
        };
        let sink = &self.shared.server.sink;
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
            let value = list.to_string().into_bytes();
            let upload = Upload {
                grouping: Grouping {
                    record: record.clone(),
                    is_root: false,
                    notes: Vec::new(),
                },
                data_type: EVENT_LIST.to_owned(),
                annotations: std::collections::BTreeMap::new(),
                summary: None,
            };
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
        Ok(json!({"metadata": {"resourceVersion": version}, "items": items}))
    }
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
