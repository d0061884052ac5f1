//! One call: its credentials, its metrics, its status.

use std::{fmt::Display, sync::Arc};

use hindsight_proto::metadata::{IMPERSONATE, REQUEST_ID, WARNING};
use percent_encoding::percent_decode_str;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    codegen::http::HeaderMap,
    metadata::{MetadataMap, MetadataValue},
};
use tracing::Instrument as _;

use super::{convert, status::status};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{
    self, Access, ActingFor, Authorizer, Credentials, Grant, Guarded, Verb,
};
use hindsight_access::budget::{Arrival, Budgets};
use hindsight_filter::model::{
    LogName, Parent, ParentPattern, RecordName, Resource, ResultName, ResultPattern,
};
use hindsight_runtime::error::HasKind as _;
use hindsight_runtime::telemetry::RequestMetrics;

/// The methods of the API over the use-cases: who is let in, what is counted and logged.
#[derive(Debug, Clone)]
pub struct ResultsServer {
    pub(super) service: Service,
    authorizer: Arc<dyn Authorizer>,
    pub(super) metrics: RequestMetrics,
    pub(super) budgets: Budgets,
    pub(super) stopping: CancellationToken,
}

impl ResultsServer {
    /// A server of `service` for callers whom `authorizer` lets in. Streams take nothing more once
    /// `stopping` is cancelled, and end when what they took is answered.
    pub fn new(
        service: Service,
        authorizer: Arc<dyn Authorizer>,
        metrics: RequestMetrics,
        budgets: Budgets,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            service,
            authorizer,
            metrics,
            budgets,
            stopping,
        }
    }

    /// Answers one call, counting and logging it under the name of its method.
    pub(super) async fn answer<Q, T, W: Future<Output = Result<T, Error>>>(
        &self,
        method: &'static str,
        request: Request<Q>,
        work: impl FnOnce(MetadataMap, Q) -> W,
    ) -> Result<Response<T>, Status> {
        let span = tracing::info_span!("rpc", rpc.method = method);
        let ongoing = self.metrics.start(method);
        let (metadata, _, request) = request.into_parts();
        let answer = work(metadata, request).instrument(span.clone()).await;
        let code = answer
            .as_ref()
            .map_or_else(|error| error.kind().grpc_code(), |_| 0);
        ongoing.finish(code);
        span.in_scope(|| match answer {
            Ok(reply) => Ok(Response::new(reply)),
            Err(error) => Err(status(method, &error)),
        })
    }

    /// Asks whether the caller may read this, and has not used up what it may for now.
    pub(super) async fn grant(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        resource: impl Into<Guarded> + Send,
        parent: ParentPattern,
    ) -> Result<(RequestContext, Grant), Error> {
        let resource = resource.into();
        let place = match resource {
            Guarded::Results => format!("{parent}/results/-"),
            Guarded::Records => format!("{parent}/results/-/records/-"),
            Guarded::Logs => format!("{parent}/results/-/logs/-"),
            Guarded::Clusters
            | Guarded::ComputeTemplates
            | Guarded::Pipelines
            | Guarded::PipelineVersions => {
                format!("{parent}/{}/-", resource.name())
            }
        };
        let admitted = self.admit(metadata, verb, resource, parent).await;
        if let Err((Some(by), why @ Error::Auth(_))) = &admitted {
            self.service.audit_denied_read(by, verb, &place, why).await;
        }
        admitted.map_err(|(_, why)| why)
    }

    /// Asks whether the caller may list records of the results that `parent` names, as [`grant`](Self::grant)
    /// does, and says which these are.
    pub(super) async fn grant_list(
        &self,
        metadata: &MetadataMap,
        parent: &str,
    ) -> Result<(RequestContext, Grant, ResultPattern), Error> {
        let of: ResultPattern = convert::name("parent", parent.trim())?;
        let place = of.parent.clone();
        let (by, grant) = self
            .grant(metadata, Verb::List, Resource::Records, place)
            .await?;
        Ok((by, grant, of))
    }

    /// Asks whether the caller may change this, and has not used up what it may for now. A refusal
    /// is written to the audit log.
    pub(super) async fn grant_change(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        name: &impl Name,
    ) -> Result<(RequestContext, Grant), Error> {
        let (resource, parent) = name.access();
        let parent = ParentPattern::Exact(parent.clone());
        let admitted = self.admit(metadata, verb, resource, parent).await;
        if let Err((Some(by), why)) = &admitted {
            self.service.audit_refused(by, verb, name, why).await;
        }
        admitted.map_err(|(_, why)| why)
    }

    /// Does `work` if the caller may. Once begun it is done and audited, also if the caller goes away.
    pub(super) async fn change<T: Send + 'static, E: Into<Error> + Send + 'static>(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        object: impl Name + Send + 'static,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Error> {
        let (by, _grant) = self.grant_change(metadata, verb, &object).await?;
        let service = self.service.clone();
        let done = tokio::spawn(async move {
            let outcome = work.await.map_err(Into::into);
            let said = outcome.as_ref().map(drop);
            service.audit_change(&by, verb, &object, said).await;
            outcome
        });
        done.await.expect("a change does not panic")
    }

    /// Asks whether the caller may do this, and has not used up what it may for now; a refusal comes
    /// with its context, if the caller is known.
    async fn admit(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        resource: Guarded,
        parent: ParentPattern,
    ) -> Result<(RequestContext, Grant), (Option<RequestContext>, Error)> {
        let context = |caller: &Arc<_>| RequestContext {
            request_id: request_id(metadata),
            ..RequestContext::of(Arc::clone(caller))
        };
        let allowed = self
            .allow(&credentials(metadata.as_ref()), verb, resource, parent)
            .await;
        let grant = allowed.map_err(|error| match &error {
            auth::Error::Denied { caller } => (Some(context(caller)), error.into()),
            _ => (None, error.into()),
        })?;
        let by = context(grant.caller());
        match self.budgets.enter(&by.caller.name) {
            Ok(quota) => {
                if let Some(arrival) = Arrival::current() {
                    arrival.hold_quota(&quota);
                }
                Ok((RequestContext { quota, ..by }, grant))
            }
            Err(exceeded) => Err((Some(by), exceeded.into())),
        }
    }

    /// Asks whether the caller of `credentials` may do this.
    pub(super) async fn allow(
        &self,
        credentials: &Credentials,
        verb: Verb,
        resource: impl Into<Guarded> + Send,
        parent: ParentPattern,
    ) -> Result<Grant, auth::Error> {
        let access = Access {
            verb,
            resource: resource.into(),
            parent,
        };
        self.authorizer.authorize(credentials, access).await
    }
}

