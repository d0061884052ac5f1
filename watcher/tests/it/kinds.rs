//! Kinds come and go; each is watched while it is there.

use hindsight_run::{KINDS, Outcome, View};
use hindsight_watcher::{
    config::Config,
    plan::{DELETED, DELETED_UNSEEN},
};
use kubesim::{Crd, Fault};
use serde_json::{Value, json};

use crate::support::{
    NAMESPACE, World, child, collecting, eventually, quick, task_run, uid, within,
};

fn workflow(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"entrypoint": "main"},
        "status": {"phase": "Failed", "startedAt": "2026-03-01T10:00:00Z",
            "finishedAt": "2026-03-01T10:00:09Z", "nodes": {"n": {"phase": "Failed"}}},
    })
}

#[tokio::test]
async fn a_kind_that_is_installed_later_is_noticed() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    let uid = world.create(workflow("etl"));
    world.until(|p| p.stored == 1).await;
    assert_eq!(
        world.copy(&uid)["status"]["nodes"]["n"]["phase"],
        json!("Failed")
    );
    let result = world.result(&uid);
    assert_eq!(result.summary.unwrap().status, Outcome::Failure as i32);
    assert_eq!(result.data_type, "argoproj.io/v1alpha1.Workflow");
}

#[tokio::test]
async fn a_kind_that_is_taken_away_takes_its_runs_along_and_may_come_back() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    world.create(workflow("etl"));
    world.until(|p| p.stored == 1).await;
    world.sim.uninstall(&Crd::argo_workflow());
    world.until(|p| p.in_cluster == 0).await;
    world.finished("build");
    world.annotated("build").await;
    world.sim.install(Crd::argo_workflow());
    world.create(workflow("etl"));
    world.until(|p| p.stored == 3).await;
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_kind_that_is_served_in_another_version_alone_has_not_vanished() {
    let world = World::new(quick()).await;
    let older = Crd::argo_workflow();
    let newer = Crd {
        version: "v1".into(),
        ..Crd::argo_workflow()
    };
    world.sim.install(older.clone());
    let uid = world.create(workflow("etl"));
    world.until(|p| p.stored == 1).await;
    world.sim.install(newer);
    world.sim.stop_serving(&older);
    eventually(|| world.sim.calls().resource("/apis/argoproj.io/v1").count() >= 2).await;
    world.finished("build");
    world.annotated("build").await;
    let closed = |world: &World| {
        let result = world.result(&uid);
        result.annotations.contains_key("hindsight.dev/closed")
    };
    assert_eq!((world.progress().in_cluster, closed(&world)), (2, false));
    world.sim.install(older);
    let done = json!({"metadata": {"labels": {"again": "yes"}}});
    world.merge("argoproj.io", "workflows", "etl", done);
    let is_again = |copy: Value| copy["metadata"]["labels"]["again"] == "yes";
    within(
        world
            .sink
            .until(|sink| sink.copy(&uid).is_some_and(is_again)),
    )
    .await;
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_cluster_without_any_kind_is_fine() {
    let mut world = World::without_watcher(quick());
    for crd in Crd::tekton() {
        world.sim.uninstall(&crd);
    }
    world.start().await;
    world.until(|p| p.is_listed).await;
    assert_eq!(world.progress().in_cluster, 0);
}

#[tokio::test]
async fn two_kinds_of_one_name_are_two_kinds() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    world.sim.install(Crd::hindsight_workflow());
    let argo = world.create(workflow("etl"));
    let ours = world.create(json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "etl", "namespace": NAMESPACE},
        "spec": {},
    }));
    let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    world.merge("hindsight.dev", "workflows", "etl", done);
    world.until(|p| p.stored == 2).await;
    assert_eq!(
        world.copy(&argo)["apiVersion"],
        json!("argoproj.io/v1alpha1")
    );
    assert_eq!(
        world.copy(&ours)["apiVersion"],
        json!("hindsight.dev/v1alpha1")
    );
}

#[tokio::test]
async fn only_the_wanted_kinds_and_namespace_are_watched() {
    let kinds = KINDS.iter().filter(|kind| kind.kind == "TaskRun").collect();
    let config = Config {
        kinds,
        namespace: Some(NAMESPACE.to_owned()),
        ..quick()
    };
    let world = World::new(config).await;
    world.sim.namespace("other");
    let mut elsewhere = crate::support::task_run("elsewhere");
    elsewhere["metadata"]["namespace"] = json!("other");
    world.create(elsewhere);
    let done = json!({"status": crate::support::done()});
    world
        .sim
        .merge("tekton.dev", "taskruns", "other", "elsewhere", done, "x")
        .unwrap();
    world.create(crate::support::pipeline_run("nightly"));
    world.finish("pipelineruns", "nightly");
    let here = world.finished("here");
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    world.annotated("here").await;
    assert_eq!(
        world.sink.records(),
        [format!("{NAMESPACE}/results/{here}/records/{here}")]
    );
}

