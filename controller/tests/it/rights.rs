//! The rights of the manifest are enough.

use hindsight_cluster::LeaseConfig;
use hindsight_workflow::custom::Form;
use serde_json::{Value, json};

use crate::{
    custom::{embedded, tekton},
    delegated::steps,
    support::{GROUP, NAMESPACE, WORKFLOWS, complete, ending, endless, step},
};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/workflow/rbac.yaml");

#[tokio::test]
async fn a_controller_with_the_rights_of_the_manifest_does_all_that_it_has_to() {
    let mut world = tekton();
    world.sim.namespace("hindsight");
    let manifest = std::fs::read_to_string(MANIFEST).unwrap();
    for document in manifest.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        world.sim.create(object).unwrap();
    }
    world.sim.policy().enforce();
    world.user = Some("system:serviceaccount:hindsight:hindsight-workflow");
    world.config.lease = Some(LeaseConfig {
        namespace: Some("hindsight".to_owned()),
        name: "hindsight-workflow".to_owned(),
        identity: "one".to_owned(),
        duration: std::time::Duration::from_secs(15),
        renew_deadline: std::time::Duration::from_secs(10),
        retry: std::time::Duration::from_millis(20),
    });
    world.start().await;
    world.create(
        "build",
        &json!({"steps": {"one": step(&[]), "two": step(&["one"])}}),
    );
    world.create("gone", &json!({"steps": {"one": endless(&[])}}));
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), complete());
    world.until(|_| world.events("build").len() == 3).await;
    world.started("gone", "one").await;
    world
        .sim
        .delete(GROUP, WORKFLOWS, NAMESPACE, "gone")
        .unwrap();
    world
        .until(|sim| sim.get(GROUP, WORKFLOWS, NAMESPACE, "gone").is_none())
        .await;
    for (index, form) in Form::ALL.into_iter().enumerate() {
        let spec = json!({form.embedded(): embedded(&json!({"one": endless(&[])}))});
        world.ask(form, "nightly", &spec);
        let workflow = world.attempt(form, "nightly", 0);
        world
            .until(|sim| sim.get(GROUP, WORKFLOWS, NAMESPACE, &workflow).is_some())
            .await;
        let cancel = json!({"spec": {"status": "RunCancelled"}});
        world
            .sim
            .merge(
                "tekton.dev",
                form.plural(),
                NAMESPACE,
                "nightly",
                cancel,
                "test",
            )
            .unwrap();
        world.done(form, "nightly").await;
        world
            .until(|sim| sim.get(GROUP, WORKFLOWS, NAMESPACE, &workflow).is_none())
            .await;
        world
            .until(|_| world.events("nightly").len() == 2 * (index + 1))
            .await;
    }
    let tasks = json!([
        {"name": "steps", "taskSpec": steps(&json!({"kubesim.dev/outcome": "run"}))},
        {"name": "jobs", "taskSpec": embedded(&json!({"one": endless(&[])}))},
    ]);
    let _runner = world.sim.run_tasks();
    world.delegate("release", &tasks, &json!({"timeouts": {"pipeline": "2s"}}));
    world.pipeline_ended("release").await;
    for (plural, task) in [("taskruns", "steps"), ("customruns", "jobs")] {
        let name = world.child_of("release", task);
        let is_told = |sim: &kubesim::Sim| {
            let child = sim.get("tekton.dev", plural, NAMESPACE, &name);
            child.is_some_and(|child| child["spec"]["status"].is_string())
        };
        world.until(is_told).await;
    }
    world.until(|_| world.events("release").len() == 2).await;
    world.stop().await;
    assert_eq!(world.sim.calls().status(403).count(), 0);
}