/// The name of what a call changes.
pub(super) trait Name: Display + Sync {
    /// The resource that it names, and the parent of that.
    fn access(&self) -> (Guarded, &Parent);
}

impl Name for ResultName {
    fn access(&self) -> (Guarded, &Parent) {
        (Guarded::Results, self.parent())
    }
}

impl Name for RecordName {
    fn access(&self) -> (Guarded, &Parent) {
        (Guarded::Records, self.result().parent())
    }
}

impl Name for LogName {
    fn access(&self) -> (Guarded, &Parent) {
        (Guarded::Logs, self.record().result().parent())
    }
}

/// The id that the client gave the request of this metadata.
fn request_id(metadata: &MetadataMap) -> Option<Arc<str>> {
    let id = metadata.get(REQUEST_ID)?.to_str().ok()?;
    Some(id.into())
}

/// What a caller showed in the metadata of a call.
#[must_use]
pub fn credentials(metadata: &HeaderMap) -> Credentials {
    let bearer = metadata
        .get_all("authorization")
        .iter()
        .filter_map(|value| value.to_str().ok()?.trim().split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim().to_owned())
        .filter(|token| !token.is_empty())
        .collect();
    Credentials {
        bearer,
        acting_for: acting_for(metadata),
        source: None,
    }
}

/// For whom the caller acts. What is empty, twice or no text is not guessed at.
fn acting_for(metadata: &HeaderMap) -> ActingFor {
    let mut acting = ActingFor::default();
    for (name, value) in metadata {
        let Some(what) = name.as_str().strip_prefix(IMPERSONATE) else {
            continue;
        };
        let text = match std::str::from_utf8(value.as_bytes()) {
            Ok(text) if !text.is_empty() => text.to_owned(),
            _ => {
                acting.unreadable = true;
                continue;
            }
        };
        match what {
            "user" => acting.unreadable |= acting.user.replace(text).is_some(),
            "uid" => acting.unreadable |= acting.uid.replace(text).is_some(),
            "group" => acting.groups.push(text),
            _ => match what.strip_prefix("extra-").map(decoded) {
                Some(Some(key)) => acting.extra.entry(key).or_default().push(text),
                // The API server knows no others; one that narrows must not be dropped.
                Some(None) | None => acting.unreadable = true,
            },
        }
    }
    acting
}

/// A key that may hold percent-encoded characters, which no header name can hold itself.
fn decoded(key: &str) -> Option<String> {
    let key = percent_decode_str(key).decode_utf8().ok()?;
    (!key.is_empty()).then(|| key.to_lowercase())
}

#[cfg(test)]
mod tests;

/// Longest warning, in characters: names in it are as long as those of payloads and filters.
const MAX_WARNING: usize = 500;

/// A reply, and beside it what its caller should be told. Metadata is ASCII.
pub(super) fn with_warnings<T>(answer: Response<(T, Vec<String>)>) -> Response<T> {
    let (mut metadata, (reply, warnings), extensions) = answer.into_parts();
    for warning in warnings {
        let shown = warning.chars().take(MAX_WARNING).flat_map(|c| match c {
            ' '..='~' => vec![c],
            other => other.escape_default().collect(),
        });
        if let Ok(value) = MetadataValue::try_from(shown.collect::<String>()) {
            metadata.append(WARNING, value);
        }
    }
    Response::from_parts(metadata, reply, extensions)
}