#[tokio::test]
async fn long_lists_are_read_in_pages() {
    let mut config = quick();
    config.tuning.page_size = 7;
    let mut world = World::without_watcher(config);
    world.finish_all("build", 40);
    world.start().await;
    world.until(|p| p.stored == 40 && p.is_listed).await;
    let lists = world
        .sim
        .calls()
        .filter(|c| c.verb == "list" && c.resource == "taskruns");
    assert_eq!(lists.count(), 6);
}

#[tokio::test]
async fn a_kind_that_may_not_be_seen_keeps_nobody_else_waiting() {
    let mut world = World::without_watcher(quick());
    world.sim.install(Crd::argo_workflow());
    let forbidden = Fault::status(403)
        .verb("list")
        .resource("workflows")
        .times(5);
    world.fault(forbidden);
    let uid = world.create(workflow("etl"));
    world.start().await;
    world.until(|p| p.is_listed).await;
    world.finished("build");
    world.annotated("build").await;
    // Once it may be seen, it is.
    world.until(|p| p.stored == 2).await;
    assert!(world.sink.copy(&uid).is_some());
}

#[tokio::test]
async fn definitions_are_stored_as_they_change_and_a_restart_only_asks() {
    let mut world = World::without_watcher(collecting());
    world.sim.install_all(Crd::kubeflow());
    let pipeline = json!({"apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline",
        "metadata": {"name": "training", "namespace": NAMESPACE}, "spec": {"displayName": "A"}});
    let uid = world.create(pipeline);
    world.start().await;
    let sink = std::sync::Arc::clone(&world.sink);
    within(sink.until(|sink| sink.writes() == 1)).await;
    let patch = json!({"spec": {"displayName": "B"}});
    let group = "pipelines.kubeflow.org";
    world.merge(group, "pipelines", "training", patch);
    within(sink.until(|sink| sink.writes() == 2)).await;
    assert_eq!(world.copy(&uid)["spec"]["displayName"], json!("B"));
    world.stop().await;
    let calls = sink.calls();
    world.start().await;
    within(sink.until(|sink| sink.calls() == calls + 1)).await;
    world.until(|p| p.is_listed && p.waiting == 0).await;
    assert_eq!(sink.writes(), 2);
    // Its end is no accident, and it is never collected.
    world
        .sim
        .delete(group, "pipelines", NAMESPACE, "training")
        .unwrap();
    world.until(|p| p.in_cluster == 0).await;
    assert_eq!((world.progress().collected, world.progress().lost), (0, 0));
    let result = sink.result(&format!("{NAMESPACE}/results/{uid}")).unwrap();
    assert!(!result.annotations.contains_key("hindsight.dev/closed"));
}

#[tokio::test]
async fn a_ray_cluster_is_part_of_its_job_and_ends_when_it_is_deleted() {
    let mut world = World::without_watcher(quick());
    world.sim.install_all(Crd::ray());
    let job = json!({"apiVersion": "ray.io/v1", "kind": "RayJob",
        "metadata": {"name": "train", "namespace": NAMESPACE}, "spec": {}});
    let job = world.sim.create(job).unwrap();
    let mut cluster = child("train-x", &job);
    cluster["apiVersion"] = json!("ray.io/v1");
    cluster["kind"] = json!("RayCluster");
    let uid = world.create(cluster);
    world.start().await;
    let sink = std::sync::Arc::clone(&world.sink);
    within(sink.until(|sink| sink.copy(&uid).is_some())).await;
    let of_job = job["metadata"]["uid"].as_str().unwrap();
    let record = format!("{NAMESPACE}/results/{of_job}/records/{uid}");
    assert_eq!(sink.records(), [record]);
    let status = json!({"status": {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}});
    world.merge("ray.io", "rayjobs", "train", status);
    within(sink.until(|sink| sink.copy(of_job).is_some())).await;
    world
        .sim
        .delete("ray.io", "rayclusters", NAMESPACE, "train-x")
        .unwrap();
    world.until(|p| p.in_cluster == 1 && p.waiting == 0).await;
    assert_eq!(world.progress().lost, 0);
    assert_eq!(ended(&world, &uid), (true, Some(DELETED)));
}

#[tokio::test]
async fn the_last_state_is_stored_of_what_is_deleted_while_an_older_one_is_worked_on() {
    let mut world = World::without_watcher(quick());
    world.sim.install_all(Crd::ray());
    let uid = world.create(ray_cluster("a"));
    let sink = std::sync::Arc::clone(&world.sink);
    let (asked, was_asked) = tokio::sync::oneshot::channel();
    sink.be_silent(true);
    sink.when_asked(move || asked.send(()).unwrap());
    world.start().await;
    within(was_asked).await.unwrap();
    let ready = json!({"status": {"state": "ready"}});
    world.merge("ray.io", "rayclusters", "a", ready);
    world
        .sim
        .delete("ray.io", "rayclusters", NAMESPACE, "a")
        .unwrap();
    // What comes after the deletion was seen, and so was that.
    world.create(ray_cluster("b"));
    world.until(|p| p.in_cluster == 2).await;
    sink.be_silent(false);
    within(sink.until(|sink| {
        sink.copy(&uid)
            .is_some_and(|copy| View::new(&copy).closed().is_some())
    }))
    .await;
    assert_eq!(ended(&world, &uid), (true, Some(DELETED)));
    assert_eq!(world.copy(&uid)["status"]["state"], "ready");
}

