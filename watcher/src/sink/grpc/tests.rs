//! Which errors of the server are told apart.

use std::{io, sync::Arc, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::classify;
use crate::sink::Severity;

#[test]
fn a_broken_connection_is_told_from_an_error_of_the_server() {
    let sent = Status::unknown("duplicate key value");
    assert_eq!(classify(&sent).severity, Severity::Passing);
    let mut broken = Status::unknown("h2 protocol error");
    broken.set_source(Arc::new(io::Error::from(io::ErrorKind::BrokenPipe)));
    assert_eq!(classify(&broken).severity, Severity::Unavailable);
    assert_eq!(
        classify(&Status::unavailable("store")).severity,
        Severity::Unavailable
    );
    assert_eq!(
        classify(&Status::invalid_argument("name")).severity,
        Severity::Lasting
    );
}
#[test]
fn a_run_that_is_too_large_is_told_from_a_budget_that_is_spent() {
    for said in [
        "grpc: received message larger than max (5000000 vs. 4194304)",
        "Error, decoded message length too large: found 9 bytes, the limit is: 5 bytes",
        "gRPC message exceeds maximum size 4194304: 5000000",
    ] {
        let error = classify(&Status::resource_exhausted(said));
        assert_eq!(
            (error.severity, error.retry_after),
            (Severity::Lasting, None)
        );
    }
    let spent = Status::resource_exhausted("enough for now");
    assert_eq!(classify(&spent).severity, Severity::Passing);
    let second = Some(Duration::from_secs(1));
    let details = ErrorDetails::with_retry_info(second);
    let told = Status::with_error_details(Code::ResourceExhausted, "not yet", details);
    let mut by_proxy = spent;
    by_proxy
        .metadata_mut()
        .insert("retry-after", "1".parse().unwrap());
    for status in [told, by_proxy] {
        let error = classify(&status);
        assert_eq!(
            (error.severity, error.retry_after),
            (Severity::Unavailable, second)
        );
    }
}
