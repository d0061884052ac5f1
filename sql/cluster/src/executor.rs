//! An executor: it asks the scheduler for parts of plans, reads files of one archive, and keeps rows between stages.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::Duration,
};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::{
    BALLISTA_PROTOCOL_VERSION, ConfigProducer, RuntimeProducer,
    extension::SessionConfigExt as _,
    ids::new_instance_id,
    registry::BallistaFunctionRegistry,
    serde::{
        BallistaCodec, BallistaLogicalExtensionCodec,
        protobuf::{
            CancelTasksParams, CancelTasksResult, ExecutorRegistration, LaunchMultiTaskParams,
            LaunchMultiTaskResult, LaunchTaskParams, LaunchTaskResult, RemoveJobDataParams,
            RemoveJobDataResult, StopExecutorParams, StopExecutorResult,
            executor_grpc_server::{ExecutorGrpc, ExecutorGrpcServer},
            scheduler_grpc_client::SchedulerGrpcClient,
        },
        scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification},
    },
};
use ballista_executor::{
    execution_loop, executor::Executor, flight_service::BallistaFlightService,
    health::ExecutorHealth, metrics::LoggingMetricsCollector,
};
use datafusion::{
    error::Result,
    execution::{memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder},
    prelude::SessionConfig,
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use hindsight_connect::Failure;
use hindsight_sql::{Files, command::stopped};
use tempfile::TempDir;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use url::Url;

use crate::{
    args,
    codec::{Codec, session},
    transport::{self, MESSAGE, Tls},
};

/// How often it is looked whether the scheduler answers.
const LOOKS: Duration = Duration::from_secs(2);

/// Serves until the process is told to stop.
pub(crate) async fn serve(args: args::Executor) -> std::result::Result<(), Failure> {
    let tls = Tls::of(&args.tls)?;
    let files = Files::at(&args.archive_url).map_err(|error| error.failure(""))?;
    // It is gone when this process ends.
    let folder = folder(args.work_dir.as_deref())?;
    let work = folder
        .path()
        .to_str()
        .ok_or_else(|| Failure::usage("--work-dir is not UTF-8"))?;
    let endpoint = transport::endpoint_of(&args.scheduler, tls.as_ref())?;
    let scheduler = SchedulerGrpcClient::new(endpoint.connect_lazy())
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let (listener, address) = transport::bind(args.listen, tls.as_ref()).await?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, usize::from);
    let registration = registration(args.advertise.as_deref(), address, threads);
    let configs: ConfigProducer = {
        let tls = tls.clone();
        Arc::new(move || transport::configured(SessionConfig::new_with_ballista(), tls.as_ref()))
    };
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::other(format!("the executor cannot start: {error}"))
    };
    let executor = Arc::new(Executor::with_default_execution_engine(
        registration,
        work,
        runtimes(&files, work, args.memory.as_usize()).map_err(|error| wrong(&error))?,
        configs,
        Arc::new(functions().map_err(|error| wrong(&error))?),
        Arc::new(LoggingMetricsCollector::default()),
        threads,
    ));
    let rows = FlightServiceServer::new(BallistaFlightService::new(work.to_owned()))
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let serving = transport::server(tls.as_ref())?
        .add_service(rows)
        .add_service(ExecutorGrpcServer::new(Cancels(Arc::clone(&executor))))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped());
    let codec: BallistaCodec<LogicalPlanNode, PhysicalPlanNode> = BallistaCodec::new(
        Arc::new(BallistaLogicalExtensionCodec::default()),
        Arc::new(Codec::default()),
    );
    let health = ExecutorHealth::new();
    let working = execution_loop::poll_loop(scheduler, executor, codec, None, None, health.clone());
    writeln!(io::stderr(), "executing on {address}")?;
    let ended = tokio::select! {
        served = serving => served.map_err(|error| error.to_string()),
        () = told(&health, &args.scheduler) => Ok(()),
        worked = working => worked.map_err(|error| error.to_string()),
    };
    ended.map_err(|error| Failure::other(format!("the executor ended: {error}")))
}

