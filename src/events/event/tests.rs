//! What events say, and that their ids depend on nothing else.

use hindsight_filter::model::{Etag, Payload, Record};

use super::*;

const BOTH: [Moment; 2] = [Moment::Started, Moment::Finished];

fn origin(pages: Option<&str>) -> Origin {
    Origin {
        source: "/hindsight".to_owned(),
        pages: pages.map(str::to_owned),
    }
}

fn columns(data_type: &str, object: &Value) -> RecordColumns {
    let at = "2026-03-01T10:09:00Z".parse().unwrap();
    RecordColumns::of(Record {
        name: "ci/results/r/records/one".parse().unwrap(),
        uid: "record-uid".to_owned(),
        etag: Etag::new("record-uid", at),
        create_time: at,
        update_time: at,
        data: Some(Payload::new(
            data_type.to_owned(),
            serde_json::to_vec(object).unwrap().into(),
        )),
    })
}

fn task(status: &Value) -> RecordColumns {
    let object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "build-1", "namespace": "ci", "uid": "task-uid",
            "labels": {"tekton.dev/pipelineRun": "build", "tekton.dev/pipelineRunUID": "run-uid",
                "team": "blü \"e\""}},
        "spec": {"taskRef": {"name": "compile"}},
        "status": status,
    });
    columns("tekton.dev/v1.TaskRun", &object)
}

fn body(event: &Event) -> Value {
    serde_json::from_slice(&event.body).unwrap()
}

fn header<'e>(event: &'e Event, name: &str) -> &'e str {
    let mut all = event.attributes.iter();
    let (_, value) = all.find(|(known, _)| *known == name).unwrap();
    value
}

#[test]
fn a_run_that_failed_started_and_finished() {
    let failed = task(&json!({
        "startTime": "2026-03-01T10:00:05Z", "completionTime": "2026-03-01T10:03:05Z",
        "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed",
            "message": "step run exited with code 2"}],
    }));
    let events = origin(Some("https://h.example")).events(&failed, &BOTH);
    let [started, finished] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(started.id, "record-uid.started.1772359205000000");
    assert_eq!(finished.id, "record-uid.finished.2.1772359385000000");
    let said = body(finished);
    assert_eq!(
        said["context"],
        json!({"specversion": "0.5.1", "id": finished.id, "source": "/hindsight",
            "type": "dev.cdevents.taskrun.finished.0.3.0", "timestamp": "2026-03-01T10:03:05Z"})
    );
    assert_eq!(
        said["subject"],
        json!({"id": "task-uid", "content": {
            "taskName": "compile",
            "uri": "https://h.example/ui/run/ci/results/r/records/one",
            "outcome": "failure",
            "errors": "step run exited with code 2",
            "pipelineRun": {"id": "run-uid"},
        }})
    );
    assert_eq!(
        said["customData"],
        json!({
            "record": "ci/results/r/records/one", "type": "tekton.dev/v1.TaskRun",
            "kind": "TaskRun", "namespace": "ci", "name": "build-1", "parentRun": "build",
            "startTime": "2026-03-01T10:00:05Z", "endTime": "2026-03-01T10:03:05Z",
            "outcome": "FAILURE", "reason": "Failed",
            "labels": {"team": "blü \"e\"", "tekton.dev/pipelineRun": "build",
                "tekton.dev/pipelineRunUID": "run-uid"},
        })
    );
    assert_eq!(header(finished, "ce-id"), finished.id);
    assert_eq!(
        header(finished, "ce-type"),
        "dev.cdevents.taskrun.finished.0.3.0"
    );
    assert_eq!(header(finished, "ce-time"), "2026-03-01T10:03:05Z");
    let said = body(started);
    assert_eq!(
        said["context"]["type"],
        "dev.cdevents.taskrun.started.0.3.0"
    );
    assert_eq!(said["subject"]["content"]["outcome"], Value::Null);
    assert_eq!(said["customData"]["outcome"], Value::Null);
    let finished = origin(None).events(&failed, &[Moment::Finished]);
    assert_eq!(finished.len(), 1);
    assert_eq!(body(&finished[0])["subject"]["content"]["uri"], Value::Null);
}

