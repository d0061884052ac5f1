//! Objects compared with the types of Kubernetes: a field that there is not is noticed.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{ALL_OVERLAYS, name, overlay};

/// What an object says that its type does not know.
fn unknown<T: Serialize + DeserializeOwned>(object: &Value) -> Vec<String> {
    let typed: T = match serde_json::from_value(object.clone()) {
        Ok(typed) => typed,
        Err(error) => return vec![error.to_string()],
    };
    let mut missing = Vec::new();
    compare(
        object,
        &serde_json::to_value(typed).unwrap(),
        "",
        &mut missing,
    );
    missing
}

fn compare(said: &Value, kept: &Value, path: &str, missing: &mut Vec<String>) {
    match (said, kept) {
        (Value::Object(said), Value::Object(kept)) => {
            for (key, value) in said {
                let path = format!("{path}.{key}");
                match kept.get(key) {
                    Some(kept) => compare(value, kept, &path, missing),
                    None => missing.push(path),
                }
            }
        }
        (Value::Array(said), Value::Array(kept)) => {
            for (at, (said, kept)) in said.iter().zip(kept).enumerate() {
                compare(said, kept, &format!("{path}[{at}]"), missing);
            }
        }
        (said, kept) if said == kept => {}
        // Bounds in schemas are floating-point numbers.
        (Value::Number(said), Value::Number(kept)) if said.as_f64() == kept.as_f64() => {}
        (said, kept) => missing.push(format!("{path}: {said} is {kept}")),
    }
}

pub(super) fn check(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let (version, unknown) = match kind {
        "Namespace" => ("v1", unknown::<Namespace>(object)),
        "ServiceAccount" => ("v1", unknown::<ServiceAccount>(object)),
        "ConfigMap" => ("v1", unknown::<ConfigMap>(object)),
        "Service" => ("v1", unknown::<Service>(object)),
        "Deployment" => ("apps/v1", unknown::<Deployment>(object)),
        "StatefulSet" => ("apps/v1", unknown::<StatefulSet>(object)),
        "NetworkPolicy" => ("networking.k8s.io/v1", unknown::<NetworkPolicy>(object)),
        "PodDisruptionBudget" => ("policy/v1", unknown::<PodDisruptionBudget>(object)),
        "ClusterRole" => (RBAC, unknown::<ClusterRole>(object)),
        "ClusterRoleBinding" => (RBAC, unknown::<ClusterRoleBinding>(object)),
        "Role" => (RBAC, unknown::<Role>(object)),
        "RoleBinding" => (RBAC, unknown::<RoleBinding>(object)),
        "CustomResourceDefinition" => (
            "apiextensions.k8s.io/v1",
            unknown::<CustomResourceDefinition>(object),
        ),
        "ValidatingWebhookConfiguration" => (
            "admissionregistration.k8s.io/v1",
            unknown::<ValidatingWebhookConfiguration>(object),
        ),
        "MutatingWebhookConfiguration" => (
            "admissionregistration.k8s.io/v1",
            unknown::<MutatingWebhookConfiguration>(object),
        ),
        _ => return vec![format!("`{kind}` is no kind that is expected here")],
    };
    if object["apiVersion"] != version {
        return vec![format!(
            "{kind} is of {version}, not {}",
            object["apiVersion"]
        )];
    }
    unknown
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[test]
fn every_object_of_every_overlay_is_one_that_the_api_server_takes() {
    for of in ALL_OVERLAYS {
        let objects = overlay(of);
        let mut seen = BTreeSet::new();
        for object in &objects {
            let what = (
                object["kind"].as_str().unwrap(),
                object["metadata"]["namespace"].as_str().unwrap_or_default(),
                name(object),
            );
            assert!(seen.insert(what), "{of}: {what:?} is there twice");
            assert_eq!(check(object), Vec::<String>::new(), "{of}: {what:?}");
        }
        assert!(objects.len() >= 15, "{of}: {} objects", objects.len());
    }
}

#[test]
fn a_field_that_does_not_exist_is_noticed() {
    let mut objects = overlay("sqlite");
    let set = objects
        .iter_mut()
        .find(|object| object["kind"] == "StatefulSet")
        .unwrap();
    set["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] =
        Value::Object([].into_iter().collect());
    assert_eq!(
        check(set),
        [".spec.template.spec.containers[0].redinessProbe"]
    );
    set["spec"]["replicas"] = "one".into();
    assert_eq!(check(set).len(), 1);
}
