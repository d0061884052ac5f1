//! Workflows that go well.

use hindsight_cluster::LeaseConfig;
use hindsight_controller::cli::plugin;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::stage::{Stage, end, step, workflows};
use crate::support::complete;

const DIAMOND: &str = include_str!("../../../testdata/diamond.yaml");
const RIGHTS: &str = include_str!("../../../../deploy/workflow/rbac.yaml");

fn diamond() -> Value {
    json!({"steps": {
        "one": step(&[]), "two": step(&["one"]), "three": step(&["one"]), "four": step(&["two", "three"]),
    }})
}

/// Asserts that everything in `part` is in `whole`, to which an API server may have added more.
fn contains(whole: &Value, part: &Value, path: &str) {
    match part {
        Value::Object(fields) => {
            for (name, field) in fields {
                contains(&whole[name], field, &format!("{path}.{name}"));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                contains(&whole[index], item, &format!("{path}[{index}]"));
            }
        }
        value => assert_eq!(&whole, &value, "{path}"),
    }
}

pub(super) async fn wf_01_an_example_is_applied_and_runs_to_its_end(stage: Stage) {
    let stage = stage.with_controller().await;
    let mut example: Value = serde_saphyr::from_str(DIAMOND).unwrap();
    let spec = example["spec"].clone();
    // The status of what is created counts for nothing.
    example["status"] =
        json!({"phase": "Complete", "conditions": [{"type": "Complete", "status": "True"}]});
    let params = PatchParams::apply("contract");
    let api = workflows(&stage.here);
    let made = json!(
        api.patch("diamond", &params, &Patch::Apply(&example))
            .await
            .unwrap()
    );
    assert_eq!(made["status"], Value::Null);
    contains(&made["spec"], &spec, "spec");

    stage
        .finish_all("diamond", &["one", "two", "three", "four"])
        .await;
    assert_eq!(stage.ended("diamond").await.1, complete());
    for (name, step) in spec["steps"].as_object().unwrap() {
        let job = stage.job("diamond", name).await.unwrap();
        contains(&job["spec"], &step["jobTemplate"]["spec"], name);
    }
    let labels = ListParams::default().labels("workflow=diamond,team in (shop)");
    let selected = stage.jobs().list(&labels).await.unwrap();
    assert_eq!(selected.items.len(), 4);
    let first = stage.job("diamond", "one").await.unwrap();
    assert_eq!(first["metadata"]["labels"]["tier"], "first");
    // A simulated server has no schemas.
    let pruned = stage.create("pruned", json!({"unknown": 7})).await;
    assert_eq!(pruned["spec"]["unknown"].is_null(), !stage.is_simulated());
    assert_eq!(
        first["metadata"]["annotations"]["example.dev/by"],
        "proposal"
    );
}

pub(super) async fn wf_21_steps_start_when_they_may_and_a_diamond_is_complete(stage: Stage) {
    let stage = stage.with_controller().await;
    stage.create("build", diamond()).await;
    stage.started("build", "one").await;
    stage.settle().await;
    assert_eq!(stage.all_jobs().await.len(), 1);
    stage.finish("build", "one").await;
    stage.started("build", "two").await;
    stage.started("build", "three").await;
    stage.finish("build", "two").await;
    let two = |object: &Value| object["status"]["statuses"]["two"]["complete"] == true;
    stage.until("two is complete", "build", two).await;
    assert!(stage.job("build", "four").await.is_none());
    stage.finish("build", "three").await;
    stage.finish_all("build", &["four"]).await;
    let (object, ending) = stage.ended("build").await;
    assert_eq!(ending, complete());
    let status = &object["status"];
    assert!(status["startTime"].as_str() <= status["completionTime"].as_str());
    assert_eq!(
        (&status["phase"], &status["progress"]),
        (&json!("Complete"), &json!("4/4"))
    );
    let condition = &status["conditions"][0];
    assert!(condition["lastProbeTime"].is_string() && condition["lastTransitionTime"].is_string());

    // WF-26: whatever becomes of its Jobs afterwards, nothing is created again.
    let two = stage.job("build", "two").await.unwrap();
    let params = DeleteParams::background();
    stage
        .jobs()
        .delete(two["metadata"]["name"].as_str().unwrap(), &params)
        .await
        .unwrap();
    stage.settle().await;
    assert!(stage.job("build", "two").await.is_none());
    assert_eq!(&stage.workflow("build").await["status"], status);
    // Nothing holds it, so that deleting it takes no controller.
    let free = |object: &Value| object["metadata"]["finalizers"].is_null();
    stage.until("it is released", "build", free).await;
}

