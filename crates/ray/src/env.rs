//! Environment variables: messages, and `env` and `envFrom` of containers.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1::{EnvValueFrom, EnvironmentVariables, env_value_from::Source};
use serde_json::{Value, json};

use crate::json::{items, text};

/// The `env` of a container: `system`, then the variables of the cluster, then those of the group. Of two with the same
/// name the later one counts.
pub(crate) fn entries(
    system: Vec<Value>,
    cluster: Option<&EnvironmentVariables>,
    group: Option<&EnvironmentVariables>,
) -> Vec<Value> {
    let given = [cluster, group].into_iter().flatten().flat_map(entries_of);
    let mut all: Vec<Value> = Vec::new();
    for entry in system.into_iter().chain(given) {
        all.retain(|before| before["name"] != entry["name"]);
        all.push(entry);
    }
    all
}

fn entries_of(variables: &EnvironmentVariables) -> Vec<Value> {
    let values = variables.values.iter();
    let values = values.map(|(name, value)| json!({"name": name, "value": value}));
    let from = variables.values_from.iter().map(|(name, from)| {
        let (at, key) = (&from.name, &from.key);
        let from = match from.source() {
            Source::Configmap => json!({"configMapKeyRef": {"name": at, "key": key}}),
            Source::Secret => json!({"secretKeyRef": {"name": at, "key": key}}),
            Source::Resourcefield => {
                json!({"resourceFieldRef": {"containerName": at, "resource": key}})
            }
            Source::Field => json!({"fieldRef": {"fieldPath": key}}),
        };
        json!({"name": name, "valueFrom": from})
    });
    values.chain(from).collect()
}

/// The variables of a container without those of `system` and of the cluster; `None` if none is left.
pub(crate) fn read(
    container: &Value,
    system: &[Value],
    cluster: Option<&EnvironmentVariables>,
) -> Option<EnvironmentVariables> {
    let shared = cluster.map(entries_of).unwrap_or_default();
    let mut found = EnvironmentVariables::default();
    for entry in items(container, "/env") {
        if !system.contains(entry) && !shared.contains(entry) {
            insert(&mut found, entry);
        }
    }
    (found != EnvironmentVariables::default()).then_some(found)
}

fn insert(found: &mut EnvironmentVariables, entry: &Value) {
    let name = text(entry, "/name");
    let from = [
        ("configMapKeyRef", Source::Configmap, "name", "key"),
        ("secretKeyRef", Source::Secret, "name", "key"),
        (
            "resourceFieldRef",
            Source::Resourcefield,
            "containerName",
            "resource",
        ),
        ("fieldRef", Source::Field, "", "fieldPath"),
    ];
    for (kind, source, at, key) in from {
        if let Some(of) = entry.get("valueFrom").and_then(|from| from.get(kind)) {
            let from = EnvValueFrom {
                source: source.into(),
                name: text(of, &format!("/{at}")),
                key: text(of, &format!("/{key}")),
            };
            found.values_from.insert(name, from);
            return;
        }
    }
    found.values.insert(name, text(entry, "/value"));
}

/// Environment variables as the value of an annotation.
pub(crate) fn encode(variables: &EnvironmentVariables) -> String {
    Value::from(entries_of(variables)).to_string()
}

/// The environment variables of an annotation; `None` if it is no JSON.
pub(crate) fn decode(text: &str) -> Option<EnvironmentVariables> {
    let entries = hindsight_run::json::parse(text.as_bytes()).ok()?;
    let mut found = EnvironmentVariables::default();
    let entries = items(&entries, "").iter();
    entries.for_each(|entry| insert(&mut found, entry));
    Some(found)
}

/// The `envFrom` of a container: config maps and secrets, all keys of each.
pub(crate) fn env_from(from: &BTreeMap<String, EnvValueFrom>) -> Vec<Value> {
    let of = |from: &EnvValueFrom| match from.source() {
        Source::Configmap => Some(json!({"configMapRef": {"name": from.name}})),
        Source::Secret => Some(json!({"secretRef": {"name": from.name}})),
        Source::Resourcefield | Source::Field => None,
    };
    from.values().filter_map(of).collect()
}

/// The config maps and secrets of the `envFrom` of a container, by their names.
pub(crate) fn read_env_from(container: &Value) -> BTreeMap<String, EnvValueFrom> {
    let of = |entry: &Value| {
        let kinds = [
            ("configMapRef", Source::Configmap),
            ("secretRef", Source::Secret),
        ];
        let (kind, source) = kinds
            .into_iter()
            .find(|(kind, _)| entry.get(kind).is_some())?;
        let name = text(entry, &format!("/{kind}/name"));
        let from = EnvValueFrom {
            source: source.into(),
            name: name.clone(),
            key: String::new(),
        };
        Some((name, from))
    };
    items(container, "/envFrom").iter().filter_map(of).collect()
}
