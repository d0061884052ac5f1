//! The values of an object that are compared, each with its path.

use serde_json::{Map, Value};

use super::Category;

/// Deepest nesting that is looked at.
const MAX_DEPTH: usize = 128;

/// Members that each run has anew, wherever they are.
const ANEW: &[&str] = &[
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
    "jobId",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// Labels and annotations that each run has anew, or that programs keep their notes in; what ends
/// with `/` is the beginning of several.
const NOTES: &[&str] = &[
    "chains.tekton.dev/",
    "hindsight.dev/",
    "kubectl.kubernetes.io/",
    "pipeline/runid",
    "pipelinesascode.tekton.dev/check-run-id",
    "pipelinesascode.tekton.dev/log-url",
    "pipelinesascode.tekton.dev/original-prname",
    "pipelinesascode.tekton.dev/state",
    "results.tekton.dev/",
    "tekton.dev/pipelineRun",
    "tekton.dev/pipelineRunUID",
    "tekton.dev/taskRun",
    "tekton.dev/taskRunUID",
    "triggers.tekton.dev/triggers-eventid",
    "workflows.argoproj.io/completed",
    "workflows.argoproj.io/phase",
    "workflows.argoproj.io/pod-name-format",
    "workflows.argoproj.io/scheduled-time",
];

/// Gives each value of `object` that is compared to `give`, with its category and path, until that
/// wants no more; says whether it had all.
pub(super) fn flatten(
    object: &Value,
    below: bool,
    give: &mut impl FnMut(Category, String, String) -> bool,
) -> bool {
    let mut walk = Walk {
        path: String::new(),
        below,
        is_full: false,
        give,
    };
    if let Some(spec) = object.get("spec") {
        walk.member("spec", spec, Category::Spec, 0);
    }
    let status = object.get("status").unwrap_or(&Value::Null);
    walk.path.push_str("status");
    if let Some(provenance) = status.get("provenance").and_then(Value::as_object) {
        for key in ["refSource", "configSource"] {
            if let Some(source) = provenance.get(key) {
                walk.member(&format!("provenance.{key}"), source, Category::Reference, 0);
            }
        }
    }
    for key in ["steps", "sidecars"] {
        walk.digests(key, status.get(key));
    }
    // What a reference was resolved to; of what is written into the run itself the specification
    // has it already.
    for (resolved, written) in [
        ("pipelineSpec", "/spec/pipelineSpec"),
        ("taskSpec", "/spec/taskSpec"),
        ("storedWorkflowTemplateSpec", "/spec/templates"),
    ] {
        if let Some(spec) = status.get(resolved)
            && object.pointer(written).is_none()
        {
            walk.member(resolved, spec, Category::Spec, 0);
        }
    }
    walk.path.clear();
    walk.path.push_str("metadata");
    for key in ["labels", "annotations"] {
        let map = object
            .get("metadata")
            .and_then(|metadata| metadata.get(key));
        if let Some(map) = map.and_then(Value::as_object).filter(|_| !below) {
            walk.notes(key, map);
        }
    }
    !walk.is_full
}

struct Walk<'a, G> {
    path: String,
    below: bool,
    /// No more values are wanted.
    is_full: bool,
    give: &'a mut G,
}

impl<G: FnMut(Category, String, String) -> bool> Walk<'_, G> {
    fn give(&mut self, category: Category, path: String, value: String) {
        self.is_full = self.is_full || !(self.give)(category, path, value);
    }

    /// A value below the member `key` of what `path` leads to.
    fn member(&mut self, key: &str, value: &Value, category: Category, depth: usize) {
        let end = self.path.len();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.value(value, category, depth + 1, false);
        self.path.truncate(end);
    }

    fn elements(&mut self, items: &[Value], category: Category, depth: usize) {
        let names = names(items);
        for (at, item) in items.iter().enumerate() {
            let name = names.as_ref().and_then(|names| names.get(at).copied());
            let end = self.path.len();
            self.path.push('[');
            match name {
                Some(name) => self.path.push_str(name),
                None => self.path.push_str(&at.to_string()),
            }
            self.path.push(']');
            self.value(item, category, depth + 1, name.is_some());
            self.path.truncate(end);
        }
    }

    /// A value at `path`; the element that it is `is_named` there.
    fn value(&mut self, value: &Value, category: Category, depth: usize, is_named: bool) {
        match value {
            _ if self.is_full => {}
            Value::Null => {}
            Value::Object(members) if !members.is_empty() && depth < MAX_DEPTH => {
                for (key, value) in members {
                    // The name of an element is in its path.
                    if is_named && key == "name" {
                        continue;
                    }
                    if ANEW.contains(&key.as_str()) || (self.below && key == "claimName") {
                        continue;
                    }
                    let own = match category {
                        Category::Spec => Category::of(key, value.is_string()),
                        _ => None,
                    };
                    self.member(key, value, own.unwrap_or(category), depth);
                }
            }
            Value::Array(items) if items.iter().any(is_nested) && depth < MAX_DEPTH => {
                self.elements(items, category, depth);
            }
            Value::String(text) => self.give(category, self.path.clone(), text.clone()),
            other => self.give(category, self.path.clone(), other.to_string()),
        }
    }

    /// What images of containers were, of their statuses.
    fn digests(&mut self, key: &str, list: Option<&Value>) {
        for container in list.and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| container.get(key).and_then(Value::as_str);
            if let (Some(name), Some(image)) = (text("name"), text("imageID")) {
                let path = format!("{}.{key}[{name}].imageID", self.path);
                self.give(Category::Image, path, image.to_owned());
            }
        }
    }

    fn notes(&mut self, key: &str, map: &Map<String, Value>) {
        for (name, value) in map {
            let is_note = |note: &&str| match note.strip_suffix('/') {
                Some(_) => name.starts_with(*note),
                None => name == note,
            };
            if let Some(text) = value.as_str()
                && !NOTES.iter().any(is_note)
                && !ANEW.contains(&name.as_str())
            {
                let path = format!("{}.{key}[{name}]", self.path);
                self.give(Category::Metadata, path, text.to_owned());
            }
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// The names of the elements, if all have one and no two the same.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Option<Vec<&str>> = items
        .iter()
        .map(|item| item.get("name")?.as_str())
        .collect();
    let names = names?;
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let are_different = sorted.windows(2).all(|pair| pair[0] != pair[1]);
    are_different.then_some(names)
}
