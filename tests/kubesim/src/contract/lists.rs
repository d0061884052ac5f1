//! Lists and reads: snapshots, pages, selectors, and metadata alone.

use std::collections::BTreeSet;

use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, WatchParams};
use serde_json::{Value, json};

use super::{Arena, Seen, Verdict, holds, names, refused, same, version};

/// A watch from the version of a list misses nothing and repeats nothing.
pub async fn a_watch_goes_on_where_a_list_ended(arena: Arena) -> Verdict {
    let maps = arena.maps();
    arena.map("before", json!({})).await?;
    let params = ListParams::default();
    let list = maps.list(&params).await?;
    let from = list.metadata.resource_version.clone().unwrap_or_default();
    arena.map("after", json!({})).await?;
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    maps.patch("before", &PatchParams::default(), &patch)
        .await?;
    maps.delete("after", &DeleteParams::default()).await?;

    let mut seen = Seen::open(
        &maps,
        &WatchParams::default().fields("metadata.name!=kube-root-ca.crt"),
        &from,
    )
    .await?;
    let added = seen.expect("ADDED", "after").await?;
    let modified = seen.expect("MODIFIED", "before").await?;
    let deleted = seen.expect("DELETED", "after").await?;
    let versions: Vec<u64> = [added, modified, deleted]
        .iter()
        .flatten()
        .map(|object| version(object).parse().unwrap_or_default())
        .collect();
    holds(
        "every event has a higher version than the one before",
        versions.is_sorted() && versions.len() == 3,
    )
}

/// Pages of one list show the state of its first page, whatever happens meanwhile.
pub async fn pages_show_one_snapshot(arena: Arena) -> Verdict {
    let maps = arena.maps();
    for number in 0..5 {
        arena
            .map(&format!("m{number}"), json!({"of": "pages"}))
            .await?;
    }
    let params = ListParams::default().labels("of=pages").limit(2);
    let first = maps.list(&params).await?;
    same("the first page", names(&first.items), ["m0", "m1"])?;
    arena.map("m11", json!({"of": "pages"})).await?;
    maps.delete("m2", &DeleteParams::default()).await?;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"of": "other"}}}));
    maps.patch("m3", &PatchParams::default(), &patch).await?;

    let token = first.metadata.continue_.clone().unwrap_or_default();
    let second = maps.list(&params.clone().continue_token(&token)).await?;
    same("the second page", names(&second.items), ["m2", "m3"])?;
    same(
        "the version of the second page",
        &second.metadata.resource_version,
        &first.metadata.resource_version,
    )?;
    let token = second.metadata.continue_.clone().unwrap_or_default();
    let third = maps.list(&params.continue_token(&token)).await?;
    same("the third page", names(&third.items), ["m4"])?;
    same(
        "the last page has no token",
        third.metadata.continue_.unwrap_or_default(),
        "",
    )
}

/// A page without a selector tells how many are left.
pub async fn a_page_counts_what_remains(arena: Arena) -> Verdict {
    for number in 0..3 {
        arena.widget(json!({"name": format!("w{number}")})).await?;
    }
    let page = arena
        .widgets()
        .list(&ListParams::default().limit(1))
        .await?;
    same("remaining", page.metadata.remaining_item_count, Some(2))
}

/// The token of a forgotten snapshot is gone, and its refusal offers another.
pub async fn a_forgotten_page_is_gone(arena: Arena) -> Verdict {
    for number in 0..3 {
        arena.widget(json!({"name": format!("w{number}")})).await?;
    }
    let first = arena
        .widgets()
        .list(&ListParams::default().limit(1))
        .await?;
    arena.widget(json!({"name": "w9"})).await?;
    arena.forget();
    let token = first.metadata.continue_.unwrap_or_default();
    let path = arena.path("widgets");
    let (code, status) = arena
        .ask("GET", &format!("{path}?limit=1&continue={token}"))
        .await?;
    same("the code", code, 410)?;
    same("the reason", &status["reason"], "Expired")?;
    let token = status["metadata"]["continue"].as_str().unwrap_or_default();
    let (code, rest) = arena
        .ask("GET", &format!("{path}?continue={token}"))
        .await?;
    same("the code of the rest", code, 200)?;
    same("the rest", rest["items"].as_array().map(Vec::len), Some(3))
}

/// A token that the server did not make is a bad request.
pub async fn a_made_up_token_is_refused(arena: Arena) -> Verdict {
    let params = ListParams::default()
        .limit(1)
        .continue_token("bm90IGEgdG9rZW4");
    refused(
        "a made-up token",
        arena.maps().list(&params).await,
        400,
        "BadRequest",
    )
    .map(drop)
}

