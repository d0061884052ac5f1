//! Deletions: preconditions, finalizers, and what goes along.

use kube::api::{DeleteParams, ListParams, Preconditions, WatchParams};
use serde_json::{Value, json};

use super::{Arena, GROUP, Seen, Verdict, eventually, holds, names, refused, same, uid, version};

/// A deletion may insist on uid and version.
pub async fn preconditions_must_hold(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let made = arena.widget(json!({"name": "a"})).await?;
    let only = |uid: Option<String>, resource_version: Option<String>| {
        DeleteParams::default().preconditions(Preconditions {
            uid,
            resource_version,
        })
    };
    let other = "00000000-0000-4000-8000-000000000000".to_owned();
    refused(
        "another uid",
        widgets.delete("a", &only(Some(other), None)).await,
        409,
        "Conflict",
    )?;
    let new = arena.merge("a", json!({"spec": {"size": 2}})).await?;
    let stale = only(Some(uid(&made)), Some(version(&made)));
    refused(
        "a stale version",
        widgets.delete("a", &stale).await,
        409,
        "Conflict",
    )?;
    widgets
        .delete("a", &only(Some(uid(&new)), Some(version(&new))))
        .await?;
    refused("it is gone", widgets.get("a").await, 404, "NotFound")?;
    refused("twice", arena.delete("a").await, 404, "NotFound").map(drop)
}

/// A deletion without finalizers answers a status that names what went.
pub async fn a_deletion_tells_what_went(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let path = arena.path("widgets/a");
    let (code, status) = arena.ask("DELETE", &path).await?;
    same("the code", code, 200)?;
    same("the kind", &status["kind"], "Status")?;
    same("the status", &status["status"], "Success")?;
    same("the uid", &status["details"]["uid"], &json!(uid(&made)))
}

/// Finalizers hold an object until the last one goes.
pub async fn finalizers_hold_a_deletion(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let made = arena
        .widget(json!({"name": "a", "finalizers": ["example.dev/hold", "example.dev/too"]}))
        .await?;
    let mut seen = Seen::open(&widgets, &WatchParams::default(), &version(&made)).await?;
    arena.delete("a").await?;
    let marked = widgets.get("a").await?;
    holds("it is marked", marked.metadata.deletion_timestamp.is_some())?;
    same("generation", marked.metadata.generation, Some(2))?;
    seen.expect("MODIFIED", "a").await?;
    arena.delete("a").await?;
    same(
        "a second deletion changes nothing",
        version(&widgets.get("a").await?),
        version(&marked),
    )?;

    let outcome = arena
        .merge(
            "a",
            json!({"metadata": {"finalizers": ["example.dev/hold", "example.dev/late"]}}),
        )
        .await;
    refused("a new finalizer", outcome, 422, "Invalid")?;
    arena
        .merge(
            "a",
            json!({"metadata": {"finalizers": ["example.dev/hold"]}}),
        )
        .await?;
    seen.expect("MODIFIED", "a").await?;
    arena
        .merge("a", json!({"metadata": {"finalizers": null}}))
        .await?;
    let gone = seen.expect("DELETED", "a").await?;
    holds(
        "it went marked",
        gone.is_some_and(|gone| gone.metadata.deletion_timestamp.is_some()),
    )?;
    refused("it is gone", widgets.get("a").await, 404, "NotFound").map(drop)
}

/// A deleted object is told with a version of its own.
pub async fn a_deletion_has_a_version(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let made = arena.widget(json!({"name": "a"})).await?;
    let mut seen = Seen::open(&widgets, &WatchParams::default(), &version(&made)).await?;
    arena.delete("a").await?;
    let gone = seen.expect("DELETED", "a").await?;
    let numbers = gone.map(|gone| (number(&version(&gone)), number(&version(&made))));
    holds(
        "the version is newer",
        numbers.is_some_and(|(gone, made)| gone > made),
    )
}

/// A deletion in the background takes dependents along, and theirs.
pub async fn dependents_go_with_their_owner(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let owner = arena.widget(json!({"name": "owner"})).await?;
    let child = arena.widget(owned("child", &[&owner])).await?;
    arena.widget(owned("grandchild", &[&child])).await?;
    let other = arena.widget(json!({"name": "other"})).await?;
    arena.widget(owned("shared", &[&owner, &other])).await?;
    widgets.delete("owner", &DeleteParams::background()).await?;
    eventually("dependents go", || async {
        Ok(names(&widgets.list(&ListParams::default()).await?.items) == ["other", "shared"])
    })
    .await?;
    eventually("the other owner alone is left", || async {
        Ok(widgets
            .get("shared")
            .await?
            .metadata
            .owner_references
            .unwrap_or_default()
            .len()
            == 1)
    })
    .await
}