/// Where rows between stages are.
fn folder(below: Option<&Path>) -> std::result::Result<TempDir, Failure> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("hindsight-sql-");
    let folder = match below {
        Some(below) => folder.tempdir_in(below),
        None => folder.tempdir(),
    };
    folder.map_err(|error| Failure::usage(format!("--work-dir cannot be used: {error}")))
}

/// What the scheduler knows of this executor.
fn registration(host: Option<&str>, address: SocketAddr, threads: usize) -> ExecutorRegistration {
    let host = host.map_or_else(|| address.ip().to_string(), str::to_owned);
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let specification = ExecutorSpecification::default().with_vcores(threads);
    ExecutorRegistration {
        id: new_instance_id(),
        host: Some(host),
        port: u32::from(address.port()),
        grpc_port: u32::from(address.port()),
        specification: Some(specification.into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    }
}

/// Says, for as long as the process runs, when the scheduler begins and ceases to answer.
async fn told(health: &ExecutorHealth, scheduler: &Url) {
    let mut known = None;
    let mut turns = tokio::time::interval(LOOKS);
    // The first one is at once, before anything was asked.
    turns.tick().await;
    loop {
        turns.tick().await;
        let answers = health.is_ready();
        if known.replace(answers) != Some(answers) {
            let what = if answers {
                "answers"
            } else {
                "does not answer"
            };
            // Where standard error is closed there is nothing left to tell it to.
            drop(writeln!(
                io::stderr(),
                "the scheduler at {scheduler} {what}"
            ));
        }
    }
}

fn functions() -> Result<BallistaFunctionRegistry> {
    let state = session(SessionConfig::new_with_ballista())?.build();
    Ok(BallistaFunctionRegistry::from(&state))
}

/// What all parts of plans run in: one pool of memory, and no other store than that of `files`.
fn runtimes(files: &Files, work: &str, memory: usize) -> Result<RuntimeProducer> {
    let runtime = RuntimeEnvBuilder::new()
        .with_temp_file_path(work)
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .build_arc()?;
    if let Ok(local) = Url::parse("file:///") {
        runtime.deregister_object_store(&local)?;
    }
    files.register(&runtime);
    Ok(Arc::new(move |_| Ok(Arc::clone(&runtime))))
}

/// What the scheduler tells an executor that asks for its work: which of it is not wanted any more.
struct Cancels(Arc<Executor>);

fn asks_for_work<T>() -> std::result::Result<Response<T>, Status> {
    Err(Status::unimplemented("this executor asks for work"))
}

#[tonic::async_trait]
impl ExecutorGrpc for Cancels {
    async fn cancel_tasks(
        &self,
        request: Request<CancelTasksParams>,
    ) -> std::result::Result<Response<CancelTasksResult>, Status> {
        for task in request.into_inner().task_infos {
            let [stage, number] =
                [task.stage_id, task.task_id].map(|id| usize::try_from(id).unwrap_or(usize::MAX));
            let canceled = self.0.cancel_task(task.job_id.into(), stage, number).await;
            canceled.map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(Response::new(CancelTasksResult { cancelled: true }))
    }

    async fn launch_task(
        &self,
        _: Request<LaunchTaskParams>,
    ) -> std::result::Result<Response<LaunchTaskResult>, Status> {
        asks_for_work()
    }

    async fn launch_multi_task(
        &self,
        _: Request<LaunchMultiTaskParams>,
    ) -> std::result::Result<Response<LaunchMultiTaskResult>, Status> {
        asks_for_work()
    }

    async fn stop_executor(
        &self,
        _: Request<StopExecutorParams>,
    ) -> std::result::Result<Response<StopExecutorResult>, Status> {
        asks_for_work()
    }

    async fn remove_job_data(
        &self,
        _: Request<RemoveJobDataParams>,
    ) -> std::result::Result<Response<RemoveJobDataResult>, Status> {
        asks_for_work()
    }
}