/// Label selectors have their whole grammar.
pub async fn label_selectors_choose(arena: Arena) -> Verdict {
    arena
        .map("a", json!({"app": "web", "tier": "front"}))
        .await?;
    arena.map("b", json!({"app": "db"})).await?;
    arena.map("c", json!({"tier": "back"})).await?;
    for (selector, wanted) in [
        ("app=web", vec!["a"]),
        ("app==web", vec!["a"]),
        ("app", vec!["a", "b"]),
        ("!app,tier", vec!["c"]),
        ("app!=web,tier", vec!["c"]),
        ("app in (web, db)", vec!["a", "b"]),
        ("app in (web, db),tier notin (front)", vec!["b"]),
        ("tier notin (front),app", vec!["b"]),
        ("app=none", vec![]),
    ] {
        let found = arena
            .maps()
            .list(&ListParams::default().labels(selector))
            .await?;
        same(selector, names(&found.items), wanted)?;
    }
    let bad = ListParams::default().labels("app in web");
    refused(
        "a bad selector",
        arena.maps().list(&bad).await,
        400,
        "BadRequest",
    )
    .map(drop)
}

/// Field selectors know name and namespace.
pub async fn field_selectors_choose(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    arena.widget(json!({"name": "b"})).await?;
    let here = format!("metadata.namespace={}", arena.namespace);
    for (selector, wanted) in [
        ("metadata.name=a", vec!["a"]),
        ("metadata.name==b", vec!["b"]),
        ("metadata.name!=a", vec!["b"]),
        (here.as_str(), vec!["a", "b"]),
        ("metadata.namespace!=x,metadata.name=a", vec!["a"]),
        ("metadata.namespace=x", vec![]),
    ] {
        let found = arena
            .widgets()
            .list(&ListParams::default().fields(selector))
            .await?;
        same(selector, names(&found.items), wanted)?;
    }
    let bad = ListParams::default().fields("spec.size=1");
    let outcome = arena.widgets().list(&bad).await;
    let status = refused("an unknown field", outcome, 400, "BadRequest")?;
    same(
        "the message",
        status.message.as_str(),
        "field label not supported: spec.size",
    )?;
    let outcome = arena.maps().list(&bad).await;
    let status = refused("of a built-in kind", outcome, 400, "BadRequest")?;
    let wanted = "\"spec.size\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    same("the message", status.message.as_str(), wanted)
}

/// A version that is still to come is a timeout.
pub async fn a_version_from_the_future_times_out(arena: Arena) -> Verdict {
    let params = ListParams::default()
        .at("999999999999")
        .matching(kube::api::VersionMatch::NotOlderThan);
    refused(
        "a future version",
        arena.maps().list(&params).await,
        504,
        "Timeout",
    )
    .map(drop)
}

/// Clients may ask for metadata alone, in every kind of read.
pub async fn metadata_can_be_read_alone(arena: Arena) -> Verdict {
    let made = arena
        .widget(json!({"name": "a", "labels": {"x": "y"}}))
        .await?;
    let widgets = arena.widgets();
    let one = widgets.get_metadata("a").await?;
    same("uid", &one.metadata.uid, &made.metadata.uid)?;
    same("labels", &one.metadata.labels, &made.metadata.labels)?;
    let list = widgets.list_metadata(&ListParams::default()).await?;
    let listed: Vec<_> = list
        .items
        .iter()
        .map(|item: &PartialObjectMeta<_>| &item.metadata.uid)
        .collect();
    same("the list", listed, [&made.metadata.uid])?;

    let path = arena.path("widgets");
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, list) = arena.raw("GET", &path, accept, &Value::Null).await?;
    same(
        "kind of the list",
        &list["kind"],
        "PartialObjectMetadataList",
    )?;
    same("version of the list", &list["apiVersion"], "meta.k8s.io/v1")?;
    same(
        "kind of an item",
        &list["items"][0]["kind"],
        "PartialObjectMetadata",
    )?;
    let fields: BTreeSet<&str> = list["items"][0]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(field, _)| field.as_str())
        .collect();
    same(
        "fields of an item",
        fields,
        BTreeSet::from(["apiVersion", "kind", "metadata"]),
    )
}

/// What is not there is not found, with details.
pub async fn a_missing_object_is_not_found(arena: Arena) -> Verdict {
    let status = refused(
        "a missing map",
        arena.maps().get("none").await,
        404,
        "NotFound",
    )?;
    same(
        "the message",
        status.message.as_str(),
        "configmaps \"none\" not found",
    )?;
    let status = refused(
        "a missing widget",
        arena.widgets().get("none").await,
        404,
        "NotFound",
    )?;
    same(
        "the message",
        status.message.as_str(),
        "widgets.contract.kubesim.dev \"none\" not found",
    )?;
    let found = status.details.map(|details| (details.name, details.group));
    same(
        "the details",
        found,
        Some(("none".to_owned(), super::GROUP.to_owned())),
    )
}
