//! Services beside those of the history, where they are enabled: clusters of Ray, pipelines of Kubeflow.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hindsight_proto::FILE_DESCRIPTOR_SET;
use hindsight_storage::PipelineTables;
use hindsight_transcode::Rest;
use prost_reflect::DescriptorPool;
use tonic::service::Routes;

use super::{Error, kfp, ray};
use crate::{
    config::Config,
    grpc::{KfpServer, ResultsServer},
};

/// What of them is plain HTTP.
#[derive(Debug)]
pub(super) struct Extensions {
    has_ray: bool,
    kfp: Option<KfpServer>,
    request_timeout: Duration,
}

impl Extensions {
    /// The services that `server` answers, those that are enabled, and the descriptors of all.
    pub(super) async fn services(
        config: &Config,
        server: ResultsServer,
        tables: &Arc<dyn PipelineTables>,
        sizes: (usize, usize),
    ) -> Result<(Routes, DescriptorPool, Self), Error> {
        let mut pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).map_err(Error::Descriptors)?;
        let kfp = kfp::server(config, &server, tables, &mut pool).await?;
        let routes = ray::services(config, server, sizes, &mut pool).await?;
        let routes = kfp::services(routes, kfp.as_ref(), sizes, config);
        let extensions = Self {
            has_ray: config.enable_ray,
            kfp,
            request_timeout: config.request_timeout.get(),
        };
        Ok((routes, pool, extensions))
    }

    /// What `rest` answers, and what has no message.
    pub(super) fn router(&self, rest: &Rest) -> Router {
        let mut http = rest.clone().router();
        if self.has_ray {
            http = ray::refusals(http);
        }
        match &self.kfp {
            Some(server) => {
                kfp::uploads(kfp::pages(http, server), server, rest, self.request_timeout)
            }
            None => http,
        }
    }
}
