//! `grpc.health.v1`: SERVING while the store answers.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::grpc::RESULTS_SERVICE;
use hindsight_runtime::error::report;
use hindsight_storage::Maintenance;

/// How often the store is asked, and how long it may take to answer.
const INTERVAL: Duration = Duration::from_secs(2);

/// Keeps the health service informed.
#[derive(Debug)]
pub(super) struct Health {
    reporter: HealthReporter,
    maintenance: Arc<dyn Maintenance>,
}

impl Health {
    pub(super) async fn new(
        maintenance: Arc<dyn Maintenance>,
    ) -> (
        Self,
        tonic_health::pb::health_server::HealthServer<impl tonic_health::pb::health_server::Health>,
    ) {
        let (reporter, service) = tonic_health::server::health_reporter();
        let health = Self {
            reporter,
            maintenance,
        };
        // Known from the first moment, so that nobody is told that there is no such service.
        health.report(false).await;
        (health, service)
    }

    /// Asks the store until `shutdown`, then reports NOT_SERVING.
    pub(super) async fn watch(self, shutdown: CancellationToken) {
        let mut last = None;
        loop {
            let answer = tokio::time::timeout(INTERVAL, self.maintenance.ping()).await;
            let problem = match answer {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(report(&error)),
                Err(_elapsed) => Some(format!("no answer within {INTERVAL:?}")),
            };
            if last.as_ref() != Some(&problem) {
                match &problem {
                    None => tracing::info!("store available"),
                    Some(error) => tracing::error!(error, "store unavailable"),
                }
                self.report(problem.is_none()).await;
                last = Some(problem);
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
        self.report(false).await;
    }

    async fn report(&self, serving: bool) {
        let status = if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for service in ["", RESULTS_SERVICE] {
            self.reporter.set_service_status(service, status).await;
        }
    }
}
