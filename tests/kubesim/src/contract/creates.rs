//! Creates: what the server fills in, and which objects it takes.

use kube::api::PostParams;
use serde_json::json;

use super::{Arena, GROUP, Verdict, dynamic, holds, refused, same, version, widget};

/// The server names, numbers and dates a new object.
pub async fn a_new_object_is_completed(arena: Arena) -> Verdict {
    let made = arena
        .widget(json!({"name": "a", "uid": "mine", "generation": 7}))
        .await?;
    let metadata = &made.metadata;
    holds(
        "it has a uid of its own",
        metadata.uid.as_ref().is_some_and(|uid| uid.len() == 36),
    )?;
    same("generation", metadata.generation, Some(1))?;
    same(
        "namespace",
        metadata.namespace.as_deref(),
        Some(arena.namespace.as_str()),
    )?;
    holds("it has a time", metadata.creation_timestamp.is_some())?;
    holds("it has a version", version(&made).parse::<u64>().is_ok())
}

/// A name can be taken once.
pub async fn a_taken_name_is_refused(arena: Arena) -> Verdict {
    arena.map("a", json!({})).await?;
    let again =
        dynamic(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    let outcome = arena.maps().create(&PostParams::default(), &again).await;
    let status = refused("the second create", outcome, 409, "AlreadyExists")?;
    same(
        "the message",
        status.message.as_str(),
        "configmaps \"a\" already exists",
    )
}

/// A generated name starts with what was asked for.
pub async fn names_are_generated(arena: Arena) -> Verdict {
    let first = arena.widget(json!({"generateName": "run-"})).await?;
    let second = arena.widget(json!({"generateName": "run-"})).await?;
    let name = first.metadata.name.clone().unwrap_or_default();
    holds(
        "the prefix and five letters",
        name.starts_with("run-") && name.len() == 9,
    )?;
    holds(
        "two names differ",
        first.metadata.name != second.metadata.name,
    )?;
    same(
        "generateName stays",
        first.metadata.generate_name.as_deref(),
        Some("run-"),
    )
}

/// Names that are no names, and objects without one, are invalid.
pub async fn bad_names_are_invalid(arena: Arena) -> Verdict {
    for metadata in [
        json!({"name": "Upper_Case"}),
        json!({}),
        json!({"name": "-a"}),
    ] {
        let object = dynamic(widget(metadata));
        let outcome = arena
            .widgets()
            .create(&PostParams::default(), &object)
            .await;
        refused("a bad name", outcome, 422, "Invalid")?;
    }
    Ok(())
}

/// Objects live in namespaces that exist.
pub async fn a_namespace_must_exist(arena: Arena) -> Verdict {
    let path = "/api/v1/namespaces/there-is-no-such-namespace/configmaps";
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let (code, status) = arena.raw("POST", path, "application/json", &body).await?;
    same("the code", code, 404)?;
    same(
        "the message",
        &status["message"],
        "namespaces \"there-is-no-such-namespace\" not found",
    )?;
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    let path = format!("/api/v1/namespaces/{}/configmaps", arena.namespace);
    let (code, _) = arena
        .raw("POST", &path, "application/json", &elsewhere)
        .await?;
    same("the code for another namespace", code, 400)
}

/// Kinds and versions in bodies must be those of the path.
pub async fn bodies_are_of_the_kind_of_the_path(arena: Arena) -> Verdict {
    let path = arena.path("widgets");
    for (version, kind, wanted) in [("v2", "Widget", 400), ("v1", "Gadget", 422)] {
        let body = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind, "metadata": {"name": "a"}});
        let (code, _) = arena.raw("POST", &path, "application/json", &body).await?;
        same(kind, code, wanted)?;
    }
    let path = format!("/api/v1/namespaces/{}/configmaps", arena.namespace);
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let (code, _) = arena.raw("POST", &path, "application/json", &body).await?;
    same("a built-in kind", code, 400)
}
