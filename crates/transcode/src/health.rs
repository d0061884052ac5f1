//! `/healthz`: what `grpc.health.v1` says, for those who ask over HTTP.

use axum::{
    Router,
    body::Body,
    http::{Response, StatusCode, uri::PathAndQuery},
};
use prost_reflect::prost::Message as _;
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
};

use super::{
    answer::{Refusal, json},
    call, request,
};

const TARGET: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Check");

/// 200 while the service that the query names (or the server, if none) is SERVING, else 503.
pub(super) async fn check(grpc: &Router, query: &str) -> Result<Response<Body>, Refusal> {
    let service = request::query(query)?
        .into_iter()
        .find(|(key, _)| key == "service")
        .map(|(_, value)| value)
        .unwrap_or_default();
    let ask = HealthCheckRequest { service };
    let reply = call::ask(grpc, &TARGET, axum::http::HeaderMap::new(), ask).await?;
    let reply = HealthCheckResponse::decode(reply.0)
        .map_err(|error| Refusal::internal(format!("a state of health is broken: {error}")))?;
    let told = serde_json::json!({ "status": reply.status().as_str_name() });
    let mut response = json(told.to_string().into_bytes());
    if reply.status() != ServingStatus::Serving {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}
