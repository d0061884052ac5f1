//! `hindsight.v1.Queries/Explain`.

use hindsight_proto::v1::{Certainty, ExplainRequest, ExplainResponse, LeftOver, Listed};
use tonic::metadata::MetadataMap;

use super::{ResultsServer, convert, selector::selector};
use crate::service::{Certain, Error, Explanation, ListRequest, Rest, page_size};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{Resource, ResultPattern};

pub(super) async fn explain(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: ExplainRequest,
) -> Result<ExplainResponse, Error> {
    let of: ResultPattern = convert::name("parent", request.parent.trim())?;
    let resource = match Listed::try_from(request.listed) {
        Ok(Listed::Records) => Resource::Records,
        Ok(Listed::Results) => Resource::Results,
        Err(_unknown) => {
            let why = format!("listed: {} is neither RECORDS nor RESULTS", request.listed);
            return Err(Error::Invalid(why));
        }
    };
    let (by, grant) = server
        .grant(&metadata, Verb::List, resource, of.parent)
        .await?;
    let list = ListRequest {
        selector: selector(&metadata, request.filter)?,
        order_by: request.order_by,
        size: page_size(request.page_size)?,
        token: String::new(),
        payloads: true,
    };
    let id = match resource {
        Resource::Records => of.id,
        Resource::Results => None,
    };
    let explanation = server
        .service
        .explain(&by, &grant, resource, id, list)
        .await?;
    Ok(reply(explanation))
}

fn reply(explanation: Explanation) -> ExplainResponse {
    let may_exceed_budget = explanation.may_exceed_budget();
    let number = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
    let certainty = match explanation.certain() {
        Certain::Counted => Certainty::Counted,
        Certain::AtLeast => Certainty::AtLeast,
        Certain::Estimated => Certainty::Estimated,
    };
    let left_over = match explanation.rest {
        Rest::Nothing => LeftOver::Nothing,
        Rest::Rows => LeftOver::EachRow,
        Rest::Payloads => LeftOver::EachPayload,
    };
    ExplainResponse {
        asked: explanation.asked,
        left_over: left_over.into(),
        indexes: explanation.plan.indexes,
        plan: explanation.plan.steps,
        rows: number(explanation.plan.rows.rows()),
        certainty: certainty.into(),
        cost: explanation.plan.cost.unwrap_or_default(),
        scan_budget: number(explanation.scan_budget),
        may_exceed_budget,
    }
}
