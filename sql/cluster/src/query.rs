//! Statements on a cluster: a plan is given to the scheduler, and the rows are read from executors.

use std::{error::Error as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use ballista_core::{
    client::BallistaClient,
    extension::{BallistaConfigGrpcEndpoint, SessionConfigExt as _},
    serde::protobuf::{
        CancelJobParams, ExecuteQueryParams, GetJobStatusResult, KeyValuePair, PartitionLocation,
        execute_query_params::Query, job_status::Status,
        scheduler_grpc_client::SchedulerGrpcClient,
    },
    version,
};
use datafusion::{
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{ExecutionPlan, stream::RecordBatchStreamAdapter},
    prelude::SessionConfig,
};
use datafusion_proto::{physical_plan::AsExecutionPlan as _, protobuf::PhysicalPlanNode};
use futures::TryStreamExt as _;
use hindsight_connect::Failure;
use hindsight_sql::cluster::{Cluster, unreachable};
use tokio_util::task::TaskTracker;
use tonic::{
    Request, Streaming,
    transport::{Channel, Endpoint},
};
use url::Url;

use crate::{
    args,
    codec::Codec,
    transport::{self, MESSAGE, Tls},
};

/// How often a read of rows is tried again, and after how many milliseconds.
const RETRIES: (u8, u64) = (3, 500);
/// How long the scheduler is told that a statement is not wanted any more.
const SETTLES: Duration = Duration::from_secs(2);
/// What a message has beside a plan, at most.
const ENVELOPE: usize = 1 << 20;

/// A cluster, by its scheduler.
#[derive(Debug)]
pub(crate) struct Remote {
    scheduler: Url,
    endpoint: Endpoint,
    tls: Option<Tls>,
    /// What tells the scheduler which statements are not wanted any more.
    cancels: TaskTracker,
}

/// A statement that executors work on, until this is dropped or the statement is over.
struct Job {
    scheduler: SchedulerGrpcClient<Channel>,
    /// None once nothing is left to end.
    updates: Option<Streaming<GetJobStatusResult>>,
    /// None before the scheduler said it.
    id: Option<String>,
    cancels: TaskTracker,
}

impl Remote {
    /// The cluster of the scheduler at `url`. It fails if the URL or a certificate cannot be used.
    pub(crate) fn of(url: &Url, args: &args::Tls) -> Result<Self, Failure> {
        let tls = Tls::of(args)?;
        let endpoint = transport::endpoint_of(url, tls.as_ref())?;
        Ok(Self {
            scheduler: url.clone(),
            endpoint,
            tls,
            cancels: TaskTracker::new(),
        })
    }

    /// Waits until the scheduler knows which statements are not wanted any more.
    pub(crate) async fn settled(&self) {
        self.cancels.close();
        drop(tokio::time::timeout(SETTLES, self.cancels.wait()).await);
    }
}

#[async_trait]
impl Cluster for Remote {
    fn configured(&self, config: SessionConfig) -> SessionConfig {
        transport::configured(config.upgrade_for_ballista(), self.tls.as_ref())
    }

    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = plan.schema();
        let request = request(plan, &task)?;
        let lost = |error: &dyn std::fmt::Display| {
            unreachable(format!(
                "no scheduler answers at {}: {error}; start one with `hindsight-sql-cluster scheduler`",
                self.scheduler
            ))
        };
        let channel = self
            .endpoint
            .connect()
            .await
            .map_err(|error| lost(&error))?;
        let mut scheduler = SchedulerGrpcClient::new(channel)
            .max_decoding_message_size(MESSAGE)
            .max_encoding_message_size(MESSAGE);
        let updates = scheduler.execute_query_push(request).await;
        // What the scheduler says has no source; what the connection says has one.
        let updates = updates.map_err(|status| match status.source() {
            Some(_) => lost(&status.message()),
            None => DataFusionError::Execution(format!("the scheduler: {}", status.message())),
        })?;
        let mut job = Job {
            scheduler,
            updates: Some(updates.into_inner()),
            id: None,
            cancels: self.cancels.clone(),
        };
        let parts = job.done().await?;
        let endpoint = self.tls.clone().map(transport::endpoint);
        let endpoint = endpoint.map(|tls| Arc::new(BallistaConfigGrpcEndpoint::new(tls)));
        let rows = futures::stream::iter(parts.into_iter().map(Ok));
        let rows = rows
            .and_then(move |part| rows_of(part, endpoint.clone()))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// What the scheduler is asked. It fails if the plan cannot be sent.
fn request(
    plan: Arc<dyn ExecutionPlan>,
    task: &TaskContext,
) -> Result<Request<ExecuteQueryParams>> {
    let node = PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default())?;
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes)?;
    let most = MESSAGE - ENVELOPE;
    if bytes.len() > most {
        return Err(DataFusionError::Execution(format!(
            "the statement has a plan of {} MiB with rows of the database, of which {} MiB can be sent to a cluster; \
             narrow it by parent or create_time, or run it without --scheduler",
            bytes.len() >> 20,
            most >> 20
        )));
    }
    let settings = task.session_config().options().entries().into_iter();
    let settings = settings.map(|entry| KeyValuePair {
        key: entry.key,
        value: entry.value,
    });
    let mut request = Request::new(ExecuteQueryParams {
        query: Some(Query::PhysicalPlan(bytes)),
        settings: settings.collect(),
        session_id: uuid::Uuid::new_v4().to_string(),
        operation_id: uuid::Uuid::new_v4().to_string(),
    });
    version::insert_version_header(request.metadata_mut());
    Ok(request)
}

