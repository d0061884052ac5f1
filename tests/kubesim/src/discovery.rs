//! What the server says about itself: groups, versions, resources, in the classic documents and in
//! the aggregated one.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    kinds::{Kind, api_version},
    world::World,
};

/// Whether a client asks for the aggregated document before anything else it takes.
pub(crate) fn wants_aggregated(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or_default();
    first.contains("as=APIGroupDiscoveryList") && first.contains("v=v2")
}

pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "33",
        "gitVersion": "v1.33.0-kubesim",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

impl World {
    pub(crate) fn groups(&self) -> Value {
        let groups: Vec<Value> = self
            .group_names()
            .iter()
            .filter(|group| !group.is_empty())
            .filter_map(|group| self.group(group))
            .collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `APIGroup`, without types as in a list; `None` when nothing of the group is installed.
    pub(crate) fn group(&self, group: &str) -> Option<Value> {
        let versions: Vec<Value> = self
            .versions(group)
            .iter()
            .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
            .collect();
        let preferred = versions.first()?.clone();
        Some(json!({"name": group, "versions": versions, "preferredVersion": preferred}))
    }

    /// `APIResourceList`; `None` when nothing of that version is installed.
    pub(crate) fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let resources: Vec<Value> = self
            .kinds(group, version)
            .iter()
            .flat_map(|kind| resource_entries(kind))
            .collect();
        (!resources.is_empty()).then(|| {
            json!({
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": api_version(group, version),
                "resources": resources,
            })
        })
    }

    /// `APIGroupDiscoveryList` of the core group or of all others.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let items: Vec<Value> =
            self.group_names()
                .iter()
                .filter(|group| group.is_empty() == core)
                .map(|group| {
                    let versions: Vec<Value> = self
                    .versions(group)
                    .iter()
                    .map(|version| {
                        let kinds = self.kinds(group, version);
                        let resources: Vec<Value> =
                            kinds.iter().map(|kind| aggregated_entry(kind, version)).collect();
                        json!({"version": version, "resources": resources, "freshness": "Current"})
                    })
                    .collect();
                    let metadata = if core {
                        json!({})
                    } else {
                        json!({"name": group})
                    };
                    json!({"metadata": metadata, "versions": versions})
                })
                .collect();
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        })
    }

    /// The kinds there are.
    pub(crate) fn installed(&self) -> Vec<Arc<Kind>> {
        let kinds = self.shelves.values().map(|shelf| Arc::clone(&shelf.kind));
        kinds.collect()
    }

    /// The kinds that discovery knows of.
    fn known(&self) -> Vec<Arc<Kind>> {
        self.discovered.clone().unwrap_or_else(|| self.installed())
    }

    fn group_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for kind in self.known() {
            if !names.contains(&kind.group) {
                names.push(kind.group.clone());
            }
        }
        names
    }

    /// Stable versions first, as `v1` before `v1beta1` before `v1alpha1`.
    fn versions(&self, group: &str) -> Vec<String> {
        let mut versions = Vec::new();
        for kind in self.known().iter().filter(|kind| kind.group == group) {
            for version in &kind.versions {
                if !versions.contains(version) {
                    versions.push(version.clone());
                }
            }
        }
        let rank = |version: &str| {
            if version.contains("alpha") {
                2
            } else {
                u8::from(version.contains("beta"))
            }
        };
        versions.sort_by(|left, right| rank(left).cmp(&rank(right)).then(right.cmp(left)));
        versions
    }

    fn kinds(&self, group: &str, version: &str) -> Vec<Arc<Kind>> {
        let mut kinds = self.known();
        kinds.retain(|kind| kind.group == group && kind.serves(version));
        kinds
    }
}

fn resource_entries(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural,
        "singularName": kind.singular(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        main["categories"] = json!(kind.categories);
    }
    let mut entries = vec![main];
    if kind.status {
        entries.push(json!({
            "name": format!("{}/status", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["get", "patch", "update"],
        }));
    }
    if kind.is_pods() {
        entries.push(json!({
            "name": "pods/log",
            "singularName": "",
            "namespaced": true,
            "kind": "Pod",
            "verbs": ["get"],
        }));
    }
    entries
}

fn aggregated_entry(kind: &Kind, version: &str) -> Value {
    let response = json!({"group": kind.group, "version": version, "kind": kind.kind});
    let mut entry = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular(),
        "verbs": kind.verbs,
        "shortNames": kind.short_names,
        "categories": kind.categories,
    });
    let below = |name: &str, verbs: &[&str]| json!({"subresource": name, "responseKind": response, "verbs": verbs});
    let mut subresources = Vec::new();
    if kind.is_pods() {
        subresources.push(below("log", &["get"]));
    }
    if kind.status {
        subresources.push(below("status", &["get", "patch", "update"]));
    }
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
