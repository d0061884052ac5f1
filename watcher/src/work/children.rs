//! Whether everything that would go with a run is stored.

use hindsight_run::{Kind, View};

use crate::{
    cluster::Address,
    ledger::{Ledger, Uid},
    presence::KindPresence,
    shared::Shared,
};

/// The children of a run as far as they may keep it: those that its status names and the
/// ledger does not know. They must be looked for in the cluster, because a watch may be late.
///
/// # Errors
/// If it is known that something is not stored; says what.
pub(super) fn wait(
    shared: &Shared,
    ledger: &Ledger,
    uid: &Uid,
    run: &View<'_>,
) -> Result<Vec<Address>, String> {
    if !shared.cluster.kinds.is_listed() {
        let kinds = shared.cluster.kinds.unlisted().join(", ");
        return Err(format!("not yet listed: {kinds}"));
    }
    for child in ledger.descendants(uid) {
        let Some(entry) = ledger.get(&child) else {
            continue;
        };
        let (kind, name) = (entry.kind.kind, &entry.name);
        if !entry.is_safe() {
            return Err(format!("{kind} {name} is not stored"));
        }
        if shared.logs.is_open(&child) {
            return Err(format!("logs of {kind} {name} are not stored"));
        }
        if entry.partial {
            return Err(format!("{kind} {name} is stored without its nodes"));
        }
    }
    let namespace = run.namespace().unwrap_or_default();
    let mut unknown = Vec::new();
    for child in references(run) {
        let Child {
            api_version,
            kind: named,
            name,
        } = child;
        let Some(kind) = known_kind(shared, api_version, named) else {
            return Err(format!("{named} {name} is of a kind that is not stored"));
        };
        match shared.cluster.kinds.get(kind) {
            None => return Err(format!("{named} {name} is of a kind that is not watched")),
            Some(KindPresence::Absent) => continue,
            Some(KindPresence::Forbidden | KindPresence::Broken | KindPresence::ClusterScoped) => {
                return Err(format!(
                    "{named} {name} is of a kind that the cluster does not show"
                ));
            }
            Some(_) => {}
        }
        // Whether one that is known is stored was asked above, if this run owns it at all.
        if ledger.named(kind, namespace, name).is_none() {
            let namespace = namespace.to_owned();
            unknown.push(Address {
                kind,
                namespace,
                name: name.to_owned(),
            });
        }
    }
    Ok(unknown)
}

struct Child<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
}

/// `status.childReferences` of a PipelineRun; what is named there without a kind is a TaskRun.
fn references<'a>(run: &View<'a>) -> Vec<Child<'a>> {
    let list = run
        .object()
        .pointer("/status/childReferences")
        .and_then(|list| list.as_array());
    list.into_iter()
        .flatten()
        .filter_map(|child| {
            let text = |key| child.get(key).and_then(|text| text.as_str());
            Some(Child {
                api_version: text("apiVersion").unwrap_or("tekton.dev/v1"),
                kind: text("kind")
                    .filter(|kind| !kind.is_empty())
                    .unwrap_or("TaskRun"),
                name: text("name")?,
            })
        })
        .collect()
}

fn known_kind(shared: &Shared, api_version: &str, kind: &str) -> Option<&'static Kind> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    shared.kinds.named(group, kind)
}