impl Job {
    /// Where the rows are, once they are.
    async fn done(&mut self) -> Result<Vec<PartitionLocation>> {
        while let Some(updates) = &mut self.updates {
            let update = updates.message().await.map_err(|status| {
                DataFusionError::Execution(format!("the scheduler gave up: {}", status.message()))
            })?;
            let Some(update) = update else { break };
            let Some(status) = update.status else {
                continue;
            };
            self.id.get_or_insert(status.job_id);
            match status.status {
                Some(Status::Failed(failed)) => {
                    self.updates = None;
                    return Err(said(failed.error.trim()));
                }
                Some(Status::Successful(done)) => {
                    self.updates = None;
                    return Ok(done.partition_location);
                }
                Some(Status::Queued(_) | Status::Running(_)) | None => {}
            }
        }
        Err(unreachable(
            "the scheduler ended before the statement did".to_owned(),
        ))
    }
}

/// Why executors gave up, of which the scheduler gives the text alone.
fn said(error: &str) -> DataFusionError {
    let is_lost = error == "Cancelled" || error.contains("Error connecting to Ballista");
    if is_lost {
        return unreachable(
            "the cluster lost an executor while it worked on the statement; try again".to_owned(),
        );
    }
    match error.contains("ResourcesExhausted") {
        true => DataFusionError::ResourcesExhausted(error.to_owned()),
        false => DataFusionError::Execution(error.to_owned()),
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(mut updates) = self.updates.take() else {
            return;
        };
        let (mut scheduler, mut id) = (self.scheduler.clone(), self.id.take());
        // If it cannot be told, the statement comes to its end.
        self.cancels.spawn(async move {
            while id.is_none()
                && let Ok(Some(update)) = updates.message().await
            {
                id = update.status.map(|status| status.job_id);
            }
            if let Some(job_id) = id {
                drop(scheduler.cancel_job(CancelJobParams { job_id }).await);
            }
        });
    }
}

/// The rows of a part of an answer, from the executor that has them.
async fn rows_of(
    part: PartitionLocation,
    endpoint: Option<Arc<BallistaConfigGrpcEndpoint>>,
) -> Result<SendableRecordBatchStream> {
    let layout = part.layout();
    let missing = |what: &str| DataFusionError::Internal(format!("the scheduler named no {what}"));
    let executor = part.executor_meta.ok_or_else(|| missing("executor"))?;
    let partition = part.partition_id.ok_or_else(|| missing("part"))?;
    let port = u16::try_from(executor.port).map_err(|_too_large| missing("port"))?;
    let lost = |error: ballista_core::error::BallistaError| {
        unreachable(format!(
            "the executor {}:{port} lost rows of the answer: {error}; try again",
            executor.host
        ))
    };
    let (retries, wait) = RETRIES;
    let client = BallistaClient::try_new(
        &executor.host,
        port,
        MESSAGE,
        endpoint.is_some(),
        endpoint,
        retries,
        wait,
        0,
        0,
    );
    let mut client = client.await.map_err(lost)?;
    let partition = partition.into();
    let rows = client.fetch_partition(&executor.id, &partition, part.file_id, layout, true);
    rows.await.map_err(lost)
}

#[cfg(test)]
mod tests {
    use datafusion::{
        arrow::array::{ArrayRef, BinaryArray, RecordBatch},
        datasource::memory::MemorySourceConfig,
    };

    use super::*;

    #[test]
    fn more_rows_of_the_database_than_a_message_has_are_refused_with_a_remedy() {
        let rows = vec![0; MESSAGE];
        let rows: ArrayRef = Arc::new(BinaryArray::from(vec![rows.as_slice()]));
        let rows = RecordBatch::try_from_iter([("payload", rows)]).unwrap();
        let schema = rows.schema();
        let plan = MemorySourceConfig::try_new_exec(&[vec![rows]], schema, None).unwrap();
        let said = request(plan, &TaskContext::default())
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("of 64 MiB") && said.contains("63 MiB can be sent"),
            "{said}"
        );
        assert!(said.contains("without --scheduler"), "{said}");
    }
}
