//! How many requests were answered, how, and how long it took.

use std::time::{Duration, Instant};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};

use super::Registry;
use crate::error::{ErrorKind, grpc_name};

/// Bounds in seconds, from a look-up by name to a scan that is about to be refused.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodAndCode {
    method: &'static str,
    code: &'static str,
}

/// `requests_total{method,code}`, `request_seconds{method}` and `requests_ongoing{method}`.
/// Clones share their values.
#[derive(Debug, Clone)]
pub struct RequestMetrics {
    answered: Family<MethodAndCode, Counter>,
    seconds: Family<Method, Histogram, fn() -> Histogram>,
    ongoing: Family<Method, Gauge>,
}

impl RequestMetrics {
    /// New metrics, printed by `registry`.
    #[must_use]
    pub fn new(registry: &mut Registry) -> Self {
        Self {
            answered: registry.register("requests", "Requests answered, by method and gRPC code"),
            seconds: registry.register_with(
                "request_seconds",
                "Time from the arrival of a request to the end of its answer",
                Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            ),
            ongoing: registry.register("requests_ongoing", "Requests that wait for their answer"),
        }
    }

    /// Counts a request as ongoing until the answer is finished or dropped.
    #[must_use]
    pub fn start(&self, method: &'static str) -> Ongoing {
        self.ongoing.get_or_create(&Method { method }).inc();
        Ongoing {
            metrics: self.clone(),
            method,
            since: Instant::now(),
            code: ErrorKind::Cancelled.grpc_code(),
        }
    }

    /// Counts one request that is over: `code` is the number of its gRPC code, 0 for OK.
    pub fn observe(&self, method: &'static str, code: i32, took: Duration) {
        self.answered
            .get_or_create(&MethodAndCode {
                method,
                code: grpc_name(code),
            })
            .inc();
        self.seconds
            .get_or_create(&Method { method })
            .observe(took.as_secs_f64());
    }
}

/// A request that is being answered. Dropped unfinished, it counts as `CANCELLED`: its
/// caller went away.
#[derive(Debug)]
pub struct Ongoing {
    metrics: RequestMetrics,
    method: &'static str,
    since: Instant,
    code: i32,
}

impl Ongoing {
    /// Counts the request as answered with the number of a gRPC code, 0 for OK.
    pub fn finish(mut self, code: i32) {
        self.code = code;
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.metrics
            .observe(self.method, self.code, self.since.elapsed());
        self.metrics
            .ongoing
            .get_or_create(&Method {
                method: self.method,
            })
            .dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_its_code_and_an_abandoned_one_as_cancelled() {
        let mut registry = Registry::new();
        let metrics = RequestMetrics::new(&mut registry);

        metrics.observe("GetRecord", 0, Duration::from_millis(3));
        metrics
            .start("GetRecord")
            .finish(ErrorKind::Missing.grpc_code());
        drop(metrics.start("GetRecord"));
        let still_open = metrics.start("ListRecords");

        let text = registry.render();
        let mut seen: Vec<_> = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("_bucket"))
            .filter(|line| !line.contains("_sum") && !line.contains("build_info"))
            .collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                "hindsight_request_seconds_count{method=\"GetRecord\"} 3",
                "hindsight_requests_ongoing{method=\"GetRecord\"} 0",
                "hindsight_requests_ongoing{method=\"ListRecords\"} 1",
                "hindsight_requests_total{method=\"GetRecord\",code=\"CANCELLED\"} 1",
                "hindsight_requests_total{method=\"GetRecord\",code=\"NOT_FOUND\"} 1",
                "hindsight_requests_total{method=\"GetRecord\",code=\"OK\"} 1",
            ]
        );
        assert!(
            text.contains("bucket{le=\"0.005\",method=\"GetRecord\"}"),
            "{text}"
        );
        drop(still_open);
    }
}
