//! Calls of the Kubernetes API, and what its refusals are here.

use hindsight_cluster::{DEADLINE, classify};
use kube::core::Status;
use tokio::time::timeout;

use crate::error::Error;

/// Makes a call; `refused` says what a refusal of the API server is, unless that is nothing special.
///
/// # Errors
/// If there is no answer, or it is a refusal.
pub(crate) async fn call<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
    refused: impl FnOnce(&Status) -> Option<Error>,
) -> Result<T, Error> {
    let unavailable =
        |why: String| Error::Unavailable(format!("the Kubernetes API did not do it: {why}"));
    match timeout(DEADLINE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => {
            Err(refused(&status).unwrap_or_else(|| match status.code {
                400 | 410 | 413 | 422 => Error::Invalid(status.message.clone()),
                code => unavailable(format!("{code} {}", status.message)),
            }))
        }
        Ok(Err(error)) => Err(unavailable(classify(&error).to_string())),
        Err(_elapsed) => Err(unavailable(format!(
            "no answer in {} s",
            DEADLINE.as_secs()
        ))),
    }
}

/// Whether an object of these plurals is missing, and not the kind.
pub(crate) fn is_missing(status: &Status, plural: &str) -> bool {
    let details = status.details.as_ref();
    status.code == 404
        && details.is_some_and(|details| details.kind == plural && !details.name.is_empty())
}

/// That the namespace of a new object is missing.
pub(crate) fn no_namespace(status: &Status) -> Option<Error> {
    is_missing(status, "namespaces").then(|| Error::Missing(status.message.clone()))
}

/// That the kind is missing, where an object is not.
pub(crate) fn no_kind(status: &Status) -> Option<Error> {
    (status.code == 404).then(|| {
        Error::Unavailable(
            "the Kubernetes API does not serve RayCluster of ray.io/v1; install the custom resources of KubeRay"
                .to_owned(),
        )
    })
}
