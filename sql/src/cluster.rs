//! Plans that other processes execute: what those need to know of this one.
//!
//! A plan is made here, with the rows of the database in it and with the files that its caller may read, so that
//! executors need neither a token nor the server: they read files.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    common::tree_node::TreeNodeRecursion,
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext},
    logical_expr::{LogicalPlan, ScalarUDF},
    physical_plan::ExecutionPlan,
    prelude::SessionConfig,
};

use crate::{cold::Current, error::Unreachable, functions};

/// Processes that execute plans.
#[async_trait]
pub trait Cluster: Debug + Send + Sync {
    /// The configuration of statements whose plans it can execute.
    fn configured(&self, config: SessionConfig) -> SessionConfig;

    /// Executes a plan, which ends when the rows are dropped.
    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// Adds the functions of statements, which every process needs that executes plans.
pub fn add_functions(builder: &mut SessionStateBuilder) {
    let scalar = builder.scalar_functions().get_or_insert_default();
    scalar.extend(functions::scalar());
    let aggregate = builder.aggregate_functions().get_or_insert_default();
    aggregate.extend(functions::aggregate());
}

/// What tells a function of a plan that is not among those of statements; none of one that is.
pub fn encoded(function: &ScalarUDF) -> Option<Vec<u8>> {
    let current = function.inner().downcast_ref::<Current>()?;
    Some(current.encoded())
}

/// The function that was encoded so. It fails if none was.
pub fn decoded(bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
    let current = Current::decoded(bytes)?;
    Ok(Arc::new(ScalarUDF::new_from_impl(current)))
}

/// Why nothing of a cluster answers.
pub fn unreachable(why: String) -> DataFusionError {
    DataFusionError::External(Box::new(Unreachable(why)))
}

/// Whether a cluster executes a statement: not if it explains another one or describes tables, which is about the
/// process that was asked, and not if it reads no table.
pub(crate) fn executes(plan: &LogicalPlan) -> bool {
    let (mut reads, mut is_about) = (false, false);
    let visited = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                reads = true;
                is_about |= scan.table_name.schema() == Some("information_schema");
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => {
                is_about = true;
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.is_ok() && reads && !is_about
}
