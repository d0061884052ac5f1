//! What a pass says, one situation at a time.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{UID, job, object};
use crate::{
    End, Event, FINALIZER, Job, JobSeen, Next, Pass, Severity, Status, TargetSeen, Workflow,
    job_name,
};

fn now() -> Timestamp {
    "2026-03-01T10:00:00.7Z".parse().unwrap()
}

fn held(spec: &Value) -> Workflow {
    let mut object = object(spec);
    object["metadata"]["finalizers"] = json!([FINALIZER]);
    Workflow::read(&object).unwrap()
}

/// The Job of a step, as the API server has it.
fn there(workflow: &Workflow, step: &str, end: Option<End>) -> JobSeen {
    JobSeen::There(Job {
        name: job_name(workflow, step),
        uid: format!("uid-of-{step}"),
        version: "1".to_owned(),
        owner: Some(UID.to_owned()),
        step: Some(step.to_owned()),
        is_deleting: false,
        end,
    })
}

/// Does what it is told until it is to rest, in a cluster without external objects. What it was told.
fn play(pass: &mut Pass, now: Timestamp) -> Vec<Next> {
    let mut said = Vec::new();
    loop {
        let next = pass.next(now);
        said.push(next.clone());
        let mut workflow = pass.workflow().clone();
        match next {
            Next::Reread => pass.has(workflow),
            Next::Look { jobs, targets } => {
                jobs.iter()
                    .for_each(|name| pass.saw_job(name, JobSeen::Gone));
                targets
                    .iter()
                    .for_each(|step| pass.saw_target(step, TargetSeen::Gone));
            }
            Next::List => pass.listed([]),
            Next::Protect => {
                workflow.finalizers.push(FINALIZER.to_owned());
                pass.has(workflow);
            }
            Next::Write { status, .. } => {
                workflow.status = status;
                pass.has(workflow);
            }
            Next::Create(steps) => {
                for step in steps {
                    pass.saw_job(&job_name(&workflow, &step), there(&workflow, &step, None));
                }
            }
            Next::Delete(jobs) => jobs.iter().for_each(|job| pass.deleted(&job.uid)),
            Next::Release(_) => {
                workflow.finalizers.clear();
                pass.has(workflow);
            }
            Next::Rest(_) => return said,
        }
        assert!(said.len() < 50, "{said:?}");
    }
}

fn created(said: &[Next]) -> Vec<String> {
    let created = said.iter().filter_map(|next| match next {
        Next::Create(steps) => Some(steps.clone()),
        _ => None,
    });
    created.flatten().collect()
}

fn events(said: &[Next]) -> Vec<(&'static str, Severity)> {
    let events = said.iter().flat_map(|next| match next {
        Next::Write { events, .. } | Next::Release(events) => events.clone(),
        _ => Vec::new(),
    });
    events
        .map(
            |Event {
                 reason, severity, ..
             }| (reason, severity),
        )
        .collect()
}

fn failure(status: &Status) -> (String, String) {
    let failure = status.failure().unwrap();
    (
        failure.reason.clone().unwrap(),
        failure.message.clone().unwrap(),
    )
}

fn diamond() -> Value {
    json!({"steps": {
        "one": job(&[]), "two": job(&["one"]), "three": job(&["one"]), "four": job(&["two", "three"]),
    }})
}

#[test]
fn wf_21_steps_start_once_all_their_dependencies_are_complete_and_in_parallel() {
    let mut pass = Pass::new(held(&diamond()), []);
    assert_eq!(created(&play(&mut pass, now())), ["one"]);
    let workflow = pass.workflow().clone();
    pass.saw_job(
        &job_name(&workflow, "one"),
        there(&workflow, "one", Some(End::Complete)),
    );
    assert_eq!(created(&play(&mut pass, now())), ["three", "two"]);
    pass.saw_job(
        &job_name(&workflow, "two"),
        there(&workflow, "two", Some(End::Complete)),
    );
    assert_eq!(created(&play(&mut pass, now())), Vec::<String>::new());
    pass.saw_job(
        &job_name(&workflow, "three"),
        there(&workflow, "three", Some(End::Complete)),
    );
    assert_eq!(created(&play(&mut pass, now())), ["four"]);
    assert_eq!(pass.workflow().status.progress, "3/4");
}

