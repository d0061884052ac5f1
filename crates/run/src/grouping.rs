//! Which result and record a run belongs to.
//!
//! Binding is by UID. Annotations that were copied from another run (a re-run made from its
//! manifest carries them) never make one run write into another's record.

use super::{Completion, View, keys};
use hindsight_proto::names::{Parent, ParseNameError, RecordName, ResultName};

/// Where a run is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    /// The record it is stored as; its result is the group.
    pub record: RecordName,
    /// The group was chosen by the run itself, so that it is what the result is about.
    pub is_root: bool,
    /// Wishes of the object that were not followed, and why; worth a warning.
    pub notes: Vec<String>,
}

/// Finds the result and record of an object. First hit wins:
///
/// 1. annotation `results.tekton.dev/result`, unless it was copied from another run or names
///    another tenant; the object's namespace stands for its tenant;
/// 2. label `triggers.tekton.dev/triggers-eventid`;
/// 3. the PipelineRun that owns it, the RayJob of a RayCluster, the Pipeline of a PipelineVersion;
/// 4. what its kind was declared with, else its own UID.
///
/// `parent` is the tenant of the object's namespace; by default the namespace itself.
///
/// # Errors
/// If the object has no UID, or its namespace or UID cannot be part of a name.
pub fn group(view: &View<'_>, parent: Parent) -> Result<Grouping, ParseNameError> {
    let uid = view.uid().unwrap_or_default();
    let mut notes = Vec::new();
    let result = match annotated(view, &parent, &mut notes) {
        Some(result) => result,
        None => {
            let event = view.label(keys::EVENT_ID).filter(|id| !id.is_empty());
            let owner = view.owners().find(|owner| leads(owner.kind, view));
            let declared = match view.known_kind().map(|kind| kind.completion) {
                Some(Completion::Declared(reader)) => reader.group(view.object()),
                _ => None,
            };
            let id = event.or(owner.map(|o| o.uid)).or(declared.as_deref());
            let id = id.unwrap_or(uid);
            match ResultName::new(parent.clone(), id) {
                Ok(name) => name,
                Err(error) if id != uid => {
                    notes.push(format!("the result is named after its own uid: {error}"));
                    ResultName::new(parent, uid)?
                }
                Err(error) => return Err(error),
            }
        }
    };
    let is_root = !view.is_owned() || result.id() == uid;
    Ok(Grouping {
        record: result.record(uid)?,
        is_root,
        notes,
    })
}

/// Whether an owner of this kind is what the object is a part of.
fn leads(owner: &str, object: &View<'_>) -> bool {
    owner.eq_ignore_ascii_case("PipelineRun")
        || matches!(
            (object.kind(), owner),
            (Some("RayCluster"), "RayJob") | (Some("PipelineVersion"), "Pipeline")
        )
}

/// The result that the object asks for by annotation, if it may have it.
fn annotated(view: &View<'_>, parent: &Parent, notes: &mut Vec<String>) -> Option<ResultName> {
    let wish = view
        .annotation(keys::RESULT)
        .filter(|text| !text.is_empty())?;
    if let Some(record) = view.annotation(keys::RECORD) {
        let id = record.rsplit('/').next().unwrap_or_default();
        let own = view.uid() == Some(id);
        // A child inherits the annotations of its owner; that is no copy but the same group.
        let inherited = view.owners().any(|owner| owner.uid == id);
        if !own && !inherited {
            notes.push(format!(
                "annotation {} was copied from another run ({record}); it is ignored",
                keys::RESULT
            ));
            return None;
        }
    }
    let result: ResultName = match wish.parse() {
        Ok(result) => result,
        Err(error) => {
            notes.push(format!(
                "annotation {}: {error}; it is ignored",
                keys::RESULT
            ));
            return None;
        }
    };
    // Without a tenant of its own a cluster's namespaces are the tenants, as a user may write them.
    if view.namespace() == Some(result.parent().as_str()) {
        return ResultName::new(parent.clone(), result.id()).ok();
    }
    if result.parent() != parent {
        notes.push(format!(
            "annotation {} asks for parent `{}`, but the run belongs to `{parent}`; it is ignored",
            keys::RESULT,
            result.parent()
        ));
        return None;
    }
    Some(result)
}
