//! Parameters of a PipelineRun, and what is known of the run, in its tasks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    run::PipelineRun,
    spec::{Declared, Refusal},
    variables::{Found, Missing, fill, param},
};
use crate::custom::{Param, is_custom_task, optional};

/// The values of parameters by name.
type Scope = BTreeMap<String, Value>;

/// The parameters of a PipelineRun with those that its pipeline has defaults for.
pub(super) fn scope(run: &PipelineRun, declared: &[Declared]) -> Result<Scope, Refusal> {
    let invalid = |why: String| Refusal {
        reason: "PipelineValidationFailed",
        message: why,
    };
    let given = optional::<Vec<Param>>(&run.spec, "params")
        .map_err(invalid)?
        .unwrap_or_default();
    let mut values = Scope::new();
    for (index, given) in given.into_iter().enumerate() {
        if values
            .insert(given.name.clone(), plain(given.value.0))
            .is_some()
        {
            let name = given.name;
            let text = format!("spec.params[{index}].name: `{name}` is there twice");
            return Err(invalid(text));
        }
    }
    let (mut missing, mut wrong, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (index, declared) in declared.iter().enumerate() {
        let (name, path) = (&declared.name, format!("spec.pipelineSpec.params[{index}]"));
        let default = declared.default.clone().map(|default| plain(default.0));
        let wanted = match declared.r#type.as_str() {
            "" if declared.properties.is_some() => "object",
            "" => default.as_ref().map_or("string", kind),
            named => named,
        };
        if let Some(default) = default.as_ref().filter(|default| kind(default) != wanted) {
            let kind = kind(default);
            return Err(invalid(format!(
                "{path}.default: is of type {kind}; want {wanted}"
            )));
        }
        let value = match (values.remove(name), default) {
            (None, None) => {
                missing.push(format!("{path}: `{name}` has no value"));
                continue;
            }
            (None, Some(default)) => default,
            (Some(Value::Object(given)), Some(Value::Object(mut default))) => {
                default.extend(given);
                default.into()
            }
            (Some(given), _) => given,
        };
        if kind(&value) != wanted {
            let kind = kind(&value);
            wrong.push(format!(
                "spec.params: `{name}` is of type {kind}; want {wanted}"
            ));
        }
        let properties = declared.properties.iter().flat_map(BTreeMap::keys);
        let lacks = |key: &&String| value.is_object() && value.get(key.as_str()).is_none();
        let lacking: Vec<&str> = properties.filter(lacks).map(String::as_str).collect();
        if !lacking.is_empty() {
            let lacking = lacking.join(", ");
            keys.push(format!("spec.params: `{name}` has no {lacking}"));
        }
        values.insert(name.clone(), value);
    }
    Refusal::unless_none("ParameterMissing", &missing)?;
    Refusal::unless_none("ParameterTypeMismatch", &wrong)?;
    Refusal::unless_none("ObjectParameterMissKeys", &keys)?;
    Ok(values)
}

/// As Tekton reads it: what is neither list nor object is a text.
fn plain(value: Value) -> Value {
    match value {
        Value::Bool(_) | Value::Number(_) => value.to_string().into(),
        Value::Null => "".into(),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(key, value)| (key, plain(value)));
            Value::Object(members.collect())
        }
        Value::String(_) => value,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => "string",
    }
}

/// Fills in the parameters of a task. In inline steps a parameter of the pipeline is replaced as well, unless
/// the task has one of the name; what is embedded for other controllers stays as it is.
pub(super) fn fill_task(
    task: &mut Value,
    run: &PipelineRun,
    scope: &Scope,
    path: &str,
) -> Result<(), Refusal> {
    let retries = task["retries"].to_string();
    let context = |variable: &str| context(variable, run, &retries);
    let is_custom = is_custom_task(task);
    let params = task.get_mut("params").and_then(Value::as_array_mut);
    for (index, given) in params.into_iter().flatten().enumerate() {
        let path = format!("{path}.params[{index}].value");
        if let Some(given) = given.as_object_mut() {
            let value = given.entry("value").or_insert(Value::Null);
            fill_value(value, &context, scope, &path)?;
        }
    }
    let own = [&task["params"], &task["taskSpec"]["params"]].map(Clone::clone);
    let own = || own.iter().filter_map(Value::as_array).flatten();
    let mut known = |variable: &str| {
        let is_own = |name: &str| own().any(|own| is_place_of(own, name, scope));
        let place = param(variable).filter(|place| !is_own(place.name));
        let value = place.and_then(|place| place.of(|name| scope.get(name)).ok());
        let value = value.cloned().or_else(|| context(variable));
        value.map_or(Found::Kept, Found::Value)
    };
    for field in ["displayName", "taskSpec"] {
        if let Some(part) = task
            .get_mut(field)
            .filter(|_| !is_custom || field == "displayName")
        {
            fill(part, &mut known);
        }
    }
    Ok(())
}

/// Whether a name is that of this parameter, or of a member of it that is none of the pipeline's by a dotted name.
fn is_place_of(own: &Value, name: &str, scope: &Scope) -> bool {
    let Some(rest) = own["name"].as_str().and_then(|own| name.strip_prefix(own)) else {
        return false;
    };
    let has = |key: &str| {
        // A text may be a result that is an object.
        own["value"].is_string()
            || ["value", "default", "properties"]
                .iter()
                .any(|field| own[field].get(key).is_some())
    };
    rest.is_empty() || !scope.contains_key(name) && rest.strip_prefix('.').is_some_and(has)
}

fn fill_value(
    value: &mut Value,
    context: &impl Fn(&str) -> Option<Value>,
    scope: &Scope,
    path: &str,
) -> Result<(), Refusal> {
    *value = plain(value.take());
    let (mut invalid, mut outside) = (Vec::new(), Vec::new());
    let mixed = fill(value, &mut |variable| {
        let Some(place) = param(variable) else {
            if variable.starts_with("context.pipeline") && context(variable).is_none() {
                invalid.push(format!("{path}: there is no `$({variable})`"));
            }
            return context(variable).map_or(Found::Kept, Found::Value);
        };
        match place.of(|name| scope.get(name)) {
            Ok(value) => return Found::Value(value.clone()),
            Err(Missing::Name) => invalid.push(format!(
                "{path}: `$({variable})` is not a parameter of the PipelineRun"
            )),
            Err(Missing::Item) => {
                outside.push(format!(
                    "{path}: `$({variable})` is beyond the end of the list"
                ));
            }
        }
        Found::Kept
    });
    let mixed = mixed.into_iter();
    invalid.extend(mixed.map(|variable| {
        format!("{path}: `$({variable})` is within a text, and is no text itself")
    }));
    Refusal::invalid(&invalid)?;
    Refusal::unless_none("ParamArrayIndexingInvalid", &outside)
}

/// What is known of the run.
fn context(variable: &str, run: &PipelineRun, retries: &str) -> Option<Value> {
    let value = match variable {
        // A pipeline that is inline has the name of its run.
        "context.pipelineRun.name" | "context.pipeline.name" => &run.name,
        "context.pipelineRun.namespace" => &run.namespace,
        "context.pipelineRun.uid" => &run.uid,
        "context.pipelineTask.retries" if retries == "null" => "0",
        "context.pipelineTask.retries" => retries,
        _ => return None,
    };
    Some(value.into())
}