#[test]
fn a_claim_is_written_before_its_job_is_created_and_two_writes_make_a_step() {
    let mut pass = Pass::new(held(&json!({"steps": {"one": job(&[])}})), []);
    let said = play(&mut pass, now());
    let [
        Next::Write {
            status: claimed, ..
        },
        Next::Create(_),
        Next::Write { status, .. },
        Next::Rest(None),
    ] = said.as_slice()
    else {
        panic!("{said:?}");
    };
    assert_eq!(claimed.statuses["one"].reference.uid, "");
    assert_eq!(status.statuses["one"].reference.uid, "uid-of-one");
    let written = serde_json::to_value(status).unwrap();
    let workflow = pass.workflow();
    assert_eq!(
        written,
        json!({
            "phase": "Running", "progress": "0/1", "startTime": "2026-03-01T10:00:00Z",
            "statuses": {"one": {"complete": false, "reference": {
                "kind": "Job", "apiVersion": "batch/v1", "namespace": "ci",
                "name": job_name(workflow, "one"), "uid": "uid-of-one",
            }}},
        })
    );
}

#[test]
fn wf_26_and_wf_27_a_workflow_is_complete_when_all_its_steps_are_also_if_there_are_none() {
    let mut pass = Pass::new(held(&json!({})), []);
    let said = play(&mut pass, now());
    assert_eq!(
        events(&said),
        [
            ("WorkflowCreated", Severity::Normal),
            ("WorkflowStarted", Severity::Normal),
            ("WorkflowEnded", Severity::Normal),
        ]
    );
    let status = &pass.workflow().status;
    assert!(status.is_finished() && !status.is_failed());
    assert_eq!(status.completion_time, status.start_time);
    assert!(!pass.workflow().is_protected());
    // Whatever becomes of Jobs afterwards.
    let mut later = Pass::new(pass.workflow().clone(), []);
    assert_eq!(play(&mut later, now()), [Next::Rest(None)]);
}

#[test]
fn wf_28_the_deadline_is_checked_before_the_steps() {
    let mut spec = diamond();
    spec["activeDeadlineSeconds"] = json!(60);
    let mut pass = Pass::new(held(&spec), []);
    let said = play(&mut pass, now());
    let due: Timestamp = "2026-03-01T10:01:00Z".parse().unwrap();
    assert_eq!(said.last(), Some(&Next::Rest(Some(due))));
    let workflow = pass.workflow().clone();
    // It is complete at the same time.
    pass.saw_job(&job_name(&workflow, "one"), there(&workflow, "one", None));
    let said = play(&mut pass, due);
    assert!(matches!(
        said.as_slice(),
        [
            Next::Write { .. },
            Next::Delete(_),
            Next::Release(_),
            Next::Rest(None)
        ]
    ));
    let status = &pass.workflow().status;
    assert_eq!(failure(status).0, "DeadlineExceeded");
    assert_eq!(status.completion_time, Some(due));
    assert_eq!(events(&said), [("WorkflowEnded", Severity::Warning)]);
}

#[test]
fn wf_29_an_external_step_is_followed_from_the_start_and_completes_with_its_object() {
    let spec = json!({"steps": {
        "other": {"externalRef": {"kind": "Workflow", "name": "other"}, "dependencies": ["last"]},
        "after": job(&["other"]),
        "last": job(&["after"]),
    }});
    let mut pass = Pass::new(held(&spec), []);
    let said = play(&mut pass, now());
    assert_eq!(
        said[0],
        Next::Look {
            jobs: vec![],
            targets: vec!["other".to_owned()]
        }
    );
    assert!(events(&said).contains(&("ExternalRefNotFound", Severity::Warning)));
    assert_eq!(
        pass.workflow().status.statuses["other"].reference.namespace,
        "ci"
    );

    let there = |end| TargetSeen::There {
        uid: "t".to_owned(),
        end,
    };
    pass.saw_target("other", there(None));
    assert_eq!(created(&play(&mut pass, now())), Vec::<String>::new());
    pass.saw_target("other", there(Some(End::Complete)));
    assert_eq!(created(&play(&mut pass, now())), ["after"]);

    let mut failed = Pass::new(held(&spec), []);
    failed.saw_target("other", there(Some(End::Failed("StepFailed".to_owned()))));
    play(&mut failed, now());
    let why = (
        "ExternalWorkflowFailed".to_owned(),
        "step \"other\": Workflow ci/other failed: StepFailed".to_owned(),
    );
    assert_eq!(failure(&failed.workflow().status), why);
}

