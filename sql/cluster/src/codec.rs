//! How plans are written for other processes: as Ballista does, with the function that tells which rows of files count.

use std::sync::Arc;

use ballista_core::{serde::BallistaPhysicalExtensionCodec, utils::default_session_builder};
use datafusion::{
    error::Result,
    execution::{SessionStateBuilder, TaskContext},
    logical_expr::ScalarUDF,
    physical_plan::ExecutionPlan,
    prelude::SessionConfig,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use hindsight_sql::cluster::{add_functions, decoded, encoded};

/// A session of a process that reads such plans, with the functions that they name.
pub(crate) fn session(config: SessionConfig) -> Result<SessionStateBuilder> {
    let mut builder = SessionStateBuilder::from(default_session_builder(config)?);
    add_functions(&mut builder);
    Ok(builder)
}

/// The functions of statements are told by their names alone.
#[derive(Debug, Default)]
pub(crate) struct Codec(BallistaPhysicalExtensionCodec);

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.try_decode(buf, inputs, ctx, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.0.try_encode(node, buf, converter)
    }

    fn try_decode_udf(&self, _: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        decoded(buf)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        buf.extend(encoded(node).unwrap_or_default());
        Ok(())
    }
}
