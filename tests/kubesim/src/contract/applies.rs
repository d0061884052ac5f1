//! Server-side apply: ownership, conflicts, and what an apply takes back.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{Arena, GROUP, Verdict, holds, refused, same, uid, version};

/// An apply creates, changes, and takes back what its manager no longer applies.
pub async fn an_apply_owns_what_it_sets(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let config = |annotations: Value| {
        let metadata = json!({"name": "a", "annotations": annotations});
        Patch::Apply(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": metadata}),
        )
    };
    let me = PatchParams::apply("me");
    widgets
        .patch("a", &me, &config(json!({"x": "1", "y": "1"})))
        .await?;
    let merge = Patch::Merge(json!({"metadata": {"annotations": {"z": "1"}}}));
    widgets
        .patch(
            "a",
            &PatchParams {
                field_manager: Some("somebody".into()),
                ..PatchParams::default()
            },
            &merge,
        )
        .await?;
    let new = widgets.patch("a", &me, &config(json!({"x": "2"}))).await?;
    same(
        "annotations",
        json!(new.metadata.annotations),
        json!({"x": "2", "z": "1"}),
    )?;

    let outcome = widgets
        .patch("a", &PatchParams::apply("you"), &config(json!({"x": "3"})))
        .await;
    let status = refused("a field of `me`", outcome, 409, "Conflict")?;
    let causes = status
        .details
        .map(|details| details.causes)
        .unwrap_or_default();
    same("causes", causes.len(), 1)?;
    same(
        "the field",
        causes[0].field.as_str(),
        ".metadata.annotations.x",
    )?;
    same(
        "the reason",
        causes[0].reason.as_str(),
        "FieldManagerConflict",
    )?;
    let forced = widgets
        .patch(
            "a",
            &PatchParams::apply("you").force(),
            &config(json!({"x": "3"})),
        )
        .await?;
    same(
        "annotations",
        json!(forced.metadata.annotations),
        json!({"x": "3", "z": "1"}),
    )?;
    let again = widgets
        .patch(
            "a",
            &PatchParams::apply("you").force(),
            &config(json!({"x": "3"})),
        )
        .await?;
    same(
        "an equal apply changes nothing",
        version(&again),
        version(&forced),
    )
}

/// An apply of finalizers keeps those of others.
pub async fn applied_finalizers_are_a_set(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    arena
        .widget(json!({"name": "a", "finalizers": ["example.dev/theirs"]}))
        .await?;
    let config = |metadata: Value| {
        Patch::Apply(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": metadata}),
        )
    };
    let me = PatchParams::apply("me");
    let mine = json!({"name": "a", "finalizers": ["example.dev/mine"]});
    let new = widgets.patch("a", &me, &config(mine)).await?;
    same(
        "both",
        json!(new.metadata.finalizers),
        json!(["example.dev/theirs", "example.dev/mine"]),
    )?;
    let new = widgets
        .patch("a", &me, &config(json!({"name": "a"})))
        .await?;
    same(
        "mine is gone",
        json!(new.metadata.finalizers),
        json!(["example.dev/theirs"]),
    )?;
    arena
        .merge("a", json!({"metadata": {"finalizers": null}}))
        .await?;
    Ok(())
}

/// An apply to the status subresource sets the status, and owns nothing else.
pub async fn an_apply_of_the_status_sets_the_status_alone(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    arena.widget(json!({"name": "a"})).await?;
    let config = |status: Value| {
        Patch::Apply(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": {"name": "a"}, "spec": {"size": 9}, "status": status,
        }))
    };
    let me = PatchParams::apply("me").force();
    let new = widgets
        .patch_status("a", &me, &config(json!({"ready": true, "seen": 1})))
        .await?;
    same(
        "the status",
        &new.data["status"],
        &json!({"ready": true, "seen": 1}),
    )?;
    same("the spec stays", &new.data["spec"], &json!({"size": 1}))?;
    let new = widgets
        .patch_status("a", &me, &config(json!({"ready": false})))
        .await?;
    same("the status", &new.data["status"], &json!({"ready": false}))?;
    let none = widgets.patch_status("none", &me, &config(json!({}))).await;
    refused("the status of nothing", none, 404, "NotFound").map(drop)
}

/// An apply that names a uid never makes or changes another object.
pub async fn an_apply_with_a_uid_means_that_object(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let config = |uid: &str| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": {"name": "a", "uid": uid, "annotations": {"example.dev/stored": "true"}},
        })
    };
    let apply = async |uid: &str| {
        let params = PatchParams::apply("contract").force();
        widgets
            .patch("a", &params, &Patch::Apply(config(uid)))
            .await
    };
    let other = "00000000-0000-4000-8000-000000000000";
    refused("there is none", apply(other).await, 409, "Conflict")?;
    let made = arena.widget(json!({"name": "a"})).await?;
    match apply(other).await {
        Err(kube::Error::Api(status)) => {
            holds("another is refused", matches!(status.code, 409 | 422))?;
        }
        outcome => {
            refused("another", outcome, 409, "Conflict")?;
        }
    }
    let annotated = apply(&uid(&made)).await?;
    same("the right one", uid(&annotated), uid(&made))?;
    let again = apply(&uid(&made)).await?;
    same("twice is once", version(&again), version(&annotated))
}

/// A merge patch that names a uid or a version means that object, as it was then.
pub async fn a_merge_with_a_uid_means_that_object(arena: Arena) -> Verdict {
    let hold = "example.dev/hold";
    let made = arena
        .widget(json!({"name": "a", "finalizers": [hold, "example.dev/too"]}))
        .await?;
    let merge = async |metadata: Value| arena.merge("a", json!({"metadata": metadata})).await;
    let other = "00000000-0000-4000-8000-000000000000";
    for (what, metadata) in [
        ("another uid", json!({"uid": other, "finalizers": [hold]})),
        (
            "an old version",
            json!({"resourceVersion": "1", "finalizers": [hold]}),
        ),
    ] {
        match merge(metadata).await {
            Err(kube::Error::Api(status)) => holds(what, matches!(status.code, 409 | 422))?,
            outcome => {
                refused(what, outcome, 409, "Conflict")?;
            }
        }
    }
    let now = json!({"uid": uid(&made), "resourceVersion": version(&made), "finalizers": [hold]});
    let left = merge(now).await?;
    same(
        "the finalizers",
        left.metadata.finalizers,
        Some(vec![hold.to_owned()]),
    )?;
    let none = merge(json!({"uid": uid(&made), "finalizers": null})).await?;
    same("no finalizers", none.metadata.finalizers, None)
}
