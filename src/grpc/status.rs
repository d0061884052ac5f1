//! The one translation of errors into gRPC statuses.

use bytes::Bytes;
use hindsight_proto::{Message as _, rpc};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use hindsight_runtime::error::{ErrorKind, HasKind, report};

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
    let message = shortened(error.to_string());
    match (error.retry_after(), error.reason()) {
        (None, None) => Status::new(code, message),
        (None, Some(reason)) => {
            let details = with_reason(kind.grpc_code(), &message, reason);
            Status::with_details(code, message, details)
        }
        (Some(after), _) => {
            let details = ErrorDetails::with_retry_info(Some(after));
            Status::with_error_details(code, message, details)
        }
    }
}

/// The details of a status, among which is the bare reason.
fn with_reason(code: i32, message: &str, reason: &str) -> Bytes {
    let reason = rpc::Status {
        code,
        message: shortened(reason.to_owned()),
        details: Vec::new(),
    };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.Status".to_owned(),
        value: reason.encode_to_vec(),
    };
    let status = rpc::Status {
        code,
        message: message.to_owned(),
        details: vec![detail],
    };
    status.encode_to_vec().into()
}

/// Messages are sent as headers, and many repeat what the request said, however long that is.
const MOST: usize = 2_048;

fn shortened(mut message: String) -> String {
    if message.len() > MOST {
        message.truncate(message.floor_char_boundary(MOST));
        message.push_str("...");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(shortened("a".repeat(2_048)), "a".repeat(2_048));
        let long = shortened("é".repeat(1_000_000) + "!");
        assert_eq!(long, "é".repeat(1_024) + "...");
        let odd = shortened("a".to_owned() + &"é".repeat(1_024));
        assert_eq!(odd, "a".to_owned() + &"é".repeat(1_023) + "...");
    }
}