#[test]
fn one_event_names_all_external_objects_that_do_not_exist_and_one_those_that_are_not_shown() {
    let other = |name: &str| json!({"externalRef": {"kind": "Workflow", "name": name}});
    let spec = json!({"activeDeadlineSeconds": 60, "steps": {
        "a": other("x"), "b": other("y"), "c": other("z"), "d": job(&[]),
    }});
    let mut pass = Pass::new(held(&spec), []);
    pass.saw_target("a", TargetSeen::Gone);
    pass.saw_target("b", TargetSeen::Gone);
    let why = "the cluster refuses (403): no".to_owned();
    pass.saw_target("c", TargetSeen::Hidden(why));
    let said = play(&mut pass, now());
    let Some(Next::Write { events, .. }) = said.first() else {
        panic!("{said:?}");
    };
    let notes: Vec<(&str, &str)> = events[2..]
        .iter()
        .map(|event| (event.reason, event.note.as_str()))
        .collect();
    let missing = "step \"a\" waits for Workflow ci/x, which does not exist; \
                   step \"b\" waits for Workflow ci/y, which does not exist";
    let hidden =
        "step \"c\" waits for Workflow ci/z, which cannot be read: the cluster refuses (403): no";
    assert_eq!(
        notes,
        [
            ("ExternalRefNotFound", missing),
            ("ExternalRefUnreadable", hidden)
        ]
    );
    assert_eq!(created(&said), ["d"]);
    assert!(matches!(said.last(), Some(Next::Rest(Some(_)))));
}

#[test]
fn wf_30_after_a_failed_step_nothing_starts_and_the_workflow_fails_once_the_others_have_ended() {
    let spec = json!({"steps": {"bad": job(&[]), "good": job(&[]), "next": job(&["good"]), "never": job(&["bad"])}});
    let mut pass = Pass::new(held(&spec), []);
    play(&mut pass, now());
    let workflow = pass.workflow().clone();
    let why = Some(End::Failed("BackoffLimitExceeded".to_owned()));
    pass.saw_job(&job_name(&workflow, "bad"), there(&workflow, "bad", why));
    assert_eq!(created(&play(&mut pass, now())), Vec::<String>::new());
    assert!(!pass.workflow().status.is_finished());

    pass.saw_job(
        &job_name(&workflow, "good"),
        there(&workflow, "good", Some(End::Complete)),
    );
    let said = play(&mut pass, now());
    assert_eq!(created(&said), Vec::<String>::new());
    let status = &pass.workflow().status;
    assert!(status.is_failed());
    let name = job_name(&workflow, "bad");
    let message = format!("step \"bad\": Job {name} failed: BackoffLimitExceeded");
    assert_eq!(failure(status), ("StepFailed".to_owned(), message));
    assert!(!status.is_complete("bad") && status.is_complete("good"));
}

#[test]
fn wf_24_a_job_that_was_created_after_its_claim_was_given_up_is_recorded_once_it_has_ended() {
    let spec = json!({"steps": {"bad": job(&[]), "late": job(&[]), "good": job(&[])}});
    let mut pass = Pass::new(held(&spec), []);
    play(&mut pass, now());
    let mut workflow = pass.workflow().clone();
    let why = Some(End::Failed("BackoffLimitExceeded".to_owned()));
    pass.saw_job(&job_name(&workflow, "bad"), there(&workflow, "bad", why));
    play(&mut pass, now());
    workflow.status = pass.workflow().status.clone();
    // Another replica has claimed it, and created its Job only after the claim was given up.
    workflow.status.statuses.remove("late");
    pass.has(workflow.clone());
    let late = job_name(&workflow, "late");

    pass.saw_job(&late, there(&workflow, "late", None));
    let said = play(&mut pass, now());
    assert!(matches!(&said[0], Next::Delete(jobs) if jobs[0].name == late));
    assert!(!pass.workflow().status.statuses.contains_key("late"));

    pass.saw_job(&late, there(&workflow, "late", Some(End::Complete)));
    play(&mut pass, now());
    let status = &pass.workflow().status;
    assert!(!status.is_finished() && status.is_complete("late"));
    assert_eq!(status.statuses["late"].reference.uid, "uid-of-late");
}

#[test]
fn wf_03_an_invalid_spec_fails_and_starts_nothing() {
    let mut pass = Pass::new(
        super::workflow(&json!({"steps": {"a": job(&["b"]), "b": job(&["a"])}})),
        [],
    );
    let said = play(&mut pass, now());
    assert!(
        matches!(said.as_slice(), [Next::Write { .. }, Next::Rest(None)]),
        "{said:?}"
    );
    let (reason, message) = failure(&pass.workflow().status);
    assert_eq!(reason, "InvalidSpec");
    assert_eq!(
        message,
        "spec.steps: the dependencies are a cycle: a -> b -> a"
    );
}

