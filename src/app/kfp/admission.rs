//! The admission webhooks of pipelines, beside a server or alone.

use std::{net::SocketAddr, sync::Arc};

use hindsight_cluster::webhook::{Tls, serve};
use hindsight_kfp::webhooks::{Admission, MUTATE, NameCheck, VALIDATE};
use hindsight_runtime::{
    admin::{self, Readiness},
    telemetry::Registry,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{Error, listen},
    config::{Config, VersionNameCheck},
};

/// The webhooks, which listen and do not answer yet.
#[derive(Debug)]
pub struct Webhooks {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<Tls>,
    admission: Admission,
}

impl Webhooks {
    /// Those that are configured.
    ///
    /// # Errors
    /// If the certificate, the address or the cluster cannot be used.
    pub async fn of(config: &Config) -> Result<Option<Self>, Error> {
        let files = (
            &config.pipelines_webhook_cert,
            &config.pipelines_webhook_key,
        );
        let (Some(listen), (Some(cert), Some(key))) = (config.pipelines_webhook_listen, files)
        else {
            return Ok(None);
        };
        let tls = Tls::load(cert, key).map_err(Error::Webhooks)?;
        let names = match config.pipeline_version_name_check {
            VersionNameCheck::Enforce => NameCheck::Enforce,
            VersionNameCheck::Warn => NameCheck::Warn,
        };
        let admission = Admission::connect(config.pipelines_kubeconfig.clone(), names);
        let admission = Box::pin(admission).await.map_err(Error::Pipelines)?;
        let (listener, address) = listen::bind(listen, "pipelines-webhook-listen").await?;
        Ok(Some(Self {
            listener,
            address,
            tls: Arc::new(tls),
            admission,
        }))
    }

    /// Where they are.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop`.
    pub(in crate::app) async fn run(self, stop: CancellationToken) {
        for path in [MUTATE, VALIDATE] {
            tracing::info!("webhook on https://{}{path}", self.address);
        }
        serve(self.listener, self.tls, self.admission.webhooks(), stop).await;
    }

    /// The same as the only thing that the process does, beside pages of operators.
    ///
    /// # Errors
    /// If the address of those pages cannot be used.
    pub async fn alone(self, config: &Config, stop: CancellationToken) -> Result<(), Error> {
        if let Some((listener, address)) = listen::admin(config).await? {
            tracing::info!("metrics on http://{address}/metrics");
            let readiness = Readiness::new(|| std::future::ready(Ok(())));
            let pages = admin::router(Arc::new(Registry::new()), readiness);
            let stopped = stop.clone();
            tokio::spawn(async move {
                axum::serve(listener, pages)
                    .with_graceful_shutdown(async move { stopped.cancelled().await })
                    .await
            });
        }
        self.run(stop).await;
        tracing::info!("stopped");
        Ok(())
    }
}
