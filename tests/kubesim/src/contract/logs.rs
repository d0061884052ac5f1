//! Logs of containers, as far as an API server answers for them without a kubelet: what is asked of a
//! pod that no node has.

use serde_json::json;

use super::{Arena, Difference, Verdict, create, same};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};

/// A pod that stays without a node, with two containers and an init container.
async fn pod(arena: &Arena, name: &str) -> Result<(), Difference> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let pods: Api<DynamicObject> =
        Api::namespaced_with(arena.client.clone(), &arena.namespace, &resource);
    let container = |name: &str| json!({"name": name, "image": "example.com/none"});
    create(
        &pods,
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "none",
                "automountServiceAccountToken": false,
                "initContainers": [container("prepare")],
                "containers": [container("step-a"), container("step-b")],
            },
        }),
    )
    .await?;
    Ok(())
}

async fn ask(arena: &Arena, pod: &str, query: &str) -> Result<(u16, String), Difference> {
    let namespace = &arena.namespace;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?{query}");
    let (status, body) = arena.ask("GET", &path).await?;
    let message = body["message"].as_str().unwrap_or_default();
    Ok((status, message.to_owned()))
}

/// A pod that is not there has no log.
pub async fn a_missing_pod_has_no_log(arena: Arena) -> Verdict {
    let found = ask(&arena, "none", "").await?;
    let wanted = (404, "pods \"none\" not found".to_owned());
    same("the log of a missing pod", found, wanted)
}

/// Of several containers, one has to be named.
pub async fn a_container_must_be_named(arena: Arena) -> Verdict {
    pod(&arena, "p").await?;
    let wanted = "a container name must be specified for pod p, choose one of: \
                  [prepare step-a step-b]";
    let found = ask(&arena, "p", "").await?;
    same("the log of no container", found, (400, wanted.to_owned()))?;
    let found = ask(&arena, "p", "container=x").await?;
    let wanted = "container x is not valid for pod p".to_owned();
    same("the log of a wrong container", found, (400, wanted))
}

/// A pod that no node has yet has no log, which is no error.
pub async fn a_pod_without_a_node_has_no_log_yet(arena: Arena) -> Verdict {
    pod(&arena, "p").await?;
    let found = ask(&arena, "p", "container=step-a&timestamps=true").await?;
    same("the log of a waiting pod", found, (204, String::new()))
}

/// Numbers that cannot be, and two beginnings at once, are refused.
pub async fn options_of_logs_are_checked(arena: Arena) -> Verdict {
    pod(&arena, "p").await?;
    for bad in ["tailLines=-1", "limitBytes=0", "sinceSeconds=0"] {
        let (status, _) = ask(&arena, "p", &format!("container=step-a&{bad}")).await?;
        same(bad, status, 422)?;
    }
    let both = "container=step-a&sinceSeconds=1&sinceTime=2026-03-01T10:00:00Z";
    let (status, _) = ask(&arena, "p", both).await?;
    same(both, status, 422)
}
