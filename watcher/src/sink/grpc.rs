//! A sink that is a server of `tekton.results.v1alpha2`, ours or another.

use async_trait::async_trait;
use tonic::{Code, Status};

use hindsight_proto::{client::Client, names::RecordName, run::Upload};

use super::{Severity, Sink, SinkError};

/// Stores runs on a server, by gRPC.
#[derive(Debug, Clone)]
pub struct GrpcSink {
    client: Client,
}

impl GrpcSink {
    /// Uses `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl Sink for GrpcSink {
    async fn store(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError> {
        self.client.store(upload, value).await.map(|_| ()).map_err(|status| judge(&status))
    }

    async fn stored(&self, record: &RecordName) -> Result<Option<Vec<u8>>, SinkError> {
        let record = self.client.record(record).await.map_err(|status| judge(&status))?;
        Ok(record.map(|record| record.data.map(|data| data.value.to_vec()).unwrap_or_default()))
    }
}

/// What follows from a status. A connection that breaks in the middle of a call shows as
/// `UNKNOWN` or `CANCELLED`. A token that is not accepted is no property of one run, so
/// everything waits for a better one.
fn judge(status: &Status) -> SinkError {
    let (code, severity) = match status.code() {
        Code::Ok => ("OK", Severity::Passing),
        Code::Unavailable => ("UNAVAILABLE", Severity::Away),
        Code::Unknown => ("UNKNOWN", Severity::Away),
        Code::Cancelled => ("CANCELLED", Severity::Away),
        Code::Unauthenticated => ("UNAUTHENTICATED", Severity::Away),
        Code::DeadlineExceeded => ("DEADLINE_EXCEEDED", Severity::Passing),
        Code::Internal => ("INTERNAL", Severity::Passing),
        Code::Aborted => ("ABORTED", Severity::Passing),
        Code::AlreadyExists => ("ALREADY_EXISTS", Severity::Passing),
        Code::FailedPrecondition => ("FAILED_PRECONDITION", Severity::Passing),
        Code::ResourceExhausted => ("RESOURCE_EXHAUSTED", Severity::Passing),
        Code::InvalidArgument => ("INVALID_ARGUMENT", Severity::Lasting),
        Code::NotFound => ("NOT_FOUND", Severity::Lasting),
        Code::PermissionDenied => ("PERMISSION_DENIED", Severity::Lasting),
        Code::OutOfRange => ("OUT_OF_RANGE", Severity::Lasting),
        Code::Unimplemented => ("UNIMPLEMENTED", Severity::Lasting),
        Code::DataLoss => ("DATA_LOSS", Severity::Lasting),
    };
    SinkError { code, message: status.message().to_owned(), severity }
}
