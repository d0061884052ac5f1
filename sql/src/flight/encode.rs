//! Rows as Flight carries them. Texts are sent as Arrow had them from its beginning, because not all clients know views.

use std::sync::Arc;

use arrow::{
    array::RecordBatch,
    compute::cast,
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
    ipc::writer::IpcWriteOptions,
};
use arrow_flight::{
    FlightData, IpcMessage, SchemaAsIpc, encode::FlightDataEncoderBuilder, error::FlightError,
};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use tonic::Status;

use crate::Error;

/// The schema that clients see of this one.
pub(super) fn flight_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(known);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn known(field: &Arc<Field>) -> Arc<Field> {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(known(item)),
        DataType::LargeList(item) => DataType::LargeList(known(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(known).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

fn converted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// The stream of a client that gets these rows.
pub(super) fn encoded(
    schema: SchemaRef,
    rows: impl Stream<Item = Result<RecordBatch, Error>> + Send + 'static,
) -> super::FlightStream<FlightData> {
    let of = Arc::clone(&schema);
    let rows = rows.map(move |batch| match batch {
        Ok(batch) => Ok(converted(&batch, &of)?),
        Err(error) => Err(FlightError::from(error.status())),
    });
    let stream = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(rows);
    Box::pin(stream.map_err(Status::from))
}

/// A schema as the parts of messages have it.
pub(super) fn ipc(schema: &SchemaRef) -> Result<bytes::Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message: Result<IpcMessage, ArrowError> = SchemaAsIpc::new(schema, &options).try_into();
    let IpcMessage(bytes) = message.map_err(|error| Status::internal(error.to_string()))?;
    Ok(bytes)
}