#[test]
fn a_run_has_started_once_it_began() {
    let of = |status: &Value| {
        let events = origin(None).events(&task(status), &BOTH);
        let ids = events.into_iter().map(|event| event.id);
        ids.collect::<Vec<_>>()
    };
    assert!(of(&json!({})).is_empty());
    let running = json!({"startTime": "2026-03-01T10:00:05Z",
        "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]});
    assert_eq!(of(&running), ["record-uid.started.1772359205000000"]);
    let ended = |status: &str| {
        of(
            &json!({"startTime": "2026-03-01T10:00:05Z", "completionTime": "2026-03-01T10:03:05Z",
            "conditions": [{"type": "Succeeded", "status": status, "reason": "R"}]}),
        )
    };
    assert_eq!(ended("True").len(), 2);
    assert_ne!(
        ended("True")[1],
        ended("False")[1],
        "another end is another event"
    );
}

#[test]
fn workflows_are_pipelines_and_other_kinds_tasks() {
    for (data_type, kind, word) in [
        ("tekton.dev/v1.PipelineRun", "PipelineRun", "pipelinerun"),
        ("argoproj.io/v1alpha1.Workflow", "Workflow", "pipelinerun"),
        ("tekton.dev/v1beta1.CustomRun", "CustomRun", "taskrun"),
        ("batch/v1.Job", "Job", "taskrun"),
    ] {
        let object = json!({"kind": kind, "metadata": {"name": "a"},
            "status": {"startTime": "2026-03-01T10:00:05Z", "startedAt": "2026-03-01T10:00:05Z"}});
        let events = origin(None).events(&columns(data_type, &object), &BOTH);
        let expected = format!("dev.cdevents.{word}.started.0.3.0");
        assert_eq!(header(&events[0], "ce-type"), expected);
        assert_eq!(
            header(&events[0], "ce-subject"),
            "one",
            "the id of the record"
        );
    }
}

#[test]
fn what_strangers_wrote_fits_a_header_and_is_bounded() {
    let labels: Map<String, Value> = (0..2_000)
        .map(|number| (format!("label-{number:04}"), json!("x".repeat(50))))
        .collect();
    let object = json!({"kind": "TaskRun",
        "metadata": {"name": "é".repeat(4_000), "uid": "a\r\nb é%\"", "labels": labels},
        "status": {"startTime": "2026-03-01T10:00:05Z"}});
    let events = origin(None).events(&columns("tekton.dev/v1.TaskRun", &object), &BOTH);
    assert_eq!(header(&events[0], "ce-subject"), "a%0D%0Ab%20%C3%A9%25%22");
    assert!(events[0].body.len() < 32 << 10, "{}", events[0].body.len());
    let said = body(&events[0]);
    assert_eq!(said["subject"]["id"], "a\r\nb é%\"");
    assert_eq!(said["customData"]["name"].as_str().unwrap().len(), 1_024);
    let told = said["customData"]["labels"].as_object().unwrap().len();
    assert!((200..300).contains(&told), "{told}");
}

#[test]
fn a_gap_has_the_same_id_whenever_it_is_told() {
    let place = FeedPosition {
        transaction: 7,
        row: 9,
    };
    let at = |text: &str| {
        let now = text.parse().unwrap();
        origin(None).interrupted("broker", place, now)
    };
    let (first, second) = (at("2026-03-01T10:00:00Z"), at("2026-03-01T11:00:00Z"));
    assert_eq!(first.id, "broker.interrupted.7.9");
    assert_eq!(first.id, second.id);
    assert_eq!(
        body(&first)["subject"],
        json!({"id": "broker", "content": {}})
    );
}