#[test]
fn wf_24_a_foreign_job_of_the_name_is_not_adopted() {
    let mut pass = Pass::new(held(&json!({"steps": {"one": job(&[])}})), []);
    let name = job_name(pass.workflow(), "one");
    let JobSeen::There(mut foreign) = there(pass.workflow(), "one", None) else {
        panic!("it is there");
    };
    foreign.owner = None;
    assert!(matches!(pass.next(now()), Next::Write { .. }));
    pass.saw_job(&name, JobSeen::There(foreign.clone()));
    play(&mut pass, now());
    pass.saw_job(&name, JobSeen::There(foreign));
    let said = play(&mut pass, now());
    assert!(!said.iter().any(|next| matches!(next, Next::Delete(_))));
    let (reason, message) = failure(&pass.workflow().status);
    assert_eq!(reason, "JobNameConflict");
    assert_eq!(
        message,
        format!("step \"one\": Job {name} exists, and has no owner")
    );
}

#[test]
fn wf_24_a_job_of_another_step_is_not_adopted_though_name_and_owner_are_right() {
    let mut pass = Pass::new(held(&json!({"steps": {"one": job(&[])}})), []);
    let name = job_name(pass.workflow(), "one");
    let JobSeen::There(mut other) = there(pass.workflow(), "one", Some(End::Complete)) else {
        panic!("it is there");
    };
    other.step = Some("two".to_owned());
    assert!(matches!(pass.next(now()), Next::Write { .. }));
    play(&mut pass, now());
    pass.saw_job(&name, JobSeen::There(other));
    play(&mut pass, now());
    assert!(!pass.workflow().status.is_complete("one"));
    let why = (
        "JobNameConflict".to_owned(),
        format!("step \"one\": Job {name} exists, and is of step \"two\""),
    );
    assert_eq!(failure(&pass.workflow().status), why);
}

#[test]
fn a_job_that_is_missing_in_a_cache_is_looked_for_before_it_is_created_again() {
    let mut first = Pass::new(held(&json!({"steps": {"one": job(&[])}})), []);
    play(&mut first, now());
    let name = job_name(first.workflow(), "one");

    let mut pass = Pass::new(first.workflow().clone(), []);
    assert_eq!(
        pass.next(now()),
        Next::Look {
            jobs: vec![name.clone()],
            targets: vec![]
        }
    );
    pass.saw_job(&name, there(first.workflow(), "one", None));
    assert_eq!(play(&mut pass, now()), [Next::Rest(None)]);

    // It was deleted by others while it ran.
    let mut pass = Pass::new(first.workflow().clone(), []);
    assert_eq!(created(&play(&mut pass, now())), ["one"]);
}

#[test]
fn jobs_are_created_of_a_workflow_that_was_just_read() {
    let mut first = Pass::new(held(&json!({"steps": {"one": job(&[])}})), []);
    let Next::Write { status, .. } = first.next(now()) else {
        panic!("it is claimed first");
    };
    let mut claimed = first.workflow().clone();
    claimed.status = status;
    let mut pass = Pass::new(claimed.clone(), []);
    assert_eq!(pass.next(now()), Next::Reread);
    // It was deleted meanwhile.
    claimed.is_deleting = true;
    pass.has(claimed);
    assert_eq!(pass.next(now()), Next::List);
    first.saw_job("unrelated", JobSeen::Gone);
}

#[test]
fn wf_43_a_deleted_workflow_ends_its_jobs_unless_they_are_orphaned() {
    let mut pass = Pass::new(
        held(&json!({"steps": {"one": job(&[]), "two": job(&[])}})),
        [],
    );
    play(&mut pass, now());
    let mut workflow = pass.workflow().clone();
    workflow.is_deleting = true;
    let jobs = || {
        let seen = [
            there(&workflow, "one", Some(End::Complete)),
            there(&workflow, "two", None),
        ];
        seen.into_iter().filter_map(|seen| match seen {
            JobSeen::There(job) => Some(job),
            _ => None,
        })
    };
    let mut pass = Pass::new(workflow.clone(), []);
    assert_eq!(pass.next(now()), Next::List);
    pass.listed(jobs());
    pass.has(workflow.clone());
    let Next::Delete(deleted) = pass.next(now()) else {
        panic!("a Job runs");
    };
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].uid, "uid-of-two");
    assert_eq!(
        events(&play(&mut pass, now())),
        [("WorkflowDeleted", Severity::Normal)]
    );

    let mut orphaning = workflow.clone();
    orphaning.finalizers.push("orphan".to_owned());
    let pass = Pass::new(orphaning, jobs());
    assert!(matches!(pass.next(now()), Next::Release(_)));
}
