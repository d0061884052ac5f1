//! Where a case runs: a namespace on some server, and how a case asks it.

use std::fmt::Debug;

use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{Difference, GROUP};

/// Where a case runs: a namespace of its own on some server.
#[derive(Clone)]
pub struct Arena {
    /// Client through which the case reaches the server.
    pub client: Client,
    /// Name of the namespace, which is empty when the case begins.
    pub namespace: String,
    /// Makes the server forget its history, where that is possible.
    pub(super) sim: Option<crate::Sim>,
}

impl Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Arena {
    /// The simulated cluster that this is a part of, if it is one.
    pub fn sim(&self) -> Option<&crate::Sim> {
        self.sim.as_ref()
    }

    /// A client that acts for another user, whom the server takes its rights from.
    pub fn client_as(&self, user: &str) -> Client {
        let (client, user) = (self.client.clone(), user.to_owned());
        let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
            let name = http::HeaderValue::from_str(&user);
            request.headers_mut().insert(
                "impersonate-user",
                name.expect("the users of the cases are written in ASCII"),
            );
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(service, &self.namespace)
    }

    /// Config maps of the namespace.
    pub fn maps(&self) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("", "v1", "ConfigMap"),
            "configmaps",
        );
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// A custom kind with a status subresource.
    pub fn widgets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource("Widget", "widgets"),
        )
    }

    /// A custom kind without a status subresource.
    pub fn gadgets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource("Gadget", "gadgets"),
        )
    }

    /// Creates a config map, and fails where the server does not create it.
    pub async fn map(&self, name: &str, labels: Value) -> Result<DynamicObject, Difference> {
        create(
            &self.maps(),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels},
                "data": {"value": "1"},
            }),
        )
        .await
    }

    /// Creates a widget, and fails where the server does not create it.
    pub async fn widget(&self, metadata: Value) -> Result<DynamicObject, Difference> {
        create(&self.widgets(), widget(metadata)).await
    }

    /// Merges into a widget, and fails where the server refuses to.
    pub async fn merge(&self, name: &str, patch: Value) -> Result<DynamicObject, kube::Error> {
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        self.widgets().patch(name, &params, &patch).await
    }

    /// Deletes a widget, and fails where the server refuses to.
    pub async fn delete(&self, name: &str) -> Result<(), kube::Error> {
        let params = DeleteParams::default();
        self.widgets().delete(name, &params).await.map(drop)
    }

    /// The path of what is said of a custom kind in this namespace.
    pub fn path(&self, rest: &str) -> String {
        format!("/apis/{GROUP}/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// Makes a request without a body. It answers, and fails, as `raw` does.
    pub async fn ask(&self, method: &str, path: &str) -> Result<(u16, Value), Difference> {
        let json = "application/json";
        self.raw(method, path, json, &Value::Null).await
    }

    /// Makes the server forget its history.
    pub fn forget(&self) {
        if let Some(sim) = &self.sim {
            sim.compact();
        }
    }

    /// Makes a request as it stands, and answers status code and body; a body that is no JSON is null.
    /// It fails where the connection breaks.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        accept: &str,
        body: &Value,
    ) -> Result<(u16, Value), Difference> {
        let headers = [("accept", accept), ("content-type", "application/json")];
        self.send(method, path, &headers, body).await
    }

    /// Makes a request for another user. It answers, and fails, as `raw` does.
    pub async fn raw_as(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), Difference> {
        let json = "application/json";
        let headers = [
            ("accept", json),
            ("content-type", json),
            ("impersonate-user", user),
        ];
        self.send(method, path, &headers, body).await
    }

    /// Makes a request with these headers. It answers, and fails, as `raw` does.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<(u16, Value), Difference> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(kube::client::Body::from(body))
            .expect("methods, paths and headers of the cases are well formed");
        let answer = self.client.send(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", kind), plural)
}

/// A widget with a spec.
pub fn widget(metadata: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Widget",
        "metadata": metadata,
        "spec": {"size": 1},
    })
}

/// Creates an object from JSON, and fails where the server does not create it.
pub async fn create(api: &Api<DynamicObject>, object: Value) -> Result<DynamicObject, Difference> {
    Ok(api.create(&PostParams::default(), &dynamic(object)).await?)
}

/// An object of any kind from JSON.
pub fn dynamic(object: Value) -> DynamicObject {
    serde_json::from_value(object).expect("the objects of the cases have metadata")
}