/// Whether the stored object has a time of its end, and why it was closed.
fn ended(world: &World, uid: &str) -> (bool, Option<&'static str>) {
    let copy = world.copy(uid);
    let view = View::new(&copy);
    let reasons = [DELETED, DELETED_UNSEEN].into_iter();
    let closed = view.closed();
    let reason = reasons
        .into_iter()
        .find(|one| closed.is_some_and(|closed| closed.reason == *one));
    (view.ended().is_some(), reason)
}

fn ray_cluster(name: &str) -> Value {
    json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"rayVersion": "2.9.0"}})
}

#[tokio::test]
async fn a_cluster_that_was_deleted_while_no_watcher_ran_is_closed() {
    let mut world = World::without_watcher(quick());
    world.sim.install_all(Crd::ray());
    let uid = world.create(ray_cluster("a"));
    let held = world.create(ray_cluster("held"));
    world.start().await;
    let sink = std::sync::Arc::clone(&world.sink);
    within(sink.until(|sink| sink.copy(&held).is_some() && sink.copy(&uid).is_some())).await;
    let is_being_deleted = json!({"metadata": {"finalizers": ["ray.io/held"]}});
    world.merge("ray.io", "rayclusters", "held", is_being_deleted);
    world
        .sim
        .delete("ray.io", "rayclusters", NAMESPACE, "held")
        .unwrap();
    let is_asked = |copy: Value| copy["metadata"]["deletionTimestamp"].is_string();
    within(sink.until(|sink| sink.copy(&held).is_some_and(is_asked))).await;
    assert_eq!(ended(&world, &uid), (false, None));
    world.stop().await;
    world
        .sim
        .delete("ray.io", "rayclusters", NAMESPACE, "a")
        .unwrap();
    // The same name again is another cluster.
    let again = world.create(ray_cluster("a"));
    world.start().await;
    within(sink.until(|sink| {
        sink.copy(&uid)
            .is_some_and(|copy| View::new(&copy).closed().is_some())
    }))
    .await;
    assert_eq!(ended(&world, &uid), (true, Some(DELETED_UNSEEN)));
    assert_eq!(ended(&world, &held), (true, None));
    within(sink.until(|sink| sink.copy(&again).is_some())).await;
    assert_eq!(ended(&world, &again), (false, None));
}

#[tokio::test]
async fn only_jobs_with_the_wanted_labels_are_watched() {
    let mut config = quick();
    let job = hindsight_run::Kind::named("batch", "Job").unwrap();
    config.kinds.push(job);
    config.selectors.push((job, "app in (etl)".to_owned()));
    let world = World::new(config).await;
    let job = |name: &str, app: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
            "spec": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    };
    world.sim.load(job("other", "web")).unwrap();
    let wanted = uid(&world.sim.load(job("wanted", "etl")).unwrap());
    world.until(|p| p.stored == 1).await;
    assert!(world.sink.copy(&wanted).is_some());
    assert_eq!(world.progress().in_cluster, 1);
}

#[tokio::test]
async fn runs_of_several_clusters_do_not_collide_on_one_server() {
    let shutdown = tokio_util::sync::CancellationToken::new();
    let sink: std::sync::Arc<crate::support::MemorySink> = std::sync::Arc::default();
    let mut records = Vec::new();
    for east in [true, false] {
        let mut world = World::without_watcher(quick());
        world.sink = std::sync::Arc::clone(&sink);
        if !east {
            let settings = kubesim::Settings {
                cluster_uid: "0b7f6f3c-0000-4000-8000-000000000002".to_owned(),
                ..kubesim::Settings::default()
            };
            world.sim = kubesim::Sim::with(settings, std::sync::Arc::new(kubesim::SystemClock));
            world.sim.install_all(Crd::tekton());
            world.sim.namespace(NAMESPACE);
        }
        let backoff = world.config.tuning.cluster;
        let id = hindsight_watcher::app::identify(world.sim.client(), backoff, &shutdown);
        world.config.policy.cluster = id.await.unwrap();
        // The same names and UIDs, as after a cluster was copied.
        let mut run = task_run("build");
        run["metadata"]["uid"] = json!("5d7e0000-0000-4000-8000-000000000001");
        run["status"] = crate::support::done();
        world.sim.load(run).unwrap();
        world.start().await;
        world.until(|p| p.stored == 1).await;
        records = sink.records();
    }
    assert_eq!(records.len(), 2, "{records:?}");
    let east = format!(
        "cluster/{}/namespace/{NAMESPACE}/",
        kubesim::KUBE_SYSTEM_UID
    );
    assert_eq!(
        records
            .iter()
            .filter(|name| name.starts_with(&east))
            .count(),
        1
    );
}
