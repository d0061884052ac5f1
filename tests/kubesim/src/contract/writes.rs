//! Creates, updates and patches: what the server fills in, refuses, and leaves alone.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Arena, GROUP, Verdict, create, dynamic, holds, refused, same, uid, version, widget};

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

/// An update needs the version it was made from.
pub async fn a_stale_update_conflicts(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let first = arena.widget(json!({"name": "a"})).await?;
    let mut second = first.clone();
    second.data["spec"]["size"] = 2.into();
    let second = widgets
        .replace("a", &PostParams::default(), &second)
        .await?;
    same("generation", second.metadata.generation, Some(2))?;

    let mut stale = first.clone();
    stale.data["spec"]["size"] = 3.into();
    let outcome = widgets.replace("a", &PostParams::default(), &stale).await;
    refused("a stale update", outcome, 409, "Conflict")?;

    let mut blind = first;
    blind.metadata.resource_version = None;
    let outcome = widgets.replace("a", &PostParams::default(), &blind).await;
    refused("an update without a version", outcome, 422, "Invalid")?;

    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 4}}));
    let outcome = widgets.patch("a", &PatchParams::default(), &patch).await;
    refused("a patch with a stale version", outcome, 409, "Conflict")?;
    same(
        "nothing happened",
        version(&widgets.get("a").await?),
        version(&second),
    )
}

/// An update of an object that was made anew meanwhile conflicts.
pub async fn an_update_of_another_uid_conflicts(arena: Arena) -> Verdict {
    let mut other = arena.map("a", json!({})).await?;
    other.metadata.uid = Some("00000000-0000-4000-8000-000000000000".into());
    other.metadata.resource_version = None;
    let outcome = arena
        .maps()
        .replace("a", &PostParams::default(), &other)
        .await;
    refused("another uid", outcome, 409, "Conflict")?;
    Ok(())
}

/// A write that changes nothing makes no new version.
pub async fn a_write_that_changes_nothing_is_none(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let same_again = arena
        .widgets()
        .replace("a", &PostParams::default(), &made)
        .await?;
    same("after an update", version(&same_again), version(&made))?;
    let patch = Patch::Merge(json!({"spec": {"size": 1}}));
    let patched = arena
        .widgets()
        .patch("a", &PatchParams::default(), &patch)
        .await?;
    same("after a patch", version(&patched), version(&made))
}

/// What the server owns cannot be written.
pub async fn server_fields_are_kept(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let mut changed = made.clone();
    changed.metadata.generation = Some(99);
    changed.metadata.creation_timestamp = None;
    changed.data["spec"]["size"] = 2.into();
    let new = arena
        .widgets()
        .replace("a", &PostParams::default(), &changed)
        .await?;
    same("generation", new.metadata.generation, Some(2))?;
    same(
        "creation",
        &new.metadata.creation_timestamp,
        &made.metadata.creation_timestamp,
    )?;
    same("uid", uid(&new), uid(&made))?;
    let mut graceful = new.clone();
    graceful.metadata.deletion_grace_period_seconds = Some(5);
    let widgets = arena.widgets();
    let outcome = widgets
        .replace("a", &PostParams::default(), &graceful)
        .await;
    let status = refused("a grace period", outcome, 422, "Invalid")?;
    holds(
        "the message",
        status
            .message
            .contains("metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"),
    )
}

/// A merge patch sets, replaces and, by null, removes.
pub async fn merge_patches_merge(arena: Arena) -> Verdict {
    arena.map("a", json!({"keep": "1", "drop": "1"})).await?;
    let patch = Patch::Merge(json!({
        "metadata": {"labels": {"drop": null, "new": "2"}},
        "data": {"value": null, "other": "x"},
    }));
    let new = arena
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await?;
    same(
        "labels",
        json!(new.metadata.labels),
        json!({"keep": "1", "new": "2"}),
    )?;
    same("data", &new.data["data"], &json!({"other": "x"}))?;
    let outcome = arena
        .maps()
        .patch("none", &PatchParams::default(), &patch)
        .await;
    refused("a patch of nothing", outcome, 404, "NotFound")?;
    Ok(())
}

/// A JSON patch does all of its steps or none.
pub async fn json_patches_test_and_set(arena: Arena) -> Verdict {
    arena.map("a", json!({})).await?;
    let params = PatchParams::default();
    let steps = |wanted: &str| {
        let steps = json!([
            {"op": "replace", "path": "/data/value", "value": "2"},
            {"op": "test", "path": "/data/value", "value": wanted},
            {"op": "add", "path": "/data/more", "value": "x"},
        ]);
        Patch::<Value>::Json(serde_json::from_value(steps).expect("the steps are a JSON patch"))
    };
    let outcome = arena.maps().patch("a", &params, &steps("1")).await;
    refused("a test that fails", outcome, 422, "Invalid")?;
    same(
        "nothing happened",
        &arena.maps().get("a").await?.data["data"],
        &json!({"value": "1"}),
    )?;
    let new = arena.maps().patch("a", &params, &steps("2")).await?;
    same(
        "data",
        &new.data["data"],
        &json!({"value": "2", "more": "x"}),
    )
}

