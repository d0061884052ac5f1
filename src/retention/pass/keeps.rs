//! What keeps a result that is due.

use hindsight_filter::Position;
use hindsight_filter::model::Record;
use hindsight_run::{View, json};
use hindsight_storage::ListQuery;

use super::{Failed, Pass, failed, query};
use crate::retention::version::Whole;

/// The annotation that keeps a result: its own, or that of the object of a run in it.
const HOLD: &str = "hindsight.dev/hold";
/// Bytes of payloads that are read at once.
const BYTES: usize = 4 << 20;

/// What keeps a result that is due by its age and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// A hold, or an annotation that says the same.
    Held,
    /// A run that goes on.
    Unfinished,
}

impl Pass {
    /// What keeps a result that is due.
    pub(super) async fn kept(&self, whole: &Whole) -> Result<Option<Kept>, Failed> {
        let result = &whole.result;
        let has_own = result
            .annotations
            .get(HOLD)
            .is_some_and(|why| !why.is_empty());
        if has_own || self.holds.contains_key(&result.name) {
            return Ok(Some(Kept::Held));
        }
        let unknown = whole.of_unknown_outcome();
        let mut after: Option<Position> = None;
        loop {
            let query = ListQuery {
                after,
                bodies: true,
                max_bytes: Some(BYTES),
                ..query((&result.name).into())
            };
            let page = self.of.source.store.list_records(&query).await;
            let page = page.map_err(failed)?;
            for listed in &page {
                let record = &listed.item;
                let kept = kept_by(record, unknown.contains(&record.name));
                if kept.is_some() {
                    return Ok(kept);
                }
            }
            // A page may end early because of its bytes.
            let Some(last) = page.last() else {
                return Ok(None);
            };
            after = Some(last.position.clone());
        }
    }
}

/// What the object of a record says that keeps its result. A run of unknown outcome may have the end of an
/// attempt that another one followed.
fn kept_by(record: &Record, is_unknown: bool) -> Option<Kept> {
    let data = record.data.as_ref()?;
    // JSON may spell any part of it by escapes.
    let text = std::str::from_utf8(&data.value).unwrap_or_default();
    if !is_unknown && !text.contains("hindsight.dev") && !text.contains("\\u") {
        return None;
    }
    let object = json::parse(&data.value).ok()?;
    let run = View::new(&object);
    if is_unknown && !run.finish().done && run.closed().is_none() {
        return Some(Kept::Unfinished);
    }
    let annotations = object.pointer("/metadata/annotations");
    let why = annotations.and_then(|annotations| annotations.get(HOLD)?.as_str());
    why.is_some_and(|why| !why.is_empty()).then_some(Kept::Held)
}
