//! Leases and events: what a program that leads, and tells of it, stands on.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Event};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{Arena, Difference, Verdict, refused, same};

/// Of two who renew the same lease, the second is told.
pub async fn a_lease_is_renewed_by_one(arena: Arena) -> Verdict {
    let leases: Api<Lease> = Api::namespaced(arena.client.clone(), &arena.namespace);
    let wanted: Lease = serde_json::from_value(json!({
        "metadata": {"name": "leader"},
        "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15,
            "renewTime": "2026-03-01T10:00:00.000001Z",
        },
    }))
    .expect("the lease is well formed");
    let made = leases.create(&PostParams::default(), &wanted).await?;
    let again = leases.create(&PostParams::default(), &wanted).await;
    refused("a second one", again, 409, "AlreadyExists")?;
    let renew = |holder: &str| {
        let mut lease = made.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(holder.to_owned());
        lease
    };
    let renewed = leases
        .replace("leader", &PostParams::default(), &renew("b"))
        .await?;
    let holder = renewed
        .spec
        .as_ref()
        .and_then(|spec| spec.holder_identity.as_deref());
    same("the holder", holder, Some("b"))?;
    let time = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    same("microseconds are kept", time(&renewed), time(&made))?;
    let late = leases
        .replace("leader", &PostParams::default(), &renew("c"))
        .await;
    refused("the slower one", late, 409, "Conflict")?;
    let mut blind = renew("d");
    blind.metadata.resource_version = None;
    let outcome = leases
        .replace("leader", &PostParams::default(), &blind)
        .await;
    refused("without a version", outcome, 422, "Invalid").map(drop)
}

async fn event(arena: &Arena, name: &str, of: &Value) -> Result<(), Difference> {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": name}, "involvedObject": of, "reason": "NotStored", "type": "Warning",
        "reportingComponent": "contract", "message": "m",
    }))
    .expect("the event is well formed");
    let events: Api<Event> = Api::namespaced(arena.client.clone(), &arena.namespace);
    events.create(&PostParams::default(), &event).await?;
    Ok(())
}

/// Events are found by what they are about.
pub async fn events_are_found_by_what_they_are_about(arena: Arena) -> Verdict {
    let about = |uid: &str, kind: &str| json!({"kind": kind, "name": "a", "uid": uid, "namespace": arena.namespace});
    event(&arena, "one", &about("u1", "TaskRun")).await?;
    event(&arena, "two", &about("u1", "PipelineRun")).await?;
    event(&arena, "three", &about("u2", "TaskRun")).await?;
    let events: Api<Event> = Api::namespaced(arena.client.clone(), &arena.namespace);
    for (selector, wanted) in [
        ("involvedObject.uid=u1", vec!["one", "two"]),
        (
            "involvedObject.uid=u1,involvedObject.kind=TaskRun",
            vec!["one"],
        ),
        ("involvedObject.uid!=u1", vec!["three"]),
        (
            "involvedObject.name=a,type=Warning,reason=NotStored",
            vec!["one", "three", "two"],
        ),
        ("reportingComponent=nobody", vec![]),
    ] {
        let found = events.list(&ListParams::default().fields(selector)).await?;
        let names: Vec<String> = found
            .into_iter()
            .filter_map(|one| one.metadata.name)
            .collect();
        same(selector, names, wanted)?;
    }
    let bad = events
        .list(&ListParams::default().fields("message=m"))
        .await;
    refused("an unknown field", bad, 400, "BadRequest").map(drop)
}

/// An event is about something of its own namespace.
pub async fn events_are_checked(arena: Arena) -> Verdict {
    let elsewhere = json!({"kind": "TaskRun", "name": "a", "namespace": "elsewhere"});
    for of in [elsewhere, json!({"kind": "Node", "name": "a"})] {
        match event(&arena, "one", &of).await {
            Err(Difference::Refused(error)) => {
                refused::<()>("another namespace", Err(error), 422, "Invalid")?;
            }
            Err(difference) => return Err(difference),
            Ok(()) => same("an event about another namespace is taken", true, false)?,
        }
    }
    let path = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        arena.namespace
    );
    let mut event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"},
        "regarding": {"kind": "TaskRun", "name": "a", "namespace": arena.namespace},
        "reason": "NotStored", "note": "m", "type": "Warning",
    });
    let post = async |event: &Value| {
        let (code, _) = arena.raw("POST", &path, "application/json", event).await?;
        Ok::<_, Difference>(code)
    };
    same("without a time", post(&event).await?, 422)?;
    event["eventTime"] = "2026-03-01T10:00:00.000000Z".into();
    same("without its sender", post(&event).await?, 422)?;
    event["reportingController"] = "example.dev/contract".into();
    event["reportingInstance"] = "contract-1".into();
    event["action"] = "Store".into();
    same("complete", post(&event).await?, 201)
}
