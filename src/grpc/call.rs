//! One call: its credentials, its metrics, its status.

use std::sync::Arc;

use tonic::{Response, Status, metadata::MetadataMap};
use tracing::Instrument as _;

use super::status::status;
use crate::{
    auth::{Access, Authorizer, Credentials, Grant, Verb},
    error::HasKind as _,
    model::{ParentPattern, Resource},
    service::{Error, Service},
    telemetry::RequestMetrics,
};

/// The service behind its door.
#[derive(Debug, Clone)]
pub struct Door {
    pub(super) service: Service,
    authorizer: Arc<dyn Authorizer>,
    metrics: RequestMetrics,
}

impl Door {
    /// A door to `service` for whom `authorizer` lets in.
    pub fn new(service: Service, authorizer: Arc<dyn Authorizer>, metrics: RequestMetrics) -> Self {
        Self {
            service,
            authorizer,
            metrics,
        }
    }

    /// Answers one call, counting and logging it under the name of its method.
    pub(super) async fn answer<T>(
        &self,
        method: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Response<T>, Status> {
        let span = tracing::info_span!("rpc", rpc.method = method);
        let ongoing = self.metrics.start(method);
        let answer = work.instrument(span.clone()).await;
        let code = answer
            .as_ref()
            .map_or_else(|error| error.kind().grpc_code(), |_| 0);
        ongoing.finish(code);
        span.in_scope(|| match answer {
            Ok(reply) => Ok(Response::new(reply)),
            Err(error) => Err(status(method, &error)),
        })
    }

    /// Asks whether the caller may do this.
    pub(super) async fn grant(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        resource: Resource,
        parent: ParentPattern,
    ) -> Result<Grant, Error> {
        let credentials = credentials(metadata);
        let access = Access {
            verb,
            resource,
            parent,
        };
        Ok(self.authorizer.authorize(&credentials, access).await?)
    }
}

fn credentials(metadata: &MetadataMap) -> Credentials {
    let bearer = metadata
        .get_all("authorization")
        .iter()
        .filter_map(|value| value.to_str().ok()?.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim().to_owned())
        .collect();
    Credentials { bearer }
}
