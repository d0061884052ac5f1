//! Traces: the spans of a program, sent to a collector over OTLP, and how one trace goes on from one
//! program to the next, in the header `traceparent` of W3C.
//!
//! Spans are those of `tracing`. While nothing exports them, no call carries a trace.

use std::{collections::HashMap, time::Duration};

use opentelemetry::{
    KeyValue,
    propagation::TextMapPropagator as _,
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkError,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

/// The header, and the metadata, that says of which trace a request is a part.
pub const HEADER: &str = "traceparent";
/// Spans of modules whose names begin so are part of traces.
const OURS: &str = "hindsight";
/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent to `{endpoint}`; want `http://HOST:PORT` of a collector")]
pub struct Error {
    endpoint: String,
    source: ExporterBuildError,
}

/// Sends spans to a collector, in the background; what it does not take is dropped.
#[derive(Debug)]
pub struct Exporter {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Exporter {
    /// Sends the spans of `service` to the collector at `endpoint`, by OTLP over gRPC. Of traces
    /// that begin here, `share` of 1 is sent; of others, what their beginning says. Call it inside
    /// of a runtime.
    ///
    /// # Errors
    /// If the endpoint is no address.
    pub fn new(endpoint: &str, service: &'static str, share: f64) -> Result<Self, Error> {
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(PATIENCE)
            .build()
            .map_err(|source| Error {
                endpoint: endpoint.to_owned(),
                source,
            })?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder()
            .with_service_name(service)
            .with_attribute(version)
            .build();
        let by_chance = Sampler::TraceIdRatioBased(share);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(by_chance)))
            .with_resource(resource)
            .build();
        Ok(Self { provider, service })
    }

    /// What a subscriber is given so that its spans are sent.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_target(OURS, LevelFilter::INFO))
    }

    /// Sends what was not sent yet. Blocks, for seconds if the collector does not answer.
    ///
    /// # Errors
    /// If that did not work.
    pub fn finish(&self) -> Result<(), OTelSdkError> {
        self.provider.shutdown()
    }
}

/// Of which trace the current span is a part, for a request that it makes; none while spans are not
/// exported.
#[must_use]
pub fn current() -> Option<String> {
    let span = Span::current();
    if span.is_none() {
        return None;
    }
    let mut header = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut header);
    header.remove(HEADER)
}

/// Makes `span`, which nobody entered yet, a part of the trace that a request came with. What is no
/// `traceparent` changes nothing.
pub fn adopt(span: &Span, traceparent: &str) {
    let header = HashMap::from([(HEADER.to_owned(), traceparent.to_owned())]);
    let trace = TraceContextPropagator::new().extract(&header);
    if trace.span().span_context().is_valid() {
        // While nothing exports spans there is nothing to be a part of.
        drop(span.set_parent(trace));
    }
}

/// Notes in `span` that it also works for `other`, of another trace.
pub fn link(span: &Span, other: &Span) {
    let other = other.context().span().span_context().clone();
    if other.is_valid() {
        span.add_link(other);
    }
}
