//! What other watchers of this kind are known to do wrong, as far as no other test shows that it
//! does not happen here; docs/weaknesses.md is the whole list.

use std::sync::{Arc, mpsc};

use hindsight_watcher::{config::Config, policy::Policy};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::support::{
    NAMESPACE, World, child, collecting, is_done, pipeline_run, quick, task_run, uid, within,
};

const ANNOTATIONS: &str = "results.tekton.dev/resultAnnotations";

#[tokio::test]
async fn a_run_that_lives_and_dies_while_no_watch_is_open_is_stored() {
    let world = World::new(quick()).await;
    world.sim.faults().down();
    let uids: Vec<String> = (0..10)
        .map(|n| {
            let uid = world.finished(&format!("build-{n}"));
            world.delete(&format!("build-{n}"));
            uid
        })
        .collect();
    world.sim.faults().up();
    world.until(|p| p.stored == 10 && p.in_cluster == 0).await;
    assert!(world.all_done(&uids));
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn neither_a_dry_run_nor_silence_in_the_cluster_lets_go_what_is_not_stored() {
    for (dry_run, annotate) in [(true, true), (false, false)] {
        let policy = Policy {
            finalizers: true,
            store_deadline: SignedDuration::from_mins(10),
            annotate,
            ..collecting().policy
        };
        let config = Config {
            policy,
            dry_run,
            ..quick()
        };
        let world = World::new(config).await;
        let uid = world.create(task_run("build"));
        world
            .cluster(|sim| {
                let run = sim.get("tekton.dev", "taskruns", NAMESPACE, "build");
                run.is_some_and(|run| run["metadata"]["finalizers"].is_array())
            })
            .await;
        world.sink.away(true);
        world.finish("taskruns", "build");
        world.delete("build");
        within(world.sink.until(|sink| sink.calls() > 5)).await;
        assert!(world.run("build").is_some());
        world.sink.away(false);
        world.until(|p| p.in_cluster == 0).await;
        assert!(is_done(&world.copy(&uid)));
    }
}

#[tokio::test]
async fn annotations_meant_for_a_run_do_not_land_on_one_that_took_its_name() {
    let world = World::new(quick()).await;
    let sim = world.sim.clone();
    let (told, second) = mpsc::channel();
    world.sink.when_stored(move || {
        sim.delete("tekton.dev", "taskruns", NAMESPACE, "build")
            .unwrap();
        told.send(uid(&sim.create(task_run("build")).unwrap()))
            .unwrap();
    });
    let first = world.finished("build");
    // What is done about the first is over once the next one is done.
    world.finished("next");
    world.annotated("next").await;
    world.until(|p| p.in_cluster == 2 && p.waiting == 0).await;
    let second = second.recv().unwrap();
    let run = world.run("build").unwrap();
    assert_eq!(uid(&run), second);
    assert_eq!(run["metadata"]["annotations"], Value::Null);
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert_eq!(uid(&world.copy(&first)), first);
    assert_eq!(uid(&world.copy(&second)), second);
    assert_eq!(world.sink.records().len(), 3);
}

#[tokio::test]
async fn a_child_of_any_kind_keeps_its_owner_until_it_is_stored() {
    let world = World::new(collecting()).await;
    world.sink.refuse("inner");
    let outer = world.sim.create(pipeline_run("outer")).unwrap();
    let mut inner = pipeline_run("inner");
    inner["metadata"]["ownerReferences"] =
        child("inner", &outer)["metadata"]["ownerReferences"].clone();
    let inner = world.create(inner);
    world.finish_pipeline("inner", json!([]));
    let nested = json!({"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": "inner"});
    world.finish_pipeline("outer", json!([nested]));
    // Of a kind that nobody can know to be stored.
    world.create(pipeline_run("approved"));
    let foreign = json!({"apiVersion": "example.dev/v1", "kind": "Approval", "name": "yes"});
    world.finish_pipeline("approved", json!([foreign]));
    world.until(|p| p.stored == 2).await;
    let calls = world.sink.calls();
    within(world.sink.until(|sink| sink.calls() > calls + 3)).await;
    assert_eq!(world.deletes(), 0);
    world.sink.refuse("");
    world.until(|p| p.collected == 1 && p.in_cluster == 1).await;
    assert!(is_done(&world.copy(&inner)) && is_done(&world.copy(&uid(&outer))));
    let left = world.sim.list("tekton.dev", "pipelineruns");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["metadata"]["name"], "approved");
}

