//! Calls of the Kubernetes API, and which error each refusal is.

use hindsight_cluster::{DEADLINE, classify};
use kube::core::Status;
use tokio::time::timeout;

use crate::error::Error;

/// Makes a call. A refusal is the error that `refused` makes of it, else [`Error::Invalid`] if the request is at fault, else
/// [`Error::Unavailable`].
///
/// # Errors
/// If there is no answer within [`DEADLINE`], or it is a refusal.
pub(crate) async fn call<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
    refused: impl FnOnce(&Status) -> Option<Error>,
) -> Result<T, Error> {
    let unavailable = |why: String| Error::Unavailable(format!("Kubernetes API: {why}"));
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

/// Whether an object of the resource `plural` is missing, and not the resource itself.
pub(crate) fn is_missing(status: &Status, plural: &str) -> bool {
    let details = status.details.as_ref();
    status.code == 404
        && details.is_some_and(|details| details.kind == plural && !details.name.is_empty())
}

/// The error for an object that is created in a namespace that does not exist.
pub(crate) fn no_namespace(status: &Status) -> Option<Error> {
    is_missing(status, "namespaces").then(|| Error::Missing(status.message.clone()))
}

/// The error for a cluster without the resource of RayClusters. For a 404 that is about no object.
pub(crate) fn no_kind(status: &Status) -> Option<Error> {
    (status.code == 404).then(|| {
        Error::Unavailable(
            "the Kubernetes API does not serve RayCluster of ray.io/v1; install the custom resources of KubeRay"
                .to_owned(),
        )
    })
}
