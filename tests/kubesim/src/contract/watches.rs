//! Watches: where they begin, what they show, and how they end.

use std::time::Duration;

use kube::api::{Patch, PatchParams, WatchParams};
use serde_json::{Value, json};

use super::{Arena, PATIENCE, Seen, Verdict, holds, refused, same, version};

/// Without a version, a watch begins with what is there.
pub async fn a_watch_from_nowhere_begins_with_what_is_there(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    arena.widget(json!({"name": "b"})).await?;
    // With bookmarks, such a watch takes a storage that tells its progress.
    let params = WatchParams::default().disable_bookmarks();
    for from in ["0", ""] {
        let mut seen = Seen::open(&arena.widgets(), &params, from).await?;
        let mut first = [
            seen.next("the first").await?.1,
            seen.next("the second").await?.1,
        ];
        first.sort();
        same("what is there", first, ["a", "b"])?;
        let name = format!("late-{}", from.len());
        arena
            .widget(json!({"name": name, "labels": {"late": "yes"}}))
            .await?;
        seen.expect("ADDED", &name).await?;
        arena.delete(&name).await?;
    }
    Ok(())
}

/// To a watch with a selector, objects come and go as they match it.
pub async fn a_selector_turns_changes_into_comings_and_goings(arena: Arena) -> Verdict {
    let widgets = arena.widgets();
    let made = arena.widget(json!({"name": "a"})).await?;
    let params = WatchParams::default().labels("on=yes");
    let mut seen = Seen::open(&widgets, &params, &version(&made)).await?;
    let label = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"on": value}}}));
    let set = PatchParams::default();
    widgets.patch("a", &set, &label(json!("yes"))).await?;
    seen.expect("ADDED", "a").await?;
    arena.merge("a", json!({"spec": {"size": 2}})).await?;
    seen.expect("MODIFIED", "a").await?;
    let left = widgets.patch("a", &set, &label(json!("no"))).await?;
    let shown = seen.expect("DELETED", "a").await?;
    same(
        "it leaves at the version of the change",
        shown.map(|shown| version(&shown)),
        Some(version(&left)),
    )?;
    widgets
        .patch("a", &set, &Patch::Merge(json!({"spec": {"size": 3}})))
        .await?;
    arena.delete("a").await?;
    arena
        .widget(json!({"name": "b", "labels": {"on": "yes"}}))
        .await?;
    seen.expect("ADDED", "b").await.map(drop)
}

/// A watch by name shows one object.
pub async fn a_watch_can_be_of_one_name(arena: Arena) -> Verdict {
    let first = arena.widget(json!({"name": "a"})).await?;
    let params = WatchParams::default().fields("metadata.name=b");
    let mut seen = Seen::open(&arena.widgets(), &params, &version(&first)).await?;
    arena.widget(json!({"name": "c"})).await?;
    arena.widget(json!({"name": "b"})).await?;
    seen.expect("ADDED", "b").await.map(drop)
}

/// A version that is forgotten is told by an error event, in an answer that is otherwise fine.
pub async fn a_forgotten_version_is_expired(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    arena.forget();
    let mut seen = Seen::open(&arena.widgets(), &WatchParams::default(), "1").await?;
    seen.expect("ERROR", "Expired").await.map(drop)
}

/// A watch ends when its time is over; before that an allowed bookmark comes, if there is news.
pub async fn a_watch_ends_in_time_with_a_bookmark(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let begin = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(5).labels("none=such");
    let seen = Seen::open(&arena.widgets(), &params, &version(&made)).await?;
    arena.widget(json!({"name": "b"})).await?;
    let kinds = seen.rest().await?;
    let told = !kinds.is_empty() && kinds.iter().all(|kind| *kind == "BOOKMARK");
    holds("bookmarks come, and nothing else", told)?;
    let took = begin.elapsed();
    holds(
        "it took its time",
        took >= Duration::from_secs(4) && took < PATIENCE,
    )
}

/// Who does not allow bookmarks gets none.
pub async fn bookmarks_come_only_to_who_allows_them(arena: Arena) -> Verdict {
    let made = arena.widget(json!({"name": "a"})).await?;
    let params = WatchParams::default().timeout(4).disable_bookmarks();
    let seen = Seen::open(&arena.widgets(), &params, &version(&made)).await?;
    same("events", seen.rest().await?, Vec::<&str>::new())
}

/// A watch of metadata shows metadata.
pub async fn a_watch_can_be_of_metadata(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    let path = arena.path("widgets?watch=true&timeoutSeconds=1");
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (code, event) = arena.raw("GET", &path, accept, &Value::Null).await?;
    same("the code", code, 200)?;
    same("the event", &event["type"], "ADDED")?;
    same(
        "the kind",
        &event["object"]["kind"],
        "PartialObjectMetadata",
    )?;
    same("no spec", &event["object"]["spec"], &Value::Null)
}

/// A streaming list ends its beginning with a marked bookmark, where it is offered.
pub async fn a_streaming_list_marks_its_end(arena: Arena) -> Verdict {
    arena.widget(json!({"name": "a"})).await?;
    let params = WatchParams::default().initial_events();
    let widgets = arena.widgets();
    let mut seen = match Seen::open(&widgets, &params, "").await {
        Ok(seen) => seen,
        // Servers without the feature refuse, and clients fall back to lists.
        Err(super::Difference::Refused(kube::Error::Api(status))) => {
            return holds("a refusal", matches!(status.code, 400 | 422 | 500));
        }
        Err(difference) => return Err(difference),
    };
    let (kind, name, _) = seen.next("the first event").await?;
    if kind == "ERROR" {
        // A storage that does not tell its progress lets such a watch fail; clients fall back, too.
        return holds(&name, matches!(name.as_str(), "InternalError" | "Timeout"));
    }
    same("the first event", (kind, name.as_str()), ("ADDED", "a"))?;
    seen.expect("BOOKMARK", "end").await?;
    arena.widget(json!({"name": "b"})).await?;
    seen.expect("ADDED", "b").await?;
    let path = arena.path("widgets?watch=true&sendInitialEvents=true");
    let (code, _) = arena.ask("GET", &path).await?;
    same("without resourceVersionMatch", code, 422)
}

/// A version that is no number is refused.
pub async fn a_version_is_a_number(arena: Arena) -> Verdict {
    let outcome = arena
        .widgets()
        .watch(&WatchParams::default(), "yesterday")
        .await;
    let status = refused("a word as version", outcome.map(|_| ()), 400, "BadRequest");
    // Some versions call the same refusal invalid.
    status.or_else(|difference| match difference {
        super::Difference::Value { found, .. }
            if found.contains("422") || found.contains("500") =>
        {
            Ok(Box::default())
        }
        other => Err(other),
    })?;
    Ok(())
}
