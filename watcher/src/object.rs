//! A Kubernetes object of any kind, kept exactly as the API server sent it.
//!
//! Typed objects drop the fields that their type does not know. History must not.

mod nodes;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, core::ObjectMeta, discovery::ApiResource};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, value::RawValue};
use tracing::error;

use hindsight_run::json;

use crate::content::UNREADABLE;

/// An object as the text in which it was received, which takes a fraction of its values, and the few
/// fields of it that a watch needs.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    text: Box<RawValue>,
    meta: ObjectMeta,
}

impl Object {
    /// Bytes of the text.
    pub(crate) fn size(&self) -> usize {
        self.text.get().len()
    }

    /// A few fields of it.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text.get())
    }

    /// The object as JSON, with `apiVersion` and `kind`, which lists of some servers leave out, and
    /// with what Argo has compressed. If it is nested deeper than can be read, only that and its
    /// metadata.
    pub(crate) fn into_value(self, resource: &ApiResource) -> Value {
        let value = json::parse(self.text.get().as_bytes()).unwrap_or_else(|error| {
            let (namespace, name) = (&self.meta.namespace, &self.meta.name);
            error!(
                run.namespace = namespace,
                run.name = name,
                "{} {} in {} cannot be read and is not stored: {error}",
                resource.kind,
                name.as_deref().unwrap_or_default(),
                namespace.as_deref().unwrap_or_default(),
            );
            self.stub(&error)
        });
        let mut value = match value {
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

impl Object {
    /// What stands for an object that cannot be read: enough to know that it is there, who owns it and
    /// what keeps it from being deleted.
    fn stub(&self, error: &dyn std::fmt::Display) -> Value {
        let stub: Stub = serde_json::from_str(self.text.get()).unwrap_or_default();
        serde_json::json!({"metadata": stub.metadata, UNREADABLE: error.to_string()})
    }
}

/// The metadata of an object that cannot be read.
#[derive(Default, Deserialize)]
struct Stub {
    #[serde(default)]
    metadata: Kept,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    pub(super) name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
    owner_references: Vec<OwnerReference>,
    finalizers: Vec<String>,
}

/// Of an object, what a watch needs.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

/// An object as it is sent: compact JSON, everything in the order in which it came.
pub(crate) fn to_bytes(object: &Value) -> Vec<u8> {
    serde_json::to_vec(object).expect("JSON can be written as JSON")
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let meta = head.metadata.map(|meta| ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            ..ObjectMeta::default()
        });
        let meta = meta.unwrap_or_default();
        Ok(Self { text, meta })
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
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
    use hindsight_run::View;

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
    fn of_an_object_that_cannot_be_read_it_is_known_who_owns_it_and_the_others_are_read() {
        let deep = format!(
            r#"{{"metadata":{{"name":"d","uid":"u","labels":{{}},"ownerReferences":[{{"apiVersion":
            "tekton.dev/v1","kind":"PipelineRun","name":"p","uid":"o"}}]}},"spec":{}{}}}"#,
            "[".repeat(400),
            "]".repeat(400)
        );
        let list: Vec<Object> = serde_json::from_str(&format!("[{deep},{{}}]")).unwrap();
        let resource = ApiResource::erase::<k8s_openapi::api::batch::v1::Job>(&());
        let mut values = list.into_iter().map(|object| object.into_value(&resource));
        let stub = values.next().unwrap();
        let view = View::new(&stub);
        assert_eq!((view.name(), view.uid()), (Some("d"), Some("u")));
        assert!(view.owners().any(|owner| owner.uid == "o"));
        assert!(!view.finish().done);
        let refused = crate::plan::upload(&view, &crate::policy::Policy::default());
        assert!(refused.unwrap_err().to_string().contains("recursion limit"));
        assert!(values.next().unwrap().is_object());
    }

    #[test]
    fn texts_of_json_inside_each_other_are_texts() {
        let mut inner = "0".to_owned();
        for _ in 0..150 {
            let quoted = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
            inner = format!(
                r#"{}{{"$serde_json::private::RawValue":"{quoted}"}}{}"#,
                "[".repeat(120),
                "]".repeat(120)
            );
        }
        let text = format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{}},"spec":{inner}}}"#);
        let object: Object = serde_json::from_str(&text).unwrap();
        let resource = ApiResource::erase::<k8s_openapi::api::batch::v1::Job>(&());
        let value = object.into_value(&resource);
        let mut inner = &value["spec"];
        for _ in 0..120 {
            inner = &inner[0];
        }
        assert!(inner["$serde_json::private::RawValue"].is_string());
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
