//! What `kubectl kustomize` makes of a folder, as far as ours need it: resources, components,
//! patches by strategic merge, and the namespace. `deploy.rs` compares it with kubectl where there
//! is one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Kinds that live in no namespace.
const OUTSIDE: [&str; 6] = [
    "MutatingWebhookConfiguration",
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "ValidatingWebhookConfiguration",
];

/// Lists that are merged item by item, and by which field their items are told apart.
const MERGED: [(&str, &str); 5] = [
    ("containers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// The documents of a YAML file.
#[track_caller]
pub fn documents(path: &Path) -> Vec<Value> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text, &path.display().to_string())
}

#[track_caller]
pub fn parse(text: &str, whose: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{whose}: {error}"));
    documents.into_iter().filter(|doc| !doc.is_null()).collect()
}

/// The objects of the kustomization in `folder`.
pub fn render(folder: &Path) -> Vec<Value> {
    let mut objects = Vec::new();
    add(folder, &mut objects);
    objects
}

/// Adds the objects of the kustomization in `folder`, or changes those that are there, if it is a
/// component.
pub fn add(folder: &Path, objects: &mut Vec<Value>) {
    let file = folder.join("kustomization.yaml");
    let [kustomization] = documents(&file).try_into().unwrap();
    let Value::Object(fields) = &kustomization else {
        panic!("{} is no object", file.display());
    };
    for key in fields.keys() {
        let known = [
            "apiVersion",
            "kind",
            "namespace",
            "resources",
            "components",
            "patches",
        ];
        assert!(
            known.contains(&key.as_str()),
            "{}: `{key}` is not rendered here",
            file.display()
        );
    }
    // A component works on what is there already; anything else on its own objects alone.
    let is_component = kustomization["kind"] == "Component";
    let mut own = if is_component {
        std::mem::take(objects)
    } else {
        Vec::new()
    };
    for path in items(&kustomization["resources"]) {
        let path = folder.join(path.as_str().unwrap());
        if path.is_dir() {
            add(&path, &mut own);
        } else {
            own.extend(documents(&path));
        }
    }
    for path in items(&kustomization["components"]) {
        add(&folder.join(path.as_str().unwrap()), &mut own);
    }
    for patch in items(&kustomization["patches"]) {
        let [given] = documents(&folder.join(patch["path"].as_str().unwrap()))
            .try_into()
            .unwrap();
        let mut hit = 0;
        for object in own
            .iter_mut()
            .filter(|object| aims_at(patch, &given, object))
        {
            hit += 1;
            let mut change = given.clone();
            let whole = change.as_object_mut().unwrap();
            // Which object it is stays as it was.
            for key in ["apiVersion", "kind"] {
                whole.shift_remove(key);
            }
            whole["metadata"]
                .as_object_mut()
                .unwrap()
                .shift_remove("name");
            merge(object, change);
        }
        assert!(hit > 0, "{}: {patch} changes nothing", file.display());
    }
    if let Some(namespace) = kustomization["namespace"].as_str() {
        for object in &mut own {
            if !OUTSIDE.contains(&object["kind"].as_str().unwrap()) {
                object["metadata"]["namespace"] = namespace.into();
            }
            if let Some(subjects) = object.get_mut("subjects").and_then(Value::as_array_mut) {
                for subject in subjects {
                    subject["namespace"] = namespace.into();
                }
            }
        }
    }
    objects.extend(own);
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn aims_at(patch: &Value, given: &Value, object: &Value) -> bool {
    let Some(target) = patch.get("target") else {
        return object["kind"] == given["kind"]
            && object["metadata"]["name"] == given["metadata"]["name"];
    };
    let kinds = target["kind"].as_str().unwrap();
    let (label, value) = target["labelSelector"]
        .as_str()
        .unwrap()
        .split_once('=')
        .unwrap();
    kinds.split('|').any(|kind| object["kind"] == kind)
        && object["metadata"]["labels"][label] == value
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge_field(into, &key, value);
            }
        }
        (into, change) => *into = change,
    }
}

fn merge_field(into: &mut Map<String, Value>, key: &str, value: Value) {
    let by = MERGED
        .iter()
        .find(|(list, _)| *list == key)
        .map(|(_, by)| by);
    match (into.get_mut(key), value, by) {
        (_, Value::Null, _) => {
            into.shift_remove(key);
        }
        (Some(Value::Array(old)), Value::Array(new), Some(by)) => {
            for item in new {
                match old.iter_mut().find(|known| known[by] == item[by]) {
                    Some(known) => merge(known, item),
                    None => old.push(item),
                }
            }
        }
        (Some(old), value @ Value::Object(_), _) => merge(old, value),
        (_, value, _) => {
            into.insert(key.to_owned(), value);
        }
    }
}
