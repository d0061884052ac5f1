//! How plans are written for other processes: as Ballista does, with the function that tells which rows of files count.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::{
    error::Result, execution::TaskContext, logical_expr::ScalarUDF, physical_plan::ExecutionPlan,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use hindsight_sql::cluster::{decoded, encoded};

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
