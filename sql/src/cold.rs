//! Rows of Parquet files: which files are read, and which of their rows count.

mod current;

use std::{collections::HashSet, sync::Arc};

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::{
    catalog::Session,
    common::DFSchema,
    config::TableParquetOptions,
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    logical_expr::{Expr, ScalarUDF},
    physical_expr::ScalarFunctionExpr,
    physical_plan::{
        ExecutionPlan, PhysicalExpr, expressions::col as physical_column, filter::FilterExecBuilder,
    },
    prelude::{col, lit},
    scalar::ScalarValue,
};
use hindsight_run::DEFINITIONS;
use object_store::ObjectMeta;

pub(crate) use self::current::Current;
use crate::{
    columns::{COLD, Column, OF_FILES, Table, schema},
    hot::Names,
    source::Files,
};

/// The column that tells files apart of which not all rows count.
const FILE: &str = "file";

/// A file whose rows are read.
#[derive(Debug)]
pub(crate) struct ColdFile {
    pub(crate) meta: ObjectMeta,
    pub(crate) namespace: String,
    /// Which of its rows count, if not all do.
    pub(crate) only: Option<Only>,
}

/// Which rows of a file count.
#[derive(Debug, Clone)]
pub(crate) struct Only {
    /// The parent of all its results.
    pub(crate) parent: String,
    /// Rows of these results count; of all if none are said.
    pub(crate) results: Option<HashSet<String>>,
    /// Rows of these names were read elsewhere.
    pub(crate) seen: Option<Arc<Names>>,
}

/// What is read of files.
pub(crate) struct Scan<'a> {
    pub(crate) table: Table,
    pub(crate) projection: Option<&'a Vec<usize>>,
    pub(crate) limit: Option<usize>,
}

impl Scan<'_> {
    /// The columns of the plan, by their numbers in the table.
    fn wanted(&self) -> Vec<usize> {
        let all = || (0..self.table.columns().len()).collect();
        self.projection.cloned().unwrap_or_else(all)
    }

    /// What rows of files are read by; none if there are no files.
    pub(crate) fn plan(
        &self,
        state: &dyn Session,
        place: &Files,
        files: Vec<ColdFile>,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let (some, all): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.only.is_some());
        let mut plans = Vec::new();
        for (files, is_part) in [(all, false), (some, true)] {
            if !files.is_empty() {
                plans.push(self.plan_of(state, place, files, is_part)?);
            }
        }
        Ok(plans)
    }

    fn plan_of(
        &self,
        state: &dyn Session,
        place: &Files,
        files: Vec<ColdFile>,
        is_part: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = self.table.columns();
        let wanted = self.wanted();
        let number = |name: &str| columns.iter().position(|column| column.info.name == name);
        let mut read = wanted.clone();
        let is_runs = self.table == Table::Runs;
        let needed: &[&str] = match (is_runs, is_part) {
            (false, false) => &[],
            (true, false) => &["type"],
            (false, true) => &["result_id", "record_id"],
            (true, true) => &["type", "result_id", "record_id"],
        };
        for number in needed.iter().filter_map(|name| number(name)) {
            if !read.contains(&number) {
                read.push(number);
            }
        }
        let mut of_files: Vec<FieldRef> = schema(&OF_FILES).fields().iter().cloned().collect();
        if is_part {
            // After all columns of the table.
            read.push(columns.len());
            of_files.push(Arc::new(Field::new(FILE, DataType::Int32, false)));
        }
        let mut only = Vec::new();
        let mut parts = Vec::with_capacity(files.len());
        for file in files {
            let mut values = vec![text(&file.namespace), text(COLD)];
            if let Some(of_file) = file.only {
                let number = i32::try_from(only.len()).unwrap_or(i32::MAX);
                values.push(ScalarValue::Int32(Some(number)));
                only.push(of_file);
            }
            parts.push(PartitionedFile::new_from_meta(file.meta).with_partition_values(values));
        }
        let in_files: Vec<Column> = columns[..columns.len() - OF_FILES.len()].to_vec();
        let table_schema = TableSchema::builder(schema(&in_files))
            .with_table_partition_cols(of_files)
            .build();
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let source = ParquetSource::new(table_schema).with_table_parquet_options(options);
        // What is filtered out here does not count for the limit.
        let limit = self.limit.filter(|_| needed.is_empty());
        let config = FileScanConfigBuilder::new(place.url.clone(), Arc::new(source))
            .with_file_groups(grouped(parts, state.config().target_partitions()))
            .with_projection_indices(Some(read.clone()))?
            .with_limit(limit)
            .build();
        let plan = DataSourceExec::from_data_source(config);
        self.filtered(state, plan, only, wanted.len())
    }

    /// `plan` without rows that do not count, and with the first columns of it.
    fn filtered(
        &self,
        state: &dyn Session,
        mut plan: Arc<dyn ExecutionPlan>,
        only: Vec<Only>,
        columns: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut filters: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        if !only.is_empty() {
            filters.push(current(state, &plan.schema(), only)?);
        }
        if self.table == Table::Runs {
            let schema = DFSchema::try_from(plan.schema().as_ref().clone())?;
            filters.push(state.create_physical_expr(is_run(), &schema)?);
        }
        let last = filters.len().saturating_sub(1);
        for (at, filter) in filters.into_iter().enumerate() {
            let mut builder = FilterExecBuilder::new(filter, plan);
            if at == last {
                builder = builder.apply_projection(Some((0..columns).collect()))?;
            }
            plan = Arc::new(builder.build()?);
        }
        Ok(plan)
    }
}

fn text(text: &str) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.to_owned()))
}

/// Whether a row counts, by its file, result and record.
fn current(
    state: &dyn Session,
    schema: &SchemaRef,
    only: Vec<Only>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let columns = [FILE, "result_id", "record_id"];
    let columns = columns.map(|name| physical_column(name, schema));
    let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
    let function = Arc::new(ScalarUDF::new_from_impl(Current::new(only)));
    let options = Arc::new(state.config_options().clone());
    let expression = ScalarFunctionExpr::try_new(function, columns, schema, options)?;
    Ok(Arc::new(expression))
}

/// Whether a record is of a run: the test that lists of runs make.
fn is_run() -> Expr {
    let data_type = || col("type");
    let definitions = DEFINITIONS.iter().map(|kind| lit(kind.data_type()));
    data_type()
        .like(lit("%/%"))
        .and(data_type().not_like(lit("results.tekton.dev/%")))
        .and(data_type().in_list(definitions.collect(), true))
}

/// Files in groups that are read beside each other, of about as many bytes.
fn grouped(mut files: Vec<PartitionedFile>, most: usize) -> Vec<FileGroup> {
    files.sort_by_key(|file| std::cmp::Reverse(file.object_meta.size));
    let count = most.clamp(1, files.len().max(1));
    let mut groups: Vec<(u64, Vec<PartitionedFile>)> = vec![(0, Vec::new()); count];
    for file in files {
        if let Some(group) = groups.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            group.0 += file.object_meta.size.max(1);
            group.1.push(file);
        }
    }
    let groups = groups.into_iter();
    groups.map(|(_, files)| FileGroup::new(files)).collect()
}
