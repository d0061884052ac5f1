//! What an API server must do, as cases that run against the simulator and against a real server
//! alike. A difference is a bug of the simulator. The cases know neither: they see an [`Arena`].

use std::{fmt::Debug, time::Duration};

use futures::future::BoxFuture;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::{GroupVersionKind, Status},
};
use serde_json::{Value, json};

pub mod access;
pub mod applies;
mod cases;
mod clean;
pub mod deletes;
pub mod discovery;
mod ground;
pub mod leases;
pub mod limits;
pub mod lists;
mod seen;
pub mod watches;
pub mod writes;

pub use cases::CASES;
pub use ground::{Ground, Outcome};
pub use seen::Seen;

/// How long a case waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a case ends with.
pub type Verdict = Result<(), Difference>;

/// How the server differs from what it must be.
#[derive(Debug, thiserror::Error)]
pub enum Difference {
    /// An answer is not what it must be.
    #[error("{what}: want {wanted}, found {found}")]
    Value {
        /// What was looked at.
        what: String,
        /// What it must be.
        wanted: String,
        /// What the server answered instead.
        found: String,
    },
    /// Something that must happen did not.
    #[error("{what} did not happen within {} s", PATIENCE.as_secs())]
    Missing {
        /// What was waited for until patience ran out.
        what: String,
    },
    /// A request that must work did not.
    #[error("a request that must work was refused")]
    Refused(#[from] kube::Error),
}

/// A part of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// Module and function of the case: `module::function`.
    pub name: &'static str,
    /// What it cannot run without.
    pub needs: Needs,
    /// The function that runs the case in an arena of its own.
    pub run: fn(Arena) -> BoxFuture<'static, Verdict>,
}

impl Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("needs", &self.needs)
            .finish()
    }
}

/// What a server must offer beside the API for a case to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beside the API itself.
    Nothing,
    /// A garbage collector and a namespace controller.
    Controllers,
    /// Somebody who can make the server forget its history.
    Forgetting,
    /// Requests that are checked against roles.
    Roles,
}

/// Where a case runs: a namespace of its own on some server.
#[derive(Clone)]
pub struct Arena {
    /// Client through which the case reaches the server.
    pub client: Client,
    /// Name of the namespace, which is empty when the case begins.
    pub namespace: String,
    /// Makes the server forget its history, where that is possible.
    sim: Option<crate::Sim>,
}

impl Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// The group of the two kinds that exist for the contract.
pub const GROUP: &str = "contract.kubesim.dev";

impl Arena {
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

    /// Creates a config map.
    ///
    /// # Errors
    /// When the server does not.
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

    /// Creates a widget.
    ///
    /// # Errors
    /// When the server does not.
    pub async fn widget(&self, metadata: Value) -> Result<DynamicObject, Difference> {
        create(&self.widgets(), widget(metadata)).await
    }

    /// Makes the server forget its history.
    pub fn forget(&self) {
        if let Some(sim) = &self.sim {
            sim.compact();
        }
    }

    /// Makes a request as it stands, and answers status code and body; a body that is no JSON is null.
    ///
    /// # Errors
    /// When the connection breaks.
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

    /// Makes a request for another user, as `raw` does.
    ///
    /// # Errors
    /// When the connection breaks.
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

    /// Makes a request with these headers, and answers as `raw` does.
    ///
    /// # Errors
    /// When the connection breaks.
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

/// Creates an object from JSON.
///
/// # Errors
/// When the server does not.
pub async fn create(api: &Api<DynamicObject>, object: Value) -> Result<DynamicObject, Difference> {
    Ok(api.create(&PostParams::default(), &dynamic(object)).await?)
}

/// An object of any kind from JSON.
pub fn dynamic(object: Value) -> DynamicObject {
    serde_json::from_value(object).expect("the objects of the cases have metadata")
}

/// The names of objects, in their order.
pub fn names<'a>(objects: impl IntoIterator<Item = &'a DynamicObject>) -> Vec<String> {
    objects
        .into_iter()
        .map(|object| object.metadata.name.clone().unwrap_or_default())
        .collect()
}

/// The version of an object.
pub fn version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

/// The uid of an object.
pub fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

/// Finds two things equal.
///
/// # Errors
/// When they differ.
pub fn same<F, W>(what: &str, found: F, wanted: W) -> Verdict
where
    F: Debug + PartialEq<W>,
    W: Debug,
{
    if found == wanted {
        return Ok(());
    }
    Err(Difference::Value {
        what: what.into(),
        wanted: format!("{wanted:?}"),
        found: format!("{found:?}"),
    })
}

/// Finds something true.
///
/// # Errors
/// When it is not.
pub fn holds(what: &str, true_: bool) -> Verdict {
    same(what, true_, true)
}

/// Finds that the server refused with `code` and `reason`.
///
/// # Errors
/// When it did not refuse, or did otherwise.
pub fn refused<T: Debug>(
    what: &str,
    outcome: Result<T, kube::Error>,
    code: u16,
    reason: &str,
) -> Result<Box<Status>, Difference> {
    match outcome {
        Err(kube::Error::Api(status)) => {
            same(what, (status.code, status.reason.as_str()), (code, reason))?;
            Ok(status)
        }
        Err(error) => Err(error.into()),
        Ok(found) => Err(Difference::Value {
            what: what.into(),
            wanted: format!("{code} {reason}"),
            found: format!("{found:?}"),
        }),
    }
}

/// Asks again and again until `holds`.
///
/// # Errors
/// When it does not within the patience of the suite.
pub async fn eventually<F>(what: &str, mut holds: impl FnMut() -> F) -> Verdict
where
    F: Future<Output = Result<bool, Difference>>,
{
    let asked = tokio::time::timeout(PATIENCE, async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    });
    asked
        .await
        .unwrap_or_else(|_elapsed| Err(Difference::Missing { what: what.into() }))
}