/// Custom resources take no strategic merge patches.
pub async fn custom_kinds_take_no_strategic_patches(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    let patch = Patch::Strategic(json!({"spec": {"size": 2}}));
    let outcome = arena
        .widgets()
        .patch("a", &PatchParams::default(), &patch)
        .await;
    refused("a strategic patch", outcome, 415, "UnsupportedMediaType")?;
    Ok(())
}

/// The status subresource writes the status, and nothing else writes it.
pub async fn status_is_written_apart(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"ready": true},
    });
    let made = create(&widgets, object).await?;
    same(
        "a create sets no status",
        &made.data["status"],
        &Value::Null,
    )?;
    let params = PatchParams::default();
    let both = Patch::Merge(
        json!({"spec": {"size": 2}, "status": {"ready": true}, "metadata": {"labels": {"a": "b"}}}),
    );
    let new = widgets.patch("a", &params, &both).await?;
    same("a patch sets no status", &new.data["status"], &Value::Null)?;
    same(
        "a patch sets the spec",
        &new.data["spec"],
        &json!({"size": 2}),
    )?;

    let both = Patch::Merge(
        json!({"spec": {"size": 3}, "status": {"ready": true}, "metadata": {"labels": {"a": "c"}}}),
    );
    let new = widgets.patch_status("a", &params, &both).await?;
    same("the status", &new.data["status"], &json!({"ready": true}))?;
    same("the spec stays", &new.data["spec"], &json!({"size": 2}))?;
    same("labels stay", json!(new.metadata.labels), json!({"a": "b"}))?;
    same(
        "generation counts the spec",
        new.metadata.generation,
        Some(2),
    )?;
    same(
        "it can be read",
        &widgets.get_status("a").await?.data["status"],
        &json!({"ready": true}),
    )
}

/// Empty labels and finalizers are as none.
pub async fn empty_metadata_is_none(arena: Arena) -> Verdict {
    let metadata = json!({"name": "a", "labels": {}, "finalizers": [], "annotations": null});
    let made = arena.widget(metadata).await?;
    same("labels", made.metadata.labels, None)?;
    same("finalizers", made.metadata.finalizers, None)?;
    let params = PatchParams::default();
    let some = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    arena.widgets().patch("a", &params, &some).await?;
    let none = Patch::Merge(json!({"metadata": {"labels": {"a": null}}}));
    let new = arena.widgets().patch("a", &params, &none).await?;
    same("labels", new.metadata.labels, None)
}

/// Without the subresource, the status is a field like others.
pub async fn without_the_subresource_status_is_a_field(arena: Arena) -> Verdict {
    let gadgets = arena.gadgets();
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget",
        "metadata": {"name": "a"}, "status": {"phase": "Running"},
    });
    let made = create(&gadgets, object).await?;
    same(
        "a create sets it",
        &made.data["status"],
        &json!({"phase": "Running"}),
    )?;
    let patch = Patch::Merge(json!({"status": {"phase": "Done"}}));
    let outcome = gadgets
        .patch_status("a", &PatchParams::default(), &patch)
        .await;
    refused("the subresource", outcome, 404, "NotFound")?;
    let new = gadgets.patch("a", &PatchParams::default(), &patch).await?;
    same(
        "a patch sets it",
        &new.data["status"],
        &json!({"phase": "Done"}),
    )?;
    same("generation counts it", new.metadata.generation, Some(2))
}

/// A dry run answers as if, and leaves everything as it was.
pub async fn a_dry_run_changes_nothing(arena: Arena) -> Verdict {
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object = dynamic(widget(json!({"name": "a"})));
    let answered = arena.widgets().create(&dry, &object).await?;
    same("the answer", &answered.data["spec"], &json!({"size": 1}))?;
    refused(
        "it was not created",
        arena.widgets().get("a").await,
        404,
        "NotFound",
    )?;
    arena.widget(json!({"name": "a"})).await?;
    let patch = Patch::Merge(json!({"spec": {"size": 9}}));
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let answered = arena.widgets().patch("a", &params, &patch).await?;
    same("the answer", &answered.data["spec"], &json!({"size": 9}))?;
    same(
        "it was not patched",
        &arena.widgets().get("a").await?.data["spec"],
        &json!({"size": 1}),
    )
}

/// Kinds and versions in bodies must be those of the path.
pub async fn bodies_are_of_the_kind_of_the_path(arena: Arena) -> Verdict {
    let path = format!("/apis/{GROUP}/v1/namespaces/{}/widgets", arena.namespace);
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
