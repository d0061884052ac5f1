//! Updates and patches: what the server fills in, refuses, and leaves alone.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Arena, GROUP, Verdict, create, dynamic, holds, refused, same, uid, version, widget};

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

    let outcome = arena
        .merge(
            "a",
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 4}}),
        )
        .await;
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
    refused("another uid", outcome, 409, "Conflict").map(drop)
}

/// A write that changes nothing makes no new version.
pub async fn a_write_that_changes_nothing_is_none(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let same_again = arena
        .widgets()
        .replace("a", &PostParams::default(), &made)
        .await?;
    same("after an update", version(&same_again), version(&made))?;
    let patched = arena.merge("a", json!({"spec": {"size": 1}})).await?;
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
    refused("a patch of nothing", outcome, 404, "NotFound").map(drop)
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
    refused("a strategic patch", outcome, 415, "UnsupportedMediaType").map(drop)
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
    let new = arena.merge("a", json!({"spec": {"size": 2}, "status": {"ready": true}, "metadata": {"labels": {"a": "b"}}})).await?;
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
    arena
        .merge("a", json!({"metadata": {"labels": {"a": "b"}}}))
        .await?;
    let new = arena
        .merge("a", json!({"metadata": {"labels": {"a": null}}}))
        .await?;
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
