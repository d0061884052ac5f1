//! What is checked of Jobs.

use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{Arena, Verdict, create, dynamic, holds, refused};

fn job(restart: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": restart, "containers": [{"name": "main", "image": "busybox"}],
        }}},
    })
}

/// The pods of a Job do not restart for ever, which a template has to say.
pub async fn a_job_says_how_its_pods_restart(arena: Arena) -> Verdict {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"));
    let jobs: Api<DynamicObject> =
        Api::namespaced_with(arena.client.clone(), &arena.namespace, &kind);
    for restart in [json!("Always"), Value::Null] {
        let outcome = jobs
            .create(&PostParams::default(), &dynamic(job(&restart)))
            .await;
        let status = refused("the policy", outcome, 422, "Invalid")?;
        holds(
            "it is named",
            status.message.contains("spec.template.spec.restartPolicy"),
        )?;
    }
    create(&jobs, job(&json!("OnFailure"))).await.map(drop)
}
