//! Changes of runs in the vocabulary of CDEvents 0.5.1, as CloudEvents 1.0.
//!
//! The id of an event follows from the record and from what is told of it alone, so that it is the
//! same whenever and by whichever server the event is sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use hindsight_filter::columns::ObjectColumns;
use hindsight_filter::condition::ObjectField;
use hindsight_run::{Outcome, keys};
use hindsight_storage::{FeedPosition, RecordColumns};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::receivers::Moment;

/// The version of CDEvents that events follow.
const CDEVENTS: &str = "0.5.1";
/// The version of the types of events in it.
const VERSION: &str = "0.3.0";
/// The type of the event that says that changes were removed before their events were sent.
const INTERRUPTED: &str = "dev.cdeventsx.hindsight-feed.interrupted.0.1.0";
/// Longest text of a member, in bytes.
const TEXT: usize = 1 << 10;
/// Most bytes of labels.
const LABELS: usize = 16 << 10;
/// What a header of the HTTP binding of CloudEvents does not hold as it is.
const HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// The label that has the uid of the PipelineRun of a TaskRun.
const PIPELINE_RUN_UID: &str = "tekton.dev/pipelineRunUID";

/// An event as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) id: String,
    /// The headers of the binary mode, by name.
    pub(super) attributes: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}

/// Where events come from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The attribute `source`.
    pub(super) source: String,
    /// The address of the web UI.
    pub(super) pages: Option<String>,
}

/// What all events have.
struct Head {
    id: String,
    kind: String,
    subject: String,
    time: Timestamp,
}

impl Origin {
    /// What is to be told of a run in this state, in order: that it started, and that it finished. A run
    /// is told to have started also where no state of that time was stored.
    pub(super) fn events(&self, columns: &RecordColumns, wanted: &[Moment]) -> Vec<Event> {
        let RecordColumns { record, object } = columns;
        let run = object.run;
        let mut events = Vec::new();
        if let Some(began) = run.began
            && wanted.contains(&Moment::Started)
        {
            let id = format!("{}.started.{began}", record.uid);
            events.push(self.of_run(columns, Moment::Started, id, began));
        }
        let outcome = run.outcome.unwrap_or_default();
        let is_over = run.ended.is_some() || outcome > Outcome::Unknown as i64;
        if is_over && wanted.contains(&Moment::Finished) {
            let ended = run.ended.unwrap_or_default();
            let id = format!("{}.finished.{outcome}.{ended}", record.uid);
            let time = record.update_time.as_microsecond();
            let time = run.ended.unwrap_or(time);
            events.push(self.of_run(columns, Moment::Finished, id, time));
        }
        events
    }

    fn of_run(&self, columns: &RecordColumns, moment: Moment, id: String, at: i64) -> Event {
        let RecordColumns { record, object } = columns;
        let kind = object.text(ObjectField::Kind).unwrap_or_default();
        let is_pipeline = kind.ends_with("PipelineRun") || kind.ends_with("Workflow");
        let subject = match is_pipeline {
            true => "pipelinerun",
            false => "taskrun",
        };
        let predicate = match moment {
            Moment::Started => "started",
            Moment::Finished => "finished",
        };
        let uid = object.text(ObjectField::Uid).filter(|uid| !uid.is_empty());
        let head = Head {
            id,
            kind: format!("dev.cdevents.{subject}.{predicate}.{VERSION}"),
            subject: cut(uid.unwrap_or_else(|| record.name.id())).to_owned(),
            time: Timestamp::from_microsecond(at).unwrap_or(record.update_time),
        };
        let mut content = Map::new();
        let mut insert = |key: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                content.insert(key.to_owned(), json!(cut(value)));
            }
        };
        match is_pipeline {
            true => insert("pipelineName", object.pipeline()),
            false => insert("taskName", object.text(ObjectField::TaskRef)),
        }
        let page = self.pages.as_ref();
        let page = page.map(|pages| format!("{pages}/ui/run/{}", record.name));
        if let Some(page) = page.filter(|page| page.len() <= TEXT) {
            insert("uri", Some(&page));
        }
        if moment == Moment::Finished {
            insert("outcome", Some(outcome(object)));
            if object.run.outcome != Some(Outcome::Success as i64) {
                insert(
                    "errors",
                    object.message.as_deref().or_else(|| object.reason()),
                );
            }
        }
        let parent = object.labels.get(PIPELINE_RUN_UID);
        if let Some(parent) = parent.filter(|uid| !is_pipeline && !uid.is_empty()) {
            content.insert("pipelineRun".to_owned(), json!({"id": cut(parent)}));
        }
        self.event(head, content, custom(columns, moment))
    }

    /// The event that tells a receiver that changes after a place were removed before they were sent.
    pub(super) fn interrupted(&self, receiver: &str, place: FeedPosition, now: Timestamp) -> Event {
        let (transaction, row) = (place.transaction, place.row);
        let head = Head {
            id: format!("{receiver}.interrupted.{transaction}.{row}"),
            kind: INTERRUPTED.to_owned(),
            subject: receiver.to_owned(),
            time: now,
        };
        let custom = json!({
            "message": "changes of runs were removed before their events were sent; list runs to \
                        know their states",
        });
        self.event(head, Map::new(), custom)
    }

    fn event(&self, head: Head, content: Map<String, Value>, custom: Value) -> Event {
        let time = head.time.to_string();
        let body = json!({
            "context": {
                "specversion": CDEVENTS,
                "id": head.id,
                "source": self.source,
                "type": head.kind,
                "timestamp": time,
            },
            "subject": {"id": head.subject, "content": content},
            "customData": custom,
            "customDataContentType": "application/json",
        });
        let header = |text: &str| utf8_percent_encode(text, HEADER).to_string();
        Event {
            attributes: vec![
                ("ce-specversion", "1.0".to_owned()),
                ("ce-id", header(&head.id)),
                ("ce-source", header(&self.source)),
                ("ce-type", header(&head.kind)),
                ("ce-subject", header(&head.subject)),
                ("ce-time", header(&time)),
            ],
            body: body.to_string().into(),
            id: head.id,
        }
    }
}

