//! Calling the server for logs.

use std::time::Duration;

use hindsight_proto::v1::{LogContainer, LogSource};
use jiff::Timestamp;

use crate::{
    logs::Overlap,
    metrics::OfCode,
    shared::Shared,
    sink::{Severity, SinkError},
};

/// The run of which no server has a log.
const NONE: &str = "-/results/-/logs/-";

/// Makes a call once the server is available, and notes how that went.
pub(super) async fn call<T>(
    shared: &Shared,
    call: impl Future<Output = Result<T, SinkError>>,
) -> Result<T, SinkError> {
    let pass = shared.server.gate.enter().await;
    let answer = call.await;
    match &answer {
        Err(error) if error.severity == Severity::Unavailable => pass.refused(error),
        _ => pass.answered(),
    }
    if let Err(error) = &answer {
        let labels = OfCode { code: error.code };
        shared.metrics.store_errors.get_or_create(&labels).inc();
    }
    answer
}

/// What the server holds of a log. Of a run that is not stored yet there may be nothing.
pub(super) async fn held(shared: &Shared, log: &str) -> Result<Vec<LogContainer>, SinkError> {
    match call(shared, shared.server.sink.describe_log(log)).await {
        Err(error) if error.code == "NOT_FOUND" => Ok(Vec::new()),
        held => held,
    }
}

/// Which lines the server has of those from `first` on, a time in microseconds; none without it.
pub(super) async fn overlap(
    shared: &Shared,
    (log, source): (&str, &LogSource),
    first: Option<i64>,
) -> Result<Overlap, SinkError> {
    let Some(first) = first else {
        return Ok(Overlap::new(&[], false));
    };
    let since = Timestamp::from_microsecond(first).unwrap_or(Timestamp::UNIX_EPOCH);
    let asked = shared.server.sink.log_times(log, source, since);
    let stored = call(shared, asked).await?;
    Ok(Overlap::new(&stored.times, stored.is_cut))
}

/// Whether the server keeps logs at all.
pub(super) async fn keeps_logs(shared: &Shared) -> bool {
    let asked = call(shared, shared.server.sink.describe_log(NONE)).await;
    asked
        .err()
        .is_none_or(|error| !is_missing(&error) && error.severity != Severity::Unavailable)
}

/// Whether the server has no service of logs.
pub(super) fn is_missing(error: &SinkError) -> bool {
    error.code == "UNIMPLEMENTED"
}

/// Whether the parent of a log has no room for more lines.
pub(super) fn is_over_quota(error: &SinkError) -> bool {
    error.code == "RESOURCE_EXHAUSTED" && error.message.contains("logs_quota")
}

/// How long to wait after so many failures, the last of which was `error`.
pub(super) fn wait(shared: &Shared, error: &SinkError, failures: u32) -> Duration {
    let tuning = &shared.config.tuning;
    let wait = match error.severity {
        Severity::Denied | Severity::Lasting => tuning.rare_retry,
        Severity::Unavailable | Severity::Passing => tuning.retry.after(failures),
    };
    wait.max(error.retry_after.unwrap_or_default())
}
