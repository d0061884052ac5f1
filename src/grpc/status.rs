//! The one translation of errors into gRPC statuses.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::error::{ErrorKind, HasKind, report};

/// Turns an error into what the client is told. What only operators should know (the driver's
/// own words) goes to the log, not to the client.
pub fn status<E: HasKind + std::error::Error>(method: &'static str, error: &E) -> Status {
    let kind = error.kind();
    match kind {
        ErrorKind::Internal | ErrorKind::Lost => {
            tracing::error!(
                rpc.method = method,
                error = report(error),
                "{method} is broken"
            );
        }
        ErrorKind::Unavailable => {
            tracing::warn!(
                rpc.method = method,
                error = report(error),
                "{method} was not answered"
            );
        }
        _ => tracing::debug!(
            rpc.method = method,
            error = report(error),
            "{method} was refused"
        ),
    }
    let code = Code::from_i32(kind.grpc_code());
    match error.retry_after() {
        None => Status::new(code, error.to_string()),
        Some(after) => {
            let details = ErrorDetails::with_retry_info(Some(after));
            Status::with_error_details(code, error.to_string(), details)
        }
    }
}