pub(super) async fn wf_22_and_wf_23_status_and_job_name_each_other(stage: Stage) {
    let stage = stage.with_controller().await;
    let spec = json!({"metadata": {"labels": {"team": "shop"}}, "steps": {"one": step(&[])}});
    let made = stage.create("build", spec).await;
    let workflow = stage.started("build", "one").await;
    let job = stage.job("build", "one").await.unwrap();
    let metadata = &job["metadata"];
    assert_eq!(
        workflow["status"]["statuses"],
        json!({"one": {"complete": false, "reference": {
            "kind": "Job", "apiVersion": "batch/v1", "namespace": stage.here.namespace,
            "name": metadata["name"], "uid": metadata["uid"],
        }}})
    );
    let uid = &made["metadata"]["uid"];
    let labels = json!({
        "team": "shop", "hindsight.dev/step": "one",
        "hindsight.dev/workflow": "build", "hindsight.dev/workflow-uid": uid,
    });
    contains(&metadata["labels"], &labels, "labels");
    let owner = &metadata["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (uid, &json!(true)));
}

pub(super) async fn wf_25_counters_of_a_job_do_not_end_a_step(stage: Stage) {
    let stage = stage.with_controller().await;
    stage
        .create("build", json!({"steps": {"one": step(&[])}}))
        .await;
    stage.started("build", "one").await;
    let job = stage.job("build", "one").await.unwrap();
    let now = &job["metadata"]["creationTimestamp"];
    let counters = json!({"status": {"startTime": now, "succeeded": 1, "ready": 0}});
    let name = job["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::default();
    stage
        .jobs()
        .patch_status(name, &params, &Patch::Merge(counters))
        .await
        .unwrap();
    stage.settle().await;
    let status = &stage.workflow("build").await["status"];
    assert_eq!(status["statuses"]["one"]["complete"], false);
    stage.finish("build", "one").await;
    assert_eq!(stage.ended("build").await.1, complete());
}

pub(super) async fn wf_27_and_wf_50_a_workflow_without_steps_is_complete_and_its_events_tell_its_life(
    stage: Stage,
) {
    let stage = stage.with_controller().await;
    stage.create("empty", json!({})).await;
    assert_eq!(stage.ended("empty").await.1, complete());
    stage.told("empty", "WorkflowEnded", "Normal").await;
    stage.delete("empty").await;
    stage.told("empty", "WorkflowDeleted", "Normal").await;
    let told = stage.events("empty").await;
    let once = [
        "WorkflowCreated",
        "WorkflowStarted",
        "WorkflowEnded",
        "WorkflowDeleted",
    ]
    .map(|reason| ((reason.to_owned(), "Normal".to_owned()), 1));
    assert_eq!(told, once.into());
}

pub(super) async fn wf_11_and_wf_29_a_step_completes_with_what_it_waits_for(stage: Stage) {
    let stage = stage.with_controller().await;
    let there = stage.there.namespace.clone();
    let spec = json!({"steps": {
        "inner": {"externalRef": {"kind": "Workflow", "name": "inner"}},
        "release": {"externalRef": {
            "kind": "Workflow", "apiVersion": "hindsight.dev/v1alpha1", "namespace": there, "name": "release",
        }},
        "import": {"externalRef": {"kind": "Job", "name": "import"}},
        "after": step(&["inner", "release", "import"]),
    }});
    stage.create("outer", spec).await;
    stage.told("outer", "ExternalRefNotFound", "Warning").await;

    stage
        .create("inner", json!({"steps": {"one": step(&[])}}))
        .await;
    let import = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "import"},
        "spec": step(&[])["jobTemplate"]["spec"],
    });
    let import = serde_json::from_value(import).unwrap();
    let import = json!(
        stage
            .jobs()
            .create(&PostParams::default(), &import)
            .await
            .unwrap()
    );
    // Nobody runs the workflows of the other namespace; here somebody says that they did.
    let release = stage
        .create_there("release", json!({"steps": {"ship": step(&[])}}))
        .await;
    stage.finish_all("inner", &["one"]).await;
    stage.started("outer", "import").await;
    end(&stage.jobs(), &import, true).await;
    let import_is_complete =
        |object: &Value| object["status"]["statuses"]["import"]["complete"] == true;
    let waiting = stage
        .until("import is complete", "outer", import_is_complete)
        .await;
    assert_eq!(waiting["status"]["statuses"]["release"]["complete"], false);
    let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    let params = PatchParams::default();
    workflows(&stage.there)
        .patch_status("release", &params, &Patch::Merge(done))
        .await
        .unwrap();

    stage.finish_all("outer", &["after"]).await;
    let (outer, ending) = stage.ended("outer").await;
    assert_eq!(ending, complete());
    assert_eq!(
        outer["status"]["statuses"]["release"],
        json!({"complete": true, "reference": {
            "kind": "Workflow", "apiVersion": "hindsight.dev/v1alpha1", "namespace": there,
            "name": "release", "uid": release["metadata"]["uid"],
        }})
    );
}

async fn kubectl(stage: &Stage, args: &[&str]) -> String {
    let mut all = vec!["kubectl-workflow"];
    all.extend(args);
    all.extend(["-n", &stage.here.namespace]);
    let matches = plugin::command().try_get_matches_from(all).unwrap();
    let mut out = Vec::new();
    plugin::run(stage.here.client.clone(), &matches, &mut out)
        .await
        .unwrap();
    String::from_utf8(out).unwrap()
}

