//! Calls of the Kubernetes API about both kinds, and what its refusals are here.

use hindsight_cluster::{DEADLINE, classify};
use hindsight_runtime::error::ErrorKind;
use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::{Request, Status},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;

use super::object::{GROUP, PIPELINE_VERSIONS, PIPELINES, VERSION};
use crate::error::Error;

/// Objects of the first answer to a list.
const FIRST_PAGE: u32 = 100;

/// Bytes that a further answer to a list may have, if its objects are as large as those before.
const PAGE_BYTES: usize = 8 << 20;

/// Most objects of one answer to a list.
const LARGEST_PAGE: usize = 2000;

/// A kind in a namespace, or in all of them.
#[derive(Clone)]
pub(super) struct Calls<'a> {
    client: &'a Client,
    plural: &'static str,
    namespace: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    r#continue: Option<String>,
}

/// What happened to an object that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleted {
    /// It is gone, or will be once its finalizers are.
    Done,
    /// It was gone, or another one has its name.
    Gone,
}

impl<'a> Calls<'a> {
    pub(super) fn pipelines(client: &'a Client, namespace: Option<&'a str>) -> Self {
        Self {
            client,
            plural: PIPELINES,
            namespace,
        }
    }

    pub(super) fn versions(client: &'a Client, namespace: Option<&'a str>) -> Self {
        Self {
            client,
            plural: PIPELINE_VERSIONS,
            namespace,
        }
    }

    fn path(&self) -> Request {
        let plural = self.plural;
        Request::new(match self.namespace {
            Some(namespace) => format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}"),
            None => format!("/apis/{GROUP}/{VERSION}/{plural}"),
        })
    }

    /// Gives all objects with these labels to `take`, one answer after the other.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        labels: &str,
        mut take: impl FnMut(Vec<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut params = ListParams::default().labels(labels).limit(FIRST_PAGE);
        loop {
            let request = self.path().list(&params);
            let answer = self.call(request, |_| None).await?;
            let answer =
                answer.ok_or_else(|| Error::unavailable("the Kubernetes API gave no answer"))?;
            let page: List<T> = read(&answer)?;
            let size = answer.len() / page.items.len().max(1);
            drop(answer);
            take(page.items)?;
            let Some(token) = page.metadata.r#continue.filter(|token| !token.is_empty()) else {
                return Ok(());
            };
            let limit = (PAGE_BYTES / size.max(1)).clamp(1, LARGEST_PAGE);
            params = params.continue_token(&token);
            params.limit = u32::try_from(limit).ok();
        }
    }

    /// An object by its name, if there is one.
    pub(super) async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let request = self.path().get(name, &GetParams::default());
        let sent = self.call(request, |status| is_missing(status).then_some(Ok(None)));
        sent.await?.map(|answer| read(&answer)).transpose()
    }

    /// Creates an object; nothing if its name is taken.
    pub(super) async fn create<T: DeserializeOwned>(
        &self,
        object: &Value,
    ) -> Result<Option<T>, Error> {
        let object = serde_json::to_vec(object).expect("a value is JSON");
        let request = self.path().create(&PostParams::default(), object);
        let sent = self.call(request, |status| {
            (status.code == 409 && status.reason == "AlreadyExists").then_some(Ok(None))
        });
        sent.await?.map(|answer| read(&answer)).transpose()
    }

    /// Changes an object that is still of this version; nothing if it is not.
    pub(super) async fn merge<T: DeserializeOwned>(
        &self,
        name: &str,
        change: &Value,
    ) -> Result<Option<T>, Error> {
        let request = self
            .path()
            .patch(name, &PatchParams::default(), &Patch::Merge(change));
        let sent = self.call(request, |status| {
            (status.code == 409 || is_missing(status)).then_some(Ok(None))
        });
        sent.await?.map(|answer| read(&answer)).transpose()
    }

    /// Changes the status of an object.
    pub(super) async fn merge_status(&self, name: &str, status: &Value) -> Result<(), Error> {
        let change = serde_json::json!({"status": status});
        let patch = Patch::Merge(&change);
        let request =
            self.path()
                .patch_subresource("status", name, &PatchParams::default(), &patch);
        self.call(request, |_| None).await.map(drop)
    }

    /// Deletes the object of this uid, and in the background what it owns.
    pub(super) async fn delete(&self, name: &str, uid: &str) -> Result<Deleted, Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let request = self.path().delete(name, &params);
        let sent = self.call(request, |status| {
            (status.code == 409 || is_missing(status)).then_some(Ok(None))
        });
        Ok(match sent.await? {
            Some(_) => Deleted::Done,
            None => Deleted::Gone,
        })
    }

    /// `refused` says what a refusal is, unless that is nothing special.
    async fn call(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        refused: impl FnOnce(&Status) -> Option<Result<Option<String>, Error>>,
    ) -> Result<Option<String>, Error> {
        let unavailable =
            |why: String| Error::unavailable(format!("the Kubernetes API did not do it: {why}"));
        let request = request.map_err(|error| unavailable(error.to_string()))?;
        match timeout(DEADLINE, self.client.request_text(request)).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(kube::Error::Api(status))) => {
                refused(&status).unwrap_or_else(|| Err(refusal(&status)))
            }
            Ok(Err(error)) => Err(unavailable(classify(&error).to_string())),
            Err(_elapsed) => {
                let seconds = DEADLINE.as_secs();
                Err(unavailable(format!("no answer in {seconds} s")))
            }
        }
    }
}

fn read<T: DeserializeOwned>(answer: &str) -> Result<T, Error> {
    serde_json::from_str(answer).map_err(|error| {
        Error::unavailable(format!(
            "the Kubernetes API answered what is not understood: {error}"
        ))
    })
}

/// Whether an object is missing, and not the kind or the namespace.
fn is_missing(status: &Status) -> bool {
    let details = status.details.as_ref();
    let is_ours = |kind: &str| matches!(kind, PIPELINES | PIPELINE_VERSIONS);
    status.code == 404
        && details.is_some_and(|details| is_ours(&details.kind) && !details.name.is_empty())
}

fn refusal(status: &Status) -> Error {
    let message = &status.message;
    match status.code {
        400 | 413 | 422 => Error::invalid(message),
        404 if status
            .details
            .as_ref()
            .is_some_and(|details| details.kind == "namespaces") =>
        {
            Error::new(ErrorKind::Missing, message)
        }
        404 => Error::unavailable(format!(
            "the Kubernetes API does not serve {GROUP}/{VERSION}; install the custom resources of pipelines"
        )),
        409 => Error::new(ErrorKind::Exists, message),
        code => Error::unavailable(format!(
            "the Kubernetes API did not do it: {code} {message}"
        )),
    }
}
