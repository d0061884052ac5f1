//! `hindsight.v1.Queries`: questions about many records at once.

use hindsight_proto::v1::{
    AggregateGroup, AggregateRequest, AggregateResponse, ExplainRequest, ExplainResponse,
    queries_server::Queries,
};
use prost_types::{Struct, value::Kind};
use tonic::{Request, Response, Status};

use super::{ResultsServer, explain, selector::selector};
use crate::service::{AggregateAsk, AggregateValue, Answered};

#[tonic::async_trait]
impl Queries for ResultsServer {
    async fn aggregate(
        &self,
        request: Request<AggregateRequest>,
    ) -> Result<Response<AggregateResponse>, Status> {
        self.answer("Aggregate", request, |metadata, request| async move {
            let (by, grant, of) = self.grant_list(&metadata, &request.parent).await?;
            let selector = selector(&metadata, request.filter)?;
            let ask = AggregateAsk {
                group_by: request.group_by,
                measures: request.measures,
                time_zone: request.time_zone,
                having: request.having,
                order_by: request.order_by,
                limit: request.limit,
            };
            let answered = self
                .service
                .aggregate_records(&by, &grant, of.id, selector, ask);
            Ok(from_answered(answered.await?))
        })
        .await
    }

    async fn explain(
        &self,
        request: Request<ExplainRequest>,
    ) -> Result<Response<ExplainResponse>, Status> {
        self.answer("Explain", request, |metadata, request| {
            explain::explain(self, metadata, request)
        })
        .await
    }
}

fn from_answered(answered: Answered) -> AggregateResponse {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let groups = answered.groups.into_iter().map(|group| AggregateGroup {
        keys: Some(fields(group.keys)),
        measures: Some(fields(group.measures)),
        approximate: group.approximate,
    });
    AggregateResponse {
        groups: groups.collect(),
        groups_left_out: count(answered.left_out),
        records: count(answered.records),
        relative_error: answered.relative_error,
    }
}

fn fields(values: Vec<(String, AggregateValue)>) -> Struct {
    let value = |value| prost_types::Value {
        kind: Some(match value {
            AggregateValue::Null => Kind::NullValue(0),
            AggregateValue::Bool(truth) => Kind::BoolValue(truth),
            AggregateValue::Number(number) => Kind::NumberValue(number),
            AggregateValue::Text(text) | AggregateValue::Time(_, text) => Kind::StringValue(text),
        }),
    };
    Struct {
        fields: values
            .into_iter()
            .map(|(name, one)| (name, value(one)))
            .collect(),
    }
}
