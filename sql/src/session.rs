//! One statement: who asks, what it may read, how much memory and time it may take.

use std::{path::PathBuf, sync::Arc, time::Duration};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    execution::{
        SendableRecordBatchStream, SessionStateBuilder,
        disk_manager::{DiskManagerBuilder, DiskManagerMode},
        memory_pool::FairSpillPool,
        runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
    },
    logical_expr::LogicalPlan,
    physical_plan::execute_stream,
    prelude::{SQLOptions, SessionConfig, SessionContext},
};
use futures::{Stream, StreamExt as _};
use hindsight_client::Client;
use tokio::time::Instant;

use crate::{
    Error, Scope, Source,
    cluster::{self, Cluster},
    columns::Table,
    provider::{Access, Held, Provider},
};

/// Longest statement, in bytes.
const LONGEST: usize = 256 << 10;

/// What statements may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of memory of all statements at once.
    pub memory: usize,
    /// Where what does not fit is written; the directory of temporary files if none is said.
    pub spill: Option<PathBuf>,
    /// Bytes that are written there at most.
    pub spill_bytes: u64,
    /// How long one statement may take.
    pub deadline: Duration,
    /// Parts of a statement that are computed at once.
    pub threads: usize,
}

/// Plans and runs statements that only read, within one pool of memory.
#[derive(Debug, Clone)]
pub struct Engine {
    source: Arc<Source>,
    runtime: Arc<RuntimeEnv>,
    limits: Limits,
    cluster: Option<Arc<dyn Cluster>>,
}

/// Rows of an answer.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    stream: SendableRecordBatchStream,
    until: Instant,
    limits: Limits,
}

/// A statement that was read and may be run.
pub(crate) struct Statement {
    context: SessionContext,
    pub(crate) plan: LogicalPlan,
}

impl Engine {
    /// An engine over `source`, whose plans `cluster` executes if there is one. It fails if the directory for what does
    /// not fit into memory cannot be used.
    pub fn new(
        source: Source,
        limits: Limits,
        cluster: Option<Arc<dyn Cluster>>,
    ) -> Result<Self, Error> {
        let mode = match &limits.spill {
            Some(folder) => DiskManagerMode::Directories(vec![folder.clone()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        let disk = DiskManagerBuilder::default()
            .with_mode(mode)
            .with_max_temp_directory_size(limits.spill_bytes);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(limits.memory)))
            .with_disk_manager_builder(disk)
            .build_arc()?;
        if let Some(files) = source.files() {
            files.register(&runtime);
        }
        Ok(Self {
            source: Arc::new(source),
            runtime,
            limits,
            cluster,
        })
    }

    /// Where rows are.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Reads a statement for a caller, whose token `client` shows. It fails if it is not one that reads.
    pub(crate) async fn statement(
        &self,
        client: Option<Client>,
        scope: Scope,
        sql: &str,
    ) -> Result<Statement, Error> {
        if sql.len() > LONGEST {
            return Err(Error::Statement(format!(
                "the statement has {} bytes, of which {LONGEST} are read at most",
                sql.len()
            )));
        }
        let context = self.context(client, scope)?;
        let plan = context.state().create_logical_plan(sql).await;
        let plan = plan.map_err(|error| Error::Statement(Error::from(error).to_string()))?;
        let only_reads = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        only_reads.verify_plan(&plan).map_err(|_names_it| {
            Error::Statement(format!(
                "`{}` is refused: statements only read; want SELECT, WITH, VALUES, EXPLAIN, SHOW or DESCRIBE",
                first_word(sql)
            ))
        })?;
        Ok(Statement { context, plan })
    }

    /// Runs a statement. Its memory is given back when the answer is dropped.
    pub(crate) async fn run(&self, statement: Statement) -> Result<Answer, Error> {
        let until = Instant::now() + self.limits.deadline;
        let Statement { context, plan } = statement;
        let cluster = self.cluster.as_ref();
        let cluster = cluster.filter(|_| cluster::executes(&plan));
        let stream = async {
            let frame = context.execute_logical_plan(plan).await?;
            let task = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await?;
            match cluster {
                Some(cluster) => cluster.execute(plan, task).await,
                None => execute_stream(plan, task),
            }
        };
        let stream = tokio::time::timeout_at(until, stream).await;
        let stream = stream.map_err(|_elapsed| self.limits.over())??;
        Ok(Answer {
            schema: stream.schema(),
            stream,
            until,
            limits: self.limits.clone(),
        })
    }

    fn context(&self, client: Option<Client>, scope: Scope) -> Result<SessionContext, Error> {
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema("hindsight", "public")
            .with_information_schema(true)
            .with_target_partitions(self.limits.threads)
            .with_extension(Arc::new(Held::default()));
        let options = config.options_mut();
        options.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
        options.execution.time_zone = Some("UTC".to_owned());
        options.execution.parquet.pushdown_filters = true;
        options.execution.parquet.reorder_filters = true;
        if let Some(cluster) = &self.cluster {
            config = cluster.configured(config);
        }
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&self.runtime))
            .with_default_features();
        cluster::add_functions(&mut builder);
        let context = SessionContext::new_with_state(builder.build());
        let access = Arc::new(Access {
            client,
            files: self.source.files().cloned(),
            scope,
        });
        for table in Table::ALL {
            let provider = Provider {
                table,
                access: Arc::clone(&access),
            };
            context.register_table(table.name(), Arc::new(provider))?;
        }
        Ok(context)
    }
}

impl Limits {
    fn over(&self) -> Error {
        Error::Limit(format!(
            "the statement took longer than {:?}; narrow it by parent or create_time, or allow more with \
             --deadline",
            self.deadline
        ))
    }
}

impl Answer {
    /// The rows as they come. A statement whose time is over ends with an error.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<RecordBatch, Error>> + Send {
        let Self {
            stream,
            until,
            limits,
            ..
        } = self;
        futures::stream::unfold(Some((stream, limits)), move |state| async move {
            let (mut stream, limits) = state?;
            let next = tokio::time::timeout_at(until, stream.next()).await;
            match next {
                Err(_elapsed) => Some((Err(limits.over()), None)),
                Ok(None) => None,
                Ok(Some(Err(error))) => Some((Err(Error::from(error)), None)),
                Ok(Some(Ok(batch))) => Some((Ok(batch), Some((stream, limits)))),
            }
        })
    }
}

/// The word that a statement begins with.
fn first_word(sql: &str) -> String {
    let word = sql.split_whitespace().next().unwrap_or_default();
    word.chars().take(20).collect::<String>().to_uppercase()
}
