//! Watches as cases read them: one event at a time, none awaited for ever.

use std::fmt::Debug;

use futures::{Stream, StreamExt, stream::BoxStream};
use kube::{
    Api,
    api::{DynamicObject, WatchEvent, WatchParams},
};

use super::{Difference, PATIENCE, same};

/// An open watch as a case reads it.
pub struct Seen(BoxStream<'static, Result<WatchEvent<DynamicObject>, kube::Error>>);

impl Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seen")
    }
}

impl Seen {
    /// Opens a watch.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn open(
        api: &Api<DynamicObject>,
        params: &WatchParams,
        version: &str,
    ) -> Result<Self, Difference> {
        let stream = api.watch(params, version).await?;
        Ok(Self(stream.boxed()))
    }

    /// The next event as its type, a name, and the object; for an error the name is its reason.
    ///
    /// # Errors
    /// When none comes within the patience of the suite, or the watch ends.
    pub async fn next(
        &mut self,
        what: &str,
    ) -> Result<(&'static str, String, Option<DynamicObject>), Difference> {
        let missing = || Difference::Missing { what: what.into() };
        let event = timed(&mut self.0)
            .await
            .ok_or_else(missing)?
            .ok_or_else(missing)??;
        let named = |object: DynamicObject| {
            let name = object.metadata.name.clone().unwrap_or_default();
            (name, Some(object))
        };
        let (kind, (name, object)) = match event {
            WatchEvent::Added(object) => ("ADDED", named(object)),
            WatchEvent::Modified(object) => ("MODIFIED", named(object)),
            WatchEvent::Deleted(object) => ("DELETED", named(object)),
            WatchEvent::Bookmark(mark) => {
                let end = mark
                    .metadata
                    .annotations
                    .contains_key("k8s.io/initial-events-end");
                let name = if end { "end" } else { "" };
                ("BOOKMARK", (name.to_owned(), None))
            }
            WatchEvent::Error(status) => ("ERROR", (status.reason.clone(), None)),
        };
        Ok((kind, name, object))
    }

    /// Finds that the next event is this one; bookmarks may come in between.
    ///
    /// # Errors
    /// When it is another, or none.
    pub async fn expect(
        &mut self,
        kind: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, Difference> {
        let what = format!("event {kind} {name}");
        loop {
            let (found_kind, found_name, object) = self.next(&what).await?;
            if (found_kind, found_name.as_str()) == ("BOOKMARK", "") {
                continue;
            }
            same(&what, (found_kind, found_name.as_str()), (kind, name))?;
            return Ok(object);
        }
    }

    /// Finds that the watch ends, whatever comes before, and answers the types of what came.
    ///
    /// # Errors
    /// When it does not end within the patience of the suite.
    pub async fn rest(mut self) -> Result<Vec<&'static str>, Difference> {
        let mut kinds = Vec::new();
        loop {
            match timed(&mut self.0).await {
                None => {
                    return Err(Difference::Missing {
                        what: "the end of the watch".into(),
                    });
                }
                Some(None) => return Ok(kinds),
                Some(Some(event)) => kinds.push(match event? {
                    WatchEvent::Bookmark(_) => "BOOKMARK",
                    WatchEvent::Error(_) => "ERROR",
                    _ => "OBJECT",
                }),
            }
        }
    }
}

async fn timed<S: Stream + Unpin>(stream: &mut S) -> Option<Option<S::Item>> {
    tokio::time::timeout(PATIENCE, stream.next()).await.ok()
}