/// What CDEvents have no member for. That a run started says nothing of its end.
fn custom(columns: &RecordColumns, moment: Moment) -> Value {
    let RecordColumns { record, object } = columns;
    let text = |field| object.text(field).map(|text| json!(cut(text)));
    let time = |us: Option<i64>| {
        let time = Timestamp::from_microsecond(us?).ok()?;
        Some(json!(time.to_string()))
    };
    let data_type = record.data.as_ref().map(|data| data.data_type.as_str());
    let parent = record.name.result().parent();
    let mut members = vec![
        ("record", Some(json!(record.name.to_string()))),
        ("type", data_type.map(|name| json!(cut(name)))),
        ("kind", text(ObjectField::Kind)),
        ("namespace", text(ObjectField::Namespace)),
        ("name", text(ObjectField::Name)),
        (
            "cluster",
            parent.cluster().map(|cluster| json!(cut(cluster))),
        ),
        ("pipeline", object.pipeline().map(|name| json!(cut(name)))),
        (
            "parentRun",
            object
                .labels
                .get(keys::PIPELINE_RUN)
                .map(|name| json!(cut(name))),
        ),
        ("startTime", time(object.run.began)),
    ];
    if moment == Moment::Finished {
        members.extend([
            ("endTime", time(object.run.ended)),
            ("outcome", Some(json!(status(object)))),
            ("reason", object.reason().map(|reason| json!(cut(reason)))),
            ("attempt", object.attempt.map(|attempt| json!(attempt))),
        ]);
    }
    members.push(("labels", Some(json!(labels(object)))));
    let members = members.into_iter();
    members
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

/// The labels, without those that are too many.
fn labels(object: &ObjectColumns) -> BTreeMap<&str, &str> {
    let mut left = LABELS;
    let fitting = object.labels.iter().map_while(|(key, value)| {
        left = left.checked_sub(key.len() + value.len())?;
        Some((key.as_str(), value.as_str()))
    });
    fitting.collect()
}

/// How a run ended, in the words of CDEvents.
fn outcome(object: &ObjectColumns) -> &'static str {
    match status(object) {
        "SUCCESS" => "success",
        "CANCELLED" => "cancel",
        "FAILURE" | "TIMEOUT" => "failure",
        _ => "error",
    }
}

/// How a run ended, as lists of runs say it.
fn status(object: &ObjectColumns) -> &'static str {
    let of = [
        (Outcome::Success, "SUCCESS"),
        (Outcome::Failure, "FAILURE"),
        (Outcome::Timeout, "TIMEOUT"),
        (Outcome::Cancelled, "CANCELLED"),
    ];
    let found = of
        .iter()
        .find(|(outcome, _)| object.run.outcome == Some(*outcome as i64));
    found.map_or("UNKNOWN", |(_, name)| name)
}

/// The beginning of a text, if it is too long.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT)]
}

#[cfg(test)]
mod tests;
