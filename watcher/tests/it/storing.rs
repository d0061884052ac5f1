//! Finished runs are stored: once, whole, and as what they are.

use hindsight_run::Outcome;
use hindsight_watcher::{ledger::State, plan::DELETED_UNFINISHED, policy::Policy};
use serde_json::{Value, json};

use crate::support::{
    NAMESPACE, World, child, is_done, pipeline_run, quick, task_run, uid, within,
};

#[tokio::test]
async fn a_run_is_stored_once_and_in_its_final_state() {
    let world = World::new(quick()).await;
    let uid = world.create(task_run("build"));
    world.until(|p| p.in_cluster == 1).await;
    assert_eq!(world.sink.writes(), 0);
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.sink.writes(), 1);
    let record = format!("{NAMESPACE}/results/{uid}/records/{uid}");
    assert_eq!(world.sink.records(), std::slice::from_ref(&record));
    let annotations = &world.run("build").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations["results.tekton.dev/record"], json!(record));
    assert_eq!(
        annotations["results.tekton.dev/childReadyForDeletion"],
        Value::Null
    );
    let summary = world.result(&uid).summary;
    assert_eq!(summary.unwrap().status, Outcome::Success as i32);
    assert!(matches!(
        world.handle().state(&uid),
        Some(State::Stored { .. })
    ));
}

#[tokio::test]
async fn the_bytes_are_those_of_the_object_with_managed_fields() {
    let world = World::new(quick()).await;
    let uid = world.create(task_run("build"));
    world.finish("taskruns", "build");
    let object = world.run("build").unwrap();
    world.until(|p| p.stored == 1).await;
    let copy = world.copy(&uid);
    assert!(copy["metadata"]["managedFields"].is_array());
    assert_eq!(copy, object);
}

#[tokio::test]
async fn the_definition_that_a_run_used_is_stored_with_it() {
    let world = World::new(quick()).await;
    for (plural, run, part) in [
        ("taskruns", task_run("build"), "taskSpec"),
        ("pipelineruns", pipeline_run("nightly"), "pipelineSpec"),
    ] {
        let name = run["metadata"]["name"].as_str().unwrap().to_owned();
        let uid = world.create(run);
        // As Tekton writes it when the run begins.
        let used = json!({"params": [{"name": "revision"}], "description": "as of 9f2c1d"});
        let from = json!({"refSource": {"uri": "git+https://git.example/catalog.git",
            "digest": {"sha1": "9f2c1d"}, "entryPoint": "build.yaml"}});
        let patch = json!({"status": {part: used, "provenance": from}});
        let sim = &world.sim;
        sim.merge("tekton.dev", plural, NAMESPACE, &name, patch, "tekton")
            .unwrap();
        world.finish(plural, &name);
        within(world.sink.until(|sink| sink.copy(&uid).is_some())).await;
        let copy = world.copy(&uid);
        assert_eq!(
            (&copy["status"][part], &copy["status"]["provenance"]),
            (&used, &from)
        );
    }
}

#[tokio::test]
async fn our_own_annotations_are_not_stored_but_those_of_others_are() {
    let world = World::new(quick()).await;
    let uid = world.finished("build");
    world.annotated("build").await;
    world.annotate("build", "chains.tekton.dev/signed", "true");
    within(world.sink.until(|sink| sink.writes() == 2)).await;
    assert_eq!(
        world.copy(&uid)["metadata"]["annotations"]["chains.tekton.dev/signed"],
        json!("true")
    );
    // The events of both patches are dealt with once this later run is stored.
    world.finished("later");
    world.annotated("later").await;
    world.until(|p| p.stored == 2 && p.waiting == 0).await;
    assert_eq!(world.sink.writes(), 3);
}

#[tokio::test]
async fn a_run_costs_the_cluster_one_write() {
    let world = World::new(quick()).await;
    world.finish_all("build", 20);
    world.all_annotated("build", 20).await;
    let calls = world.sim.calls();
    assert_eq!(calls.clone().verb("patch").count(), 20);
    assert_eq!(calls.verb("get").resource("taskruns").count(), 0);
    assert_eq!(world.sink.writes(), 20);
}

#[tokio::test]
async fn children_are_stored_with_their_owner_and_marked() {
    let world = World::new(quick()).await;
    let owner = world.sim.create(pipeline_run("nightly")).unwrap();
    let child = world.create(child("nightly-build", &owner));
    world.finish("taskruns", "nightly-build");
    world.annotated("nightly-build").await;
    let record = format!("{NAMESPACE}/results/{}/records/{child}", uid(&owner));
    assert_eq!(world.sink.records(), [record]);
    assert_eq!(
        world.run("nightly-build").unwrap()["metadata"]["annotations"]["results.tekton.dev/childReadyForDeletion"],
        json!("true")
    );
}

#[tokio::test]
async fn a_restart_with_everything_stored_writes_nothing() {
    let mut world = World::new(quick()).await;
    world.finish_all("build", 30);
    world.all_annotated("build", 30).await;
    world.stop().await;
    assert_eq!(world.sink.writes(), 30);
    world.sim.clear_calls();
    world.start().await;
    world.until(|p| p.is_listed && p.stored == 30).await;
    world.stop().await;
    assert_eq!(world.sink.writes(), 30);
    assert_eq!(world.sim.calls().verb("patch").count(), 0);
}

