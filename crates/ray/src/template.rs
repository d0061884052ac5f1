//! Conversion between compute templates and config maps, and the resources that they give to containers.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1::{ComputeTemplate, PodToleration};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use serde_json::{Map, Value, json};

use crate::{
    error::{Error, invalid, unspecified},
    json::{items, text},
    names::{is_key, is_quantity, is_subdomain},
};

/// The label that tells templates from other config maps, and its value.
pub(crate) const CONFIG_TYPE: &str = "ray.io/config-type";
pub(crate) const COMPUTE_TEMPLATE: &str = "compute-template";
/// The name of a template, as a label of its config map and as an annotation of pods.
pub(crate) const TEMPLATE_NAME: &str = "ray.io/compute-template";

/// The accelerator of templates that name none.
const ACCELERATOR: &str = "nvidia.com/gpu";
/// The unit of templates that name none.
const UNIT: &str = "Gi";

fn unit(template: &ComputeTemplate) -> &str {
    Some(template.memory_unit.as_str())
        .filter(|unit| !unit.is_empty())
        .unwrap_or(UNIT)
}

/// Checks the template of a request for `namespace`.
///
/// # Errors
/// [`Error::Invalid`] for the first field that is missing or wrong.
pub(crate) fn check(template: &ComputeTemplate, namespace: &str) -> Result<(), Error> {
    if namespace != template.namespace {
        return Err(invalid(
            "The namespace in the request is different from the namespace defined in the compute template.",
        ));
    }
    if template.name.is_empty() {
        return Err(unspecified("Compute template name is empty"));
    }
    if template.cpu == 0 {
        return Err(unspecified("Cpu amount is zero"));
    }
    if template.memory == 0 {
        return Err(unspecified("Memory amount is zero"));
    }
    // It is the value of a label, too.
    if !is_subdomain(&template.name) || template.name.len() > 63 {
        return Err(invalid(format!(
            "Compute template name `{}` is not a DNS name of at most 63 characters",
            template.name
        )));
    }
    let memory = format!("{}{}", template.memory, unit(template));
    if !is_quantity(&memory) {
        return Err(invalid(format!("invalid memory quantity \"{memory}\"")));
    }
    let accelerator = Some(&template.gpu_accelerator).filter(|name| !name.is_empty());
    match accelerator
        .into_iter()
        .chain(template.extended_resources.keys())
        .find(|name| !is_key(name) || matches!(name.as_str(), "cpu" | "memory"))
    {
        Some(name) => Err(invalid(format!(
            "`{name}` is not the name of an extended resource"
        ))),
        None => Ok(()),
    }
}

/// The config map of a template.
pub(crate) fn config_map(template: &ComputeTemplate) -> ConfigMap {
    let labels = [
        (CONFIG_TYPE, COMPUTE_TEMPLATE),
        (TEMPLATE_NAME, &template.name),
    ];
    let mut data: BTreeMap<String, String> = [
        ("name", template.name.clone()),
        ("namespace", template.namespace.clone()),
        ("cpu", template.cpu.to_string()),
        ("memory", template.memory.to_string()),
        ("memory_unit", unit(template).to_owned()),
        ("gpu", template.gpu.to_string()),
        ("gpu_accelerator", template.gpu_accelerator.clone()),
        (
            "extended_resources",
            json!(template.extended_resources).to_string(),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if !template.tolerations.is_empty() {
        let tolerations = template.tolerations.iter().map(|of| {
            json!({"key": of.key, "operator": of.operator, "value": of.value, "effect": of.effect})
        });
        data.insert(
            "tolerations".to_owned(),
            Value::from_iter(tolerations).to_string(),
        );
    }
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(template.name.clone()),
            namespace: Some(template.namespace.clone()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// Whether a config map is a template.
pub(crate) fn is_template(map: &ConfigMap) -> bool {
    let labels = map.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(CONFIG_TYPE))
        .is_some_and(|kind| kind == COMPUTE_TEMPLATE)
}

/// The template of a config map. A value that cannot be read is left out.
pub(crate) fn read(map: &ConfigMap) -> ComputeTemplate {
    let get = |key: &str| {
        map.data
            .as_ref()
            .and_then(|data| data.get(key))
            .cloned()
            .unwrap_or_default()
    };
    let amount = |key: &str| get(key).parse().unwrap_or(0);
    let parsed = |key: &str| hindsight_run::json::parse(get(key).as_bytes()).unwrap_or(Value::Null);
    let resources = parsed("extended_resources");
    let resources = resources.as_object().into_iter().flatten();
    let toleration = |of: &Value| PodToleration {
        key: text(of, "/key"),
        operator: text(of, "/operator"),
        value: text(of, "/value"),
        effect: text(of, "/effect"),
    };
    let mut found = ComputeTemplate {
        name: map.metadata.name.clone().unwrap_or_default(),
        namespace: map.metadata.namespace.clone().unwrap_or_default(),
        cpu: amount("cpu"),
        memory: amount("memory"),
        gpu: amount("gpu"),
        gpu_accelerator: get("gpu_accelerator"),
        tolerations: items(&parsed("tolerations"), "")
            .iter()
            .map(toleration)
            .collect(),
        extended_resources: resources
            .filter_map(|(name, amount)| {
                Some((name.clone(), u32::try_from(amount.as_u64()?).ok()?))
            })
            .collect(),
        memory_unit: get("memory_unit"),
    };
    if found.memory_unit.is_empty() {
        UNIT.clone_into(&mut found.memory_unit);
    }
    found
}

/// The resources of a container; limits equal requests.
pub(crate) fn resources(template: &ComputeTemplate) -> Value {
    let mut amounts = Map::new();
    amounts.insert("cpu".to_owned(), template.cpu.to_string().into());
    let memory = format!("{}{}", template.memory, unit(template));
    amounts.insert("memory".to_owned(), memory.into());
    if template.gpu > 0 {
        let name = Some(template.gpu_accelerator.as_str()).filter(|name| !name.is_empty());
        amounts.insert(
            name.unwrap_or(ACCELERATOR).to_owned(),
            template.gpu.to_string().into(),
        );
    }
    for (name, amount) in &template.extended_resources {
        if *amount > 0 {
            amounts.insert(name.clone(), amount.to_string().into());
        }
    }
    json!({"limits": amounts, "requests": amounts})
}

/// The tolerations of a pod.
pub(crate) fn tolerations(template: &ComputeTemplate) -> Vec<Value> {
    let of = |of: &PodToleration| {
        let exists = of.operator == "Exists";
        let effect = match of.effect.as_str() {
            known @ ("NoExecute" | "NoSchedule") => known,
            _ => "PreferNoSchedule",
        };
        crate::json::object([
            ("key", of.key.as_str().into()),
            ("operator", if exists { "Exists" } else { "Equal" }.into()),
            ("value", if exists { "" } else { of.value.as_str() }.into()),
            ("effect", effect.into()),
        ])
    };
    template.tolerations.iter().map(of).collect()
}