pub(super) async fn wf_60_the_plugin_describes_repeats_and_cancels(stage: Stage) {
    let stage = stage.with_controller().await;
    let spec =
        json!({"steps": {"good": step(&[]), "bad": step(&["good"]), "last": step(&["bad"])}});
    stage.create("build", spec).await;
    stage.finish_all("build", &["good"]).await;
    stage.started("build", "bad").await;
    stage.fail("build", "bad").await;
    stage.ended("build").await;
    let text = kubectl(&stage, &["describe", "build"]).await;
    let rows: Vec<&str> = text.lines().rev().take(3).collect();
    assert!(rows[2].starts_with("  good  Complete"), "{text}");
    assert!(rows[1].starts_with("  bad   Failed"), "{text}");
    assert_eq!(rows[0], "  last  Waiting   after bad (waiting)");
    assert!(
        kubectl(&stage, &["get"])
            .await
            .contains("\tbuild\tFailed\t1/3\t")
    );

    let made = kubectl(&stage, &["retry", "build"]).await;
    let again = made.trim().strip_prefix("workflow.hindsight.dev/").unwrap();
    let again = again.strip_suffix(" created").unwrap();
    let workflow = stage.started(again, "bad").await;
    assert!(workflow["spec"]["steps"]["good"].is_null());
    kubectl(&stage, &["cancel", again]).await;
    stage.gone(again).await;
}

pub(super) async fn the_largest_workflow_is_taken_and_may_be_written(stage: Stage) {
    // Each step waits for eight before it; the last for all.
    let mut steps = serde_json::Map::new();
    let mut names: Vec<String> = Vec::new();
    for number in 0..500 {
        let from = if number == 499 { 0 } else { number.max(8) - 8 };
        let before: Vec<&str> = names[from..].iter().map(String::as_str).collect();
        let name = format!("{number:03}-{}", "x".repeat(40));
        steps.insert(name.clone(), step(&before));
        names.push(name);
    }
    stage.create("large", json!({"steps": steps})).await;
    // All are claimed at once, as a controller would after the first had ended.
    let claim = |name: &String| {
        let reference = json!({"kind": "Job", "apiVersion": "batch/v1", "name": name});
        (
            name.clone(),
            json!({"complete": false, "reference": reference}),
        )
    };
    let statuses: serde_json::Map<_, _> = names.iter().map(claim).collect();
    let api = workflows(&stage.here);
    for is_complete in [false, true] {
        let mut statuses = statuses.clone();
        for status in statuses.values_mut() {
            status["complete"] = json!(is_complete);
        }
        let patch = Patch::Merge(json!({"status": {"statuses": statuses}}));
        api.patch_status("large", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    stage
        .change("large", json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    let edit = json!({"spec": {"steps": {&names[0]: {"dependencies": [names[1]]}}}});
    stage.change("large", edit).await.unwrap_err();
}

pub(super) async fn the_rights_of_the_manifest_are_enough(mut stage: Stage) {
    let (client, namespace) = (stage.here.client.clone(), stage.here.namespace.clone());
    let api = |kind: &str| -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        Api::namespaced_with(client.clone(), &namespace, &ApiResource::from_gvk(&kind))
    };
    // With --namespace, all of it is bound there; so Roles do for the ClusterRole.
    for document in RIGHTS.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(document).unwrap();
        let kind = object["kind"].as_str().unwrap().replace("Cluster", "");
        if kind == "ServiceAccount" {
            continue;
        }
        object["kind"] = json!(kind);
        object["metadata"]["namespace"] = json!(namespace);
        if kind == "RoleBinding" {
            object["roleRef"]["kind"] = json!("Role");
            object["subjects"][0]["namespace"] = json!(namespace);
        }
        let object = serde_json::from_value(object).unwrap();
        api(&kind)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
    stage.client = stage.here.client_as(&format!(
        "system:serviceaccount:{namespace}:hindsight-workflow"
    ));
    stage.config.lease = Some(LeaseConfig {
        namespace: Some(namespace.clone()),
        name: "hindsight-workflow".to_owned(),
        identity: "one".to_owned(),
        duration: std::time::Duration::from_secs(15),
        renew_deadline: std::time::Duration::from_secs(10),
        retry: std::time::Duration::from_millis(100),
    });
    stage.start().await;
    stage
        .create(
            "build",
            json!({"steps": {"one": step(&[]), "two": step(&["one"])}}),
        )
        .await;
    stage.finish_all("build", &["one", "two"]).await;
    assert_eq!(stage.ended("build").await.1, complete());
    stage.told("build", "WorkflowEnded", "Normal").await;
    stage
        .create("gone", json!({"steps": {"one": step(&[])}}))
        .await;
    stage.started("gone", "one").await;
    stage.delete("gone").await;
    stage.gone("gone").await;
    stage.told("gone", "WorkflowDeleted", "Normal").await;
    let metrics = stage.stop().await;
    assert!(
        metrics.contains("hindsight_workflow_errors_total 0"),
        "{metrics}"
    );
    let leases: Api<Lease> = Api::namespaced(stage.here.client.clone(), &namespace);
    leases.get("hindsight-workflow").await.unwrap();
}
