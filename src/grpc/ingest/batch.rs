//! Requests that are stored together: messages to types, leave, and what became of each.

use std::{collections::HashMap, sync::Arc};

use hindsight_proto::v1::{
    Effect as PbEffect, Refusal, UpsertOutcome, UpsertRequest, Upserted as PbUpserted,
    upsert_outcome,
};

use hindsight_runtime::traces;
use tracing::Instrument as _;

use super::ResultsServer;
use crate::{
    grpc::{convert, status::status},
    service::{Effect, Error, Outcome, Upsert, UpsertGrants},
};
use hindsight_access::RequestContext;
use hindsight_access::auth::{self, Credentials, Verb};
use hindsight_access::budget::{MemoryPermit, QuotaGuard};
use hindsight_filter::model::{Parent, ParentPattern, RecordName, Resource};
use hindsight_runtime::error::HasKind as _;
use hindsight_runtime::telemetry::Ongoing;

/// Under which name each request is counted.
pub(super) const METHOD: &str = "Upsert";
/// Most letters of a refusal: there may be many.
const LONGEST: usize = 1000;

/// A request that was taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) request: UpsertRequest,
    /// Counts it until it is answered.
    pub(super) ongoing: Ongoing,
    /// Quota and memory that it holds until it is durable.
    pub(super) cost: (MemoryPermit, QuotaGuard),
    pub(super) bytes: usize,
}

impl Taken {
    pub(super) fn name(&self) -> &str {
        self.request
            .record
            .as_ref()
            .map_or("", |record| &record.name)
    }
}

/// Stores a batch and says what became of each request.
pub(super) async fn store(
    server: &ResultsServer,
    caller: &Credentials,
    batch: Vec<Taken>,
) -> Vec<UpsertOutcome> {
    let mut leave = Leave {
        server,
        caller,
        known: HashMap::new(),
    };
    let mut outcomes = Vec::with_capacity(batch.len());
    let (mut waiting, mut upserts, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for taken in batch {
        let Taken {
            request,
            ongoing,
            cost,
            ..
        } = taken;
        let id = request.id;
        let span = tracing::info_span!("rpc", rpc.method = METHOD);
        traces::adopt(&span, &request.traceparent);
        match upsert(&mut leave, request).await {
            Ok(upsert) => {
                waiting.push((id, ongoing, span));
                upserts.push(upsert);
                costs.push(cost);
            }
            Err(error) => outcomes.push(answer(id, ongoing, Err(error))),
        }
    }
    // All share what is done for them; it is told as a part of the first.
    let span = tracing::info_span!(parent: waiting.first().and_then(|first| first.2.id()), "batch");
    for (_, _, other) in waiting.iter().skip(1) {
        traces::link(&span, other);
    }
    let stored = server.service.upsert(upserts).instrument(span).await;
    drop(costs);
    for ((id, ongoing, _span), outcome) in waiting.into_iter().zip(stored) {
        outcomes.push(answer(id, ongoing, outcome));
    }
    outcomes
}

fn answer(id: u64, ongoing: Ongoing, outcome: Outcome) -> UpsertOutcome {
    let outcome = match outcome {
        Ok(upserted) => {
            ongoing.finish(0);
            upsert_outcome::Outcome::Stored(PbUpserted {
                record: effect(upserted.record),
                result: effect(upserted.result),
            })
        }
        Err(error) => {
            ongoing.finish(error.kind().grpc_code());
            let status = status(METHOD, &*error);
            upsert_outcome::Outcome::Refused(Refusal {
                code: status.code() as i32,
                message: status.message().chars().take(LONGEST).collect(),
            })
        }
    };
    UpsertOutcome {
        id,
        outcome: Some(outcome),
    }
}

fn effect(effect: Effect) -> i32 {
    let effect = match effect {
        Effect::Created => PbEffect::Created,
        Effect::Updated => PbEffect::Updated,
        Effect::Unchanged => PbEffect::Unchanged,
    };
    effect as i32
}

/// Names are judged before the caller is, so that a malformed name says so to anybody.
async fn upsert(leave: &mut Leave<'_>, request: UpsertRequest) -> Result<Upsert, Arc<Error>> {
    let record = convert::required("record", request.record)?;
    let name: RecordName = convert::name("record.name", &record.name)?;
    let grants = leave.of(name.result().parent()).await;
    let grants = match grants {
        Ok(grants) => grants,
        Err((verb, error)) => {
            if let Error::Auth(auth::Error::Denied { caller }) = &*error {
                let service = &leave.server.service;
                let by = RequestContext::of(Arc::clone(caller));
                service.audit_refused(&by, verb, &name, &error).await;
            }
            return Err(error);
        }
    };
    let said = request.result.unwrap_or_default();
    let read = || {
        let data = convert::to_payload(record.data);
        let summary = said.summary.map(convert::to_summary).transpose()?;
        Ok((convert::required("record.data", data)?, summary))
    };
    let service = &leave.server.service;
    let (data, summary) = service
        .audited(&grants.context, Verb::Create, &name, read())
        .await?;
    Ok(Upsert {
        grants,
        name,
        data,
        annotations: said.annotations,
        summary,
        probably_stored: request.probably_stored,
    })
}

/// What the caller may do, asked once a batch for each parent.
struct Leave<'d> {
    server: &'d ResultsServer,
    caller: &'d Credentials,
    known: HashMap<Parent, Result<Arc<UpsertGrants>, Refused>>,
}

/// What the caller may not do, and why.
type Refused = (Verb, Arc<Error>);

impl Leave<'_> {
    async fn of(&mut self, parent: &Parent) -> Result<Arc<UpsertGrants>, Refused> {
        if let Some(known) = self.known.get(parent) {
            return known.clone();
        }
        let grants = self.ask(parent).await;
        let refused = |(verb, error): (_, auth::Error)| (verb, Arc::new(error.into()));
        let grants = grants.map(Arc::new).map_err(refused);
        self.known.insert(parent.clone(), grants.clone());
        grants
    }

    async fn ask(&self, parent: &Parent) -> Result<UpsertGrants, (Verb, auth::Error)> {
        let both = async |resource: Resource| {
            let may = async |verb| {
                let parent = ParentPattern::Exact(parent.clone());
                let leave = self.server.allow(self.caller, verb, resource, parent);
                leave.await.map_err(|error| (verb, error))
            };
            Ok::<_, (Verb, auth::Error)>([may(Verb::Create).await?, may(Verb::Update).await?])
        };
        let records = both(Resource::Records).await?;
        let results = match both(Resource::Results).await {
            Ok(grants) => Some(grants),
            Err((_, auth::Error::Denied { .. })) => None,
            Err(error) => return Err(error),
        };
        let [create, _] = &records;
        Ok(UpsertGrants {
            context: RequestContext::of(Arc::clone(create.caller())),
            records,
            results,
        })
    }
}
