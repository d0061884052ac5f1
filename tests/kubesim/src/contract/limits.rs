//! How large and how named things may be.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Arena, GROUP, Verdict, create, dynamic, refused, same};

const MIB: usize = 1024 * 1024;

fn gadget(name: &str, bytes: usize) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": {"name": name},
        "spec": {"filler": "x".repeat(bytes)},
    })
}

/// A request has an end, and an object has one that comes before.
pub async fn bodies_and_objects_are_bounded(arena: Arena) -> Verdict {
    let gadgets = arena.gadgets();
    create(&gadgets, gadget("large", MIB)).await?;
    let path = format!("/apis/{GROUP}/v1/namespaces/{}/gadgets", arena.namespace);
    for (bytes, code, message) in [
        (MIB * 9 / 5, 500, "etcdserver: request is too large"),
        (
            MIB * 31 / 10,
            413,
            "Request entity too large: limit is 3145728",
        ),
    ] {
        let body = gadget("too-large", bytes);
        let (found, answer) = arena.raw("POST", &path, "application/json", &body).await?;
        same("the code", found, code)?;
        same("the message", answer["message"].as_str(), Some(message))?;
    }
    Ok(())
}

/// All annotations of an object together are bounded, however they come.
pub async fn annotations_are_bounded(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    arena.widget(json!({"name": "a"})).await?;
    let long = json!({"metadata": {"annotations": {"long": "x".repeat(256 * 1024)}}});
    let outcome = widgets
        .patch("a", &PatchParams::default(), &Patch::Merge(&long))
        .await;
    let status = refused("a merge", outcome, 422, "Invalid")?;
    let why = "metadata.annotations: Too long: may not be more than 262144 bytes";
    let title = format!("Widget.{GROUP} \"a\" is invalid: {why}");
    // The refusal of a patch names the resource, and that of a create the kind.
    let plural = title.replace("Widget", "widgets");
    let known = [title.as_str(), plural.as_str()].contains(&status.message.as_str());
    same(&status.message, known, true)?;
    let mut applied = long;
    applied["apiVersion"] = format!("{GROUP}/v1").into();
    applied["kind"] = "Widget".into();
    let outcome = widgets
        .patch("a", &PatchParams::apply("me"), &Patch::Apply(&applied))
        .await;
    refused("an apply", outcome, 422, "Invalid")?;
    same(
        "it is as it was",
        widgets.get("a").await?.metadata.annotations,
        None,
    )
}

/// Finalizers are named like labels, field managers briefly.
pub async fn names_of_finalizers_and_managers_are_checked(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    arena
        .widget(json!({"name": "a", "finalizers": ["plain", "example.dev/hold"]}))
        .await?;
    let outcome = arena
        .merge("a", json!({"metadata": {"finalizers": ["a/b/c"]}}))
        .await;
    refused("a finalizer", outcome, 422, "Invalid")?;
    for manager in ["m".repeat(129), "a\u{7}b".to_owned()] {
        let params = PostParams {
            field_manager: Some(manager),
            ..PostParams::default()
        };
        let object = dynamic(super::widget(json!({"name": "b"})));
        // The client refuses a name that is too long itself.
        match widgets.create(&params, &object).await {
            Err(kube::Error::BuildRequest(_)) => {}
            outcome => {
                refused("a manager", outcome, 422, "Invalid")?;
            }
        }
    }
    arena
        .merge("a", json!({"metadata": {"finalizers": null}}))
        .await?;
    Ok(())
}
