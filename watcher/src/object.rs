//! A Kubernetes object of any kind, kept exactly as the API server sent it.
//!
//! Typed objects drop the fields that their type does not know. History must not.

mod nodes;

use std::borrow::Cow;

use kube::{Resource, core::ObjectMeta, discovery::ApiResource};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// An object as it was received, and the few fields of it that a watch needs.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    value: Value,
    meta: ObjectMeta,
}

impl Object {
    /// The object as JSON, with `apiVersion` and `kind`, which lists of some servers leave out, and
    /// with what Argo has compressed.
    pub(crate) fn into_value(self, resource: &ApiResource) -> Value {
        let mut value = match self.value {
            Value::Object(map) if !map.contains_key("kind") || !map.contains_key("apiVersion") => {
                let mut whole = Map::new();
                whole.insert("apiVersion".to_owned(), resource.api_version.clone().into());
                whole.insert("kind".to_owned(), resource.kind.clone().into());
                whole.extend(map);
                Value::Object(whole)
            }
            value => value,
        };
        nodes::unpack(&mut value);
        value
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = |key: &str| value.get("metadata")?.get(key)?.as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { value, meta })
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Resource for Object {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use kube::discovery::ApiResource;

    use super::Object;

    #[test]
    fn an_object_keeps_fields_that_nobody_knows_and_their_order() {
        let text = r#"{"kind":"TaskRun","apiVersion":"tekton.dev/v1","zeta":1,"metadata":{"uid":"u","new":{"b":1,"a":2}},"alpha":null}"#;
        let object: Object = serde_json::from_str(text).unwrap();
        assert_eq!(object.meta.uid.as_deref(), Some("u"));
        assert_eq!(serde_json::to_string(&object).unwrap(), text);
        let resource = ApiResource::erase::<k8s_openapi::api::batch::v1::Job>(&());
        assert_eq!(object.into_value(&resource).to_string(), text);
    }

    #[test]
    fn an_object_from_a_list_gets_its_type() {
        let object: Object = serde_json::from_str(r#"{"metadata":{}}"#).unwrap();
        let resource = ApiResource::erase::<k8s_openapi::api::batch::v1::Job>(&());
        assert_eq!(
            object.into_value(&resource).to_string(),
            r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{}}"#
        );
    }
}
