//! The scheduler: it divides plans into stages, and gives their parts to executors that ask for work.

use std::{
    io::{self, Write as _},
    sync::Arc,
    time::{Duration, SystemTime},
};

use ballista_core::{
    ConfigProducer, config::TaskSchedulingPolicy, extension::SessionConfigExt as _,
    serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer,
};
use ballista_scheduler::{
    cluster::BallistaCluster,
    config::SchedulerConfig,
    scheduler_process::create_scheduler,
    scheduler_server::{SchedulerServer, SessionBuilder},
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

/// How long a statement may wait for an executor, in seconds.
const WAITS: u64 = 30;
/// An executor that is silent for so long is lost; one that works says so each five seconds.
const SILENT: Duration = Duration::from_secs(15);
/// How often it is looked which executors are silent.
const LOOKS: Duration = Duration::from_secs(1);
/// Ten years, in seconds: Ballista never finds an executor lost.
const NEVER: u64 = 10 * 365 * 86_400;

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
        // What it executes again of a statement, it counts again: a wrong answer is worse than none.
        executor_timeout_seconds: NEVER,
        task_max_failures: 1,
        stage_max_failures: 1,
        no_executors_grace_period_seconds: WAITS,
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
    let service = SchedulerGrpcServer::new(scheduler.clone())
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let mut server = transport::server(tls.as_ref())?;
    writeln!(io::stderr(), "scheduling on {address}")?;
    let serving = server
        .add_service(service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped());
    let ended = tokio::select! {
        served = serving => served.map_err(|error| error.to_string()),
        looked = without_lost(&scheduler) => looked.map_err(|error| error.to_string()),
    };
    ended.map_err(|error| Failure::other(format!("the scheduler ended: {error}")))
}

/// Ends the statements that run when an executor is lost, for as long as nothing goes wrong.
async fn without_lost(
    scheduler: &SchedulerServer<LogicalPlanNode, PhysicalPlanNode>,
) -> ballista_core::error::Result<()> {
    let state = &scheduler.state;
    let mut turns = tokio::time::interval(LOOKS);
    loop {
        turns.tick().await;
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        for (executor, heard, _) in state.executor_manager.get_executors_state().await? {
            // One that was never heard of has not asked for work.
            if heard.is_none_or(|heard| now.saturating_sub(heard) < SILENT) {
                continue;
            }
            let why = format!(
                "the executor at {}:{} is silent",
                executor.host, executor.port
            );
            for job in state.task_manager.get_running_job_cache().keys() {
                scheduler.cancel_job(job.clone()).await?;
            }
            writeln!(io::stderr(), "{why}; statements that run are canceled")?;
            let removed = state
                .executor_manager
                .remove_executor(&executor.id, Some(why));
            removed.await?;
        }
    }
}
