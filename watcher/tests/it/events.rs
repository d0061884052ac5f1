//! What Kubernetes tells about a run is stored with it, if that is wanted.

use hindsight_watcher::{config::Config, policy::Policy};
use jiff::SignedDuration;
use kubesim::Fault;
use serde_json::{Value, json};

use crate::support::{NAMESPACE, World, collecting, done, eventually, quick, task_run};

fn telling(config: Config) -> Config {
    let policy = Policy {
        store_events: true,
        ..config.policy
    };
    Config { policy, ..config }
}

/// An event about an object.
fn event(world: &World, name: &str, about: &Value) {
    let mut about = about.clone();
    about["namespace"] = NAMESPACE.into();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"a": "b"}},
        "involvedObject": about, "reason": "Started", "message": name, "type": "Normal",
    });
    world.sim.create(event).unwrap();
}

/// A TaskRun with an event, and one of the pod that it names when it finishes, and of others.
fn told(world: &World, name: &str) -> String {
    let uid = world.create(task_run(name));
    let of = |more: &str| format!("{name}-{more}");
    event(
        world,
        &of("started"),
        &json!({"kind": "TaskRun", "name": name, "uid": uid}),
    );
    event(
        world,
        &of("pulled"),
        &json!({"kind": "Pod", "name": of("pod"), "uid": "p"}),
    );
    event(
        world,
        &of("foreign"),
        &json!({"kind": "Pod", "name": "other", "uid": "q"}),
    );
    let mut status = done();
    status["podName"] = json!(of("pod"));
    let patch = json!({"status": status});
    world.merge("tekton.dev", "taskruns", name, patch);
    uid
}

fn stored(world: &World, uid: &str) -> Value {
    world.copy(&format!("{uid}-events"))
}

#[tokio::test]
async fn the_events_of_a_run_and_its_pods_are_stored_and_the_run_says_where() {
    let world = World::new(telling(quick())).await;
    let uid = told(&world, "build");
    world.annotated("build").await;
    let list = stored(&world, &uid);
    let items = list["items"].as_array().unwrap();
    let mut names: Vec<_> = items.iter().map(|item| item["message"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [Some("build-pulled"), Some("build-started")]);
    assert_eq!(items[0]["kind"], Value::Null);
    let kept: Vec<_> = items[0]["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(list["metadata"]["resourceVersion"].is_string());
    let run = world.run("build").unwrap();
    assert_eq!(
        run["metadata"]["annotations"]["results.tekton.dev/eventlist"],
        format!("{NAMESPACE}/results/{uid}/records/{uid}-events")
    );
    assert_eq!(world.sink.records().len(), 2);
    assert_eq!(world.sink.writes(), 2);
}

#[tokio::test]
async fn events_are_not_read_unless_they_are_wanted() {
    let world = World::new(quick()).await;
    told(&world, "build");
    world.annotated("build").await;
    assert_eq!(world.sim.calls().verb("list").resource("events").count(), 0);
    assert_eq!(world.sink.records().len(), 1);
}

#[tokio::test]
async fn a_stored_list_is_not_replaced_by_what_the_cluster_still_remembers() {
    let mut world = World::new(telling(quick())).await;
    let uid = told(&world, "build");
    world.annotated("build").await;
    let before = stored(&world, &uid);
    world.stop().await;
    for name in ["build-started", "build-pulled"] {
        world.sim.delete("", "events", NAMESPACE, name).unwrap();
    }
    world.config = telling(collecting());
    world.start().await;
    world.until(|p| p.collected == 1).await;
    assert_eq!(stored(&world, &uid), before);
    assert_eq!(world.sink.writes(), 2);
}

#[tokio::test]
async fn a_run_does_not_go_before_its_events_are_stored() {
    let world = World::new(telling(collecting())).await;
    let failures = Fault::status(500).verb("list").resource("events").times(3);
    world.fault(failures);
    let uid = told(&world, "build");
    world.until(|p| p.collected == 1).await;
    assert_eq!(world.sim.faults().pending(), 0);
    assert_eq!(stored(&world, &uid)["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn events_that_may_not_be_read_hold_up_no_delete_of_others_for_ever() {
    let mut config = telling(quick());
    config.policy.finalizers = true;
    config.policy.store_deadline = SignedDuration::from_millis(1200);
    let world = World::new(config).await;
    let forbidden = Fault::status(403)
        .verb("list")
        .resource("events")
        .times(u32::MAX);
    world.fault(forbidden);
    let uid = world.create(task_run("build"));
    world
        .cluster(|sim| {
            let run = sim.get("tekton.dev", "taskruns", NAMESPACE, "build");
            run.is_some_and(|run| run["metadata"]["finalizers"].is_array())
        })
        .await;
    world.delete("build");
    world
        .cluster(|sim| {
            sim.get("tekton.dev", "taskruns", NAMESPACE, "build")
                .is_none()
        })
        .await;
    assert_eq!(world.copy(&uid)["metadata"]["uid"], json!(uid));
}

#[tokio::test]
async fn events_of_a_cluster_are_kept_from_before_and_after_a_restart() {
    let mut world = World::without_watcher(telling(quick()));
    world.sim.install_all(kubesim::Crd::ray());
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "a", "namespace": NAMESPACE}, "spec": {}});
    let uid = world.create(cluster);
    let about = json!({"kind": "RayCluster", "name": "a", "uid": uid});
    event(&world, "head", &about);
    world.start().await;
    let names = |world: &World| {
        let list = world.sink.copy(&format!("{uid}-events"))?;
        let items = list["items"].as_array()?.iter();
        let names = items.map(|item| item["message"].as_str().unwrap().to_owned());
        Some(names.collect::<Vec<_>>())
    };
    eventually(|| names(&world).is_some_and(|names| names == ["head"])).await;
    world.stop().await;
    // The cluster has forgotten it by now.
    world.sim.delete("", "events", NAMESPACE, "head").unwrap();
    event(&world, "workers", &about);
    world.start().await;
    eventually(|| names(&world).is_some_and(|names| names == ["head", "workers"])).await;
    event(&world, "gone", &about);
    world
        .sim
        .delete("ray.io", "rayclusters", NAMESPACE, "a")
        .unwrap();
    eventually(|| names(&world).is_some_and(|names| names == ["head", "workers", "gone"])).await;
}
