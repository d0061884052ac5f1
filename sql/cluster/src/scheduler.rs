//! The scheduler: it divides plans into stages, and gives their parts to executors that ask for work.

use std::{
    io::{self, Write as _},
    sync::Arc,
};

use ballista_core::{
    ConfigProducer, config::TaskSchedulingPolicy, extension::SessionConfigExt as _,
    serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer,
};
use ballista_scheduler::{
    cluster::BallistaCluster, config::SchedulerConfig, scheduler_process::create_scheduler,
    scheduler_server::SessionBuilder,
};
use datafusion::{
    error::Result,
    execution::{object_store::ObjectStoreRegistry, runtime_env::RuntimeEnvBuilder},
    prelude::SessionConfig,
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use hindsight_connect::Failure;
use hindsight_sql::command::stopped;
use object_store::{ObjectStore, memory::InMemory};
use tokio_stream::wrappers::TcpListenerStream;
use url::Url;

use crate::{
    args,
    codec::{Codec, session},
    transport::{self, MESSAGE, Tls},
};

/// How long an executor may be silent, and a statement may wait for one, in seconds.
const EXECUTOR_TIMEOUT: u64 = 30;

/// Plans name the stores of their files, of which the scheduler reads none.
#[derive(Debug)]
struct NoFiles;

impl ObjectStoreRegistry for NoFiles {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(InMemory::new()))
    }
}

/// Serves until the process is told to stop.
pub(crate) async fn serve(args: &args::Scheduler) -> std::result::Result<(), Failure> {
    let tls = Tls::of(&args.tls)?;
    let (listener, address) = transport::bind(args.listen, tls.as_ref()).await?;
    let message = u32::try_from(MESSAGE).unwrap_or(u32::MAX);
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        grpc_server_max_decoding_message_size: message,
        grpc_server_max_encoding_message_size: message,
        grpc_client_max_message_size: message,
        executor_timeout_seconds: EXECUTOR_TIMEOUT,
        no_executors_grace_period_seconds: EXECUTOR_TIMEOUT,
        override_physical_codec: Some(Arc::new(Codec::default())),
        use_tls: tls.is_some(),
        override_create_grpc_client_endpoint: tls.clone().map(transport::endpoint),
        ..SchedulerConfig::default()
    };
    let sessions: SessionBuilder = Arc::new(|config| {
        let stores = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(NoFiles));
        let builder = session(config)?.with_runtime_env(stores.build_arc()?);
        Ok(builder.build())
    });
    let configs: ConfigProducer = Arc::new(SessionConfig::new_with_ballista);
    let cluster = BallistaCluster::new_memory(config.scheduler_endpoint(), sessions, configs);
    let scheduler =
        create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config));
    let scheduler = scheduler
        .await
        .map_err(|error| Failure::other(format!("the scheduler cannot start: {error}")))?;
    let service = SchedulerGrpcServer::new(scheduler)
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let mut server = transport::server(tls.as_ref())?;
    writeln!(io::stderr(), "scheduling on {address}")?;
    server
        .add_service(service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped())
        .await
        .map_err(|error| Failure::other(format!("the scheduler ended: {error}")))
}