#[tokio::test]
async fn a_child_that_is_born_with_the_marks_of_another_is_not_taken_for_stored() {
    let mut world = World::new(quick()).await;
    let before = world.sim.create(pipeline_run("before")).unwrap();
    world.create(child("before-build", &before));
    world.finish("taskruns", "before-build");
    world.annotated("before-build").await;
    let marks = world.run("before-build").unwrap()["metadata"]["annotations"].clone();
    assert_eq!(marks["results.tekton.dev/childReadyForDeletion"], "true");
    world.stop().await;
    world.config = collecting();
    world.sink.refuse("nightly-build");
    world.start().await;
    let owner = world.sim.create(pipeline_run("nightly")).unwrap();
    let mut born = child("nightly-build", &owner);
    born["metadata"]["annotations"] = marks;
    let born = world.create(born);
    world.finish("taskruns", "nightly-build");
    world.finish_pipeline(
        "nightly",
        json!([{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "nightly-build"}]),
    );
    let sink = Arc::clone(&world.sink);
    within(sink.until(|sink| sink.copy(&uid(&owner)).is_some())).await;
    let calls = sink.calls();
    within(sink.until(|sink| sink.calls() > calls + 3)).await;
    assert_eq!(world.deletes(), 0);
    world.sink.refuse("");
    world.until(|p| p.collected == 1).await;
    assert_eq!(uid(&world.copy(&born)), born);
}

#[tokio::test]
async fn collection_that_is_switched_on_later_takes_what_was_stored_before() {
    let mut world = World::new(quick()).await;
    for n in 0..5 {
        world.finished(&format!("build-{n}"));
        world.annotated(&format!("build-{n}")).await;
    }
    world.stop().await;
    world.config = Config {
        dry_run: true,
        ..collecting()
    };
    world.start().await;
    world
        .until(|p| p.is_listed && p.stored == 5 && p.waiting == 0)
        .await;
    world.stop().await;
    assert_eq!(world.deletes(), 0);
    world.config = collecting();
    world.start().await;
    world.until(|p| p.collected == 5 && p.in_cluster == 0).await;
    assert_eq!(world.sink.writes(), 5);
}

#[tokio::test]
async fn what_a_user_writes_while_a_run_is_stored_stays_and_is_stored_too() {
    let world = World::new(quick()).await;
    let mut run = task_run("build");
    run["metadata"]["annotations"] = json!({ANNOTATIONS: "{\"team\": \"red\"}"});
    let uid = world.create(run);
    let sim = world.sim.clone();
    world.sink.when_stored(move || {
        let patch = json!({"metadata": {"annotations": {ANNOTATIONS: "{\"team\": \"blue\"}"}}});
        sim.merge("tekton.dev", "taskruns", NAMESPACE, "build", patch, "x")
            .unwrap();
    });
    world.finish("taskruns", "build");
    let result = format!("{NAMESPACE}/results/{uid}");
    let sink = Arc::clone(&world.sink);
    within(sink.until(|sink| {
        let sent = sink.result(&result);
        sent.is_some_and(|sent| sent.annotations.get("team").is_some_and(|t| t == "blue"))
    }))
    .await;
    world.annotated("build").await;
    let kept = &world.run("build").unwrap()["metadata"]["annotations"][ANNOTATIONS];
    assert_eq!(kept, "{\"team\": \"blue\"}");
    assert_eq!(
        &world.copy(&uid)["metadata"]["annotations"][ANNOTATIONS],
        kept
    );
}