#[tokio::test]
async fn a_run_made_again_from_a_copy_is_stored_as_itself() {
    let world = World::new(quick()).await;
    let first = world.finished("build");
    world.annotated("build").await;
    let annotations = world.run("build").unwrap()["metadata"]["annotations"].clone();
    let mut again = task_run("again");
    again["metadata"]["annotations"] = annotations;
    let second = world.create(again);
    world.finish("taskruns", "again");
    world.until(|p| p.stored == 2).await;
    assert_eq!(world.copy(&first)["metadata"]["name"], json!("build"));
    assert_eq!(world.copy(&second)["metadata"]["name"], json!("again"));
    let own = format!("{NAMESPACE}/results/{second}/records/{second}");
    world
        .cluster(|sim| {
            let run = sim
                .get("tekton.dev", "taskruns", NAMESPACE, "again")
                .unwrap();
            run["metadata"]["annotations"]["results.tekton.dev/record"] == json!(own)
        })
        .await;
}

#[tokio::test]
async fn a_run_deleted_after_it_finished_is_stored() {
    let world = World::new(quick()).await;
    world.sink.away(true);
    let uid = world.finished("build");
    world.delete("build");
    world.sink.away(false);
    world.until(|p| p.stored == 1 && p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_run_deleted_before_it_finished_is_stored_and_closed() {
    let world = World::new(quick()).await;
    let uid = world.create(task_run("build"));
    world.until(|p| p.in_cluster == 1).await;
    world.delete("build");
    world.until(|p| p.in_cluster == 0).await;
    assert!(!is_done(&world.copy(&uid)));
    let result = world.result(&uid);
    let reason = result
        .annotations
        .get("hindsight.dev/closed")
        .map(String::as_str);
    assert_eq!(reason, Some(DELETED_UNFINISHED));
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_name_used_twice_is_two_runs() {
    let world = World::new(quick()).await;
    let first = world.finished("build");
    world.until(|p| p.stored == 1).await;
    world.delete("build");
    let second = world.finished("build");
    world.until(|p| p.stored == 2).await;
    assert_ne!(first, second);
    assert_eq!(uid(&world.copy(&first)), first);
    assert_eq!(uid(&world.copy(&second)), second);
}

#[tokio::test]
async fn bad_json_in_an_annotation_costs_the_annotation_only() {
    let world = World::new(quick()).await;
    let mut run = task_run("build");
    run["metadata"]["annotations"] = json!({"results.tekton.dev/resultAnnotations": "{not json"});
    let uid = world.create(run);
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn what_the_server_refuses_is_listed_with_its_reason_until_it_is_stored() {
    let world = World::new(quick()).await;
    world.sink.refuse("bad");
    let bad = world.finished("bad");
    world.finished("good");
    world.annotated("good").await;
    let listed = |w: &hindsight_watcher::progress::Handle| {
        w.unstored(10).iter().any(|u| {
            u.name == "bad"
                && u.uid.as_str() == bad
                && u.reason.contains("INVALID_ARGUMENT")
                && u.reason.contains("not like that")
        })
    };
    within(world.handle().until(listed)).await;
    assert_eq!(world.handle().state(&bad), Some(State::FinalSeen));
    world.sink.refuse("");
    world.annotated("bad").await;
    assert!(world.handle().unstored(10).is_empty());
}

#[tokio::test]
async fn runs_of_other_controllers_are_left_alone() {
    let world = World::new(quick()).await;
    let mut run = task_run("theirs");
    run["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    world.create(run);
    world.finish("taskruns", "theirs");
    world.finished("ours");
    world.annotated("ours").await;
    assert_eq!((world.sink.writes(), world.progress().in_cluster), (1, 1));
}

#[tokio::test]
async fn runs_can_be_stored_as_they_progress() {
    let config = quick();
    let policy = Policy {
        store_incomplete: true,
        ..Policy::default()
    };
    let world = World::new(hindsight_watcher::config::Config { policy, ..config }).await;
    let uid = world.create(task_run("build"));
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    assert!(!is_done(&world.copy(&uid)));
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!((world.sink.writes(), world.progress().stored), (2, 1));
}

#[tokio::test]
async fn without_annotations_the_cluster_is_only_read() {
    let policy = Policy {
        annotate: false,
        ..Policy::default()
    };
    let config = hindsight_watcher::config::Config { policy, ..quick() };
    let world = World::new(config).await;
    world.finished("build");
    world.until(|p| p.stored == 1 && p.waiting == 0).await;
    let writes = |call: &kubesim::Call| !matches!(call.verb, "get" | "list" | "watch");
    assert_eq!(world.sim.calls().filter(writes).count(), 0);
}

#[tokio::test]
async fn a_run_that_cannot_be_stored_gets_one_event_that_says_why() {
    let mut world = World::new(quick()).await;
    world.sink.refuse("build");
    let uid = world.finished("build");
    let event = format!("{uid}.not-stored");
    let told = |sim: &kubesim::Sim| sim.get("", "events", NAMESPACE, &event).is_some();
    world.cluster(told).await;
    let said = world.sim.get("", "events", NAMESPACE, &event).unwrap();
    assert_eq!(said["involvedObject"]["name"], json!("build"));
    assert!(said["message"].as_str().unwrap().contains("not like that"));
    // It is tried again and again, and told once; also after a restart.
    let calls = world.sink.calls();
    let sink = std::sync::Arc::clone(&world.sink);
    within(sink.until(|sink| sink.calls() > calls + 3)).await;
    world.stop().await;
    world.start().await;
    within(sink.until(|sink| sink.calls() > calls + 6)).await;
    assert_eq!(world.sim.count("", "events"), 1);
    let tried = world.sim.calls().verb("create").resource("events").count();
    assert!(tried <= 2, "{tried}");
    assert_eq!(world.handle().unstored(10).len(), 1);
}