/// Orphans stay, without their owner.
pub async fn orphans_stay(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let owner = arena.widget(json!({"name": "owner"})).await?;
    arena.widget(owned("child", &[&owner])).await?;
    widgets.delete("owner", &DeleteParams::orphan()).await?;
    eventually("the owner goes", || async {
        Ok(widgets.get_opt("owner").await?.is_none())
    })
    .await?;
    same(
        "the child has no owner",
        widgets.get("child").await?.metadata.owner_references,
        None,
    )
}

/// In the foreground, the owner waits for dependents that block it.
pub async fn a_foreground_deletion_waits_for_dependents(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let owner = arena.widget(json!({"name": "owner"})).await?;
    let mut child = owned("child", &[&owner]);
    child["finalizers"] = json!(["example.dev/hold"]);
    child["ownerReferences"][0]["blockOwnerDeletion"] = true.into();
    arena.widget(child).await?;
    widgets.delete("owner", &DeleteParams::foreground()).await?;
    eventually("the child is marked", || async {
        Ok(widgets
            .get("child")
            .await?
            .metadata
            .deletion_timestamp
            .is_some())
    })
    .await?;
    let waiting = widgets.get("owner").await?;
    same(
        "the owner waits",
        json!(waiting.metadata.finalizers),
        json!(["foregroundDeletion"]),
    )?;
    arena
        .merge("child", json!({"metadata": {"finalizers": null}}))
        .await?;
    eventually("both go", || async {
        Ok(widgets.list(&ListParams::default()).await?.items.is_empty())
    })
    .await
}

/// Options of a deletion may come in the query.
pub async fn options_come_in_the_query_too(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    let path = arena.path("widgets/a");
    let delete = async |query: &str| {
        let path = format!("{path}?{query}");
        arena.ask("DELETE", &path).await
    };
    for (query, wanted) in [
        ("dryRun=Some", 422),
        ("propagationPolicy=Wild", 422),
        ("gracePeriodSeconds=soon", 400),
        ("dryRun=All", 200),
        ("gracePeriodSeconds=5&propagationPolicy=Background", 200),
        ("dryRun=All", 404),
    ] {
        let (code, answer) = delete(query).await?;
        same(&format!("{query}: {}", answer["message"]), code, wanted)?;
    }
    Ok(())
}

/// A collection can be deleted by selector.
pub async fn collections_are_deleted_by_selector(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    for name in ["a", "b"] {
        arena
            .widget(json!({"name": name, "labels": {"go": "yes"}}))
            .await?;
    }
    arena.widget(json!({"name": "c"})).await?;
    let outcome = widgets
        .delete_collection(
            &DeleteParams::default(),
            &ListParams::default().labels("go=yes"),
        )
        .await?;
    let went = outcome
        .left()
        .map(|list| names(&list.items))
        .unwrap_or_default();
    same("what went", went, ["a", "b"])?;
    same(
        "what stays",
        names(&widgets.list(&ListParams::default()).await?.items),
        ["c"],
    )
}

/// A namespace takes its content along, and waits for it.
pub async fn a_namespace_goes_with_its_content(arena: Arena) -> Verdict {
    let held = arena
        .widget(json!({"name": "held", "finalizers": ["example.dev/hold"]}))
        .await?;
    arena.map("free", json!({})).await?;
    let path = format!("/api/v1/namespaces/{}", arena.namespace);
    arena.ask("DELETE", &path).await?;
    let maps = arena.maps();
    eventually("free content goes", || async {
        Ok(maps.get_opt("free").await?.is_none())
    })
    .await?;
    let (_, namespace) = arena.ask("GET", &path).await?;
    same("the phase", &namespace["status"]["phase"], "Terminating")?;
    let late = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let (code, _) = arena
        .raw(
            "POST",
            &format!("{path}/configmaps"),
            "application/json",
            &late,
        )
        .await?;
    same("nothing new is created", code, 403)?;
    arena
        .merge(
            "held",
            json!({"metadata": {"finalizers": null, "uid": uid(&held)}}),
        )
        .await?;
    eventually("the namespace goes", || async {
        Ok(arena.ask("GET", &path).await?.0 == 404)
    })
    .await
}

fn owned(name: &str, owners: &[&kube::core::DynamicObject]) -> Value {
    let owners: Vec<Value> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": format!("{GROUP}/v1"),
                "kind": "Widget",
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
            })
        })
        .collect();
    json!({"name": name, "ownerReferences": owners})
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
