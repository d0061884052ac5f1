//! `hindsight runs --watch`: the list, then changes as they come.
//!
//! The feed is opened before the list is asked for, so that nothing is missed between them; what was
//! listed already is left out of the feed. A connection that breaks is opened again where it was.

use std::{collections::HashMap, io::Stdout, process::ExitCode, time::Duration};

use hindsight_proto::v1::{RunEvent, RunRow, WatchRunsRequest};
use prost_types::Timestamp;
use tonic::{Code, Status, Streaming};

use super::{Runs, print::Printer, row::Column};
use crate::cli::{failure::Failure, list::Form, output};

/// Wait before the first attempt to connect again; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A server says something every 30 s; one that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(90);

/// When each listed run was stored, by the name of its record.
type Listed = HashMap<String, Option<Timestamp>>;

/// What became of a stream.
enum Ended {
    /// It is to be continued.
    Broken(Status),
    /// It cannot be continued.
    Expired,
}

impl Runs {
    /// Prints runs and then their changes, until it is interrupted or fails.
    pub(super) async fn watch(
        &self,
        filter: String,
        mut printer: Printer<Stdout>,
    ) -> Result<ExitCode, Failure> {
        if let Form::Json | Form::Yaml = self.output {
            return Err(Failure::usage(
                "--watch has no end, so it prints no document; use -o jsonl",
            ));
        }
        let labels = printer.columns().iter().filter_map(Column::label);
        let labels: Vec<_> = labels.map(str::to_owned).collect();
        loop {
            let mut request = WatchRunsRequest {
                parent: self.cluster.within(&self.place, None),
                filter: filter.clone(),
                label_keys: labels.clone(),
                ..WatchRunsRequest::default()
            };
            let mut stream = Some(
                self.open(&request)
                    .await
                    .map_err(|e| self.connect.failure(&e))?,
            );
            let mut listed = None;
            let mut wait = FIRST_WAIT;
            loop {
                let opened = match stream.take() {
                    Some(stream) => Ok(stream),
                    None => self.open(&request).await,
                };
                let ended = match opened {
                    Err(status) => ended(status),
                    Ok(mut stream) => loop {
                        let event = match next(&mut stream).await {
                            Ok(event) => event,
                            Err(status) => break ended(status),
                        };
                        wait = FIRST_WAIT;
                        request.cursor = event.cursor;
                        let listed = match &mut listed {
                            Some(listed) => listed,
                            None => listed.insert(self.begin(filter.clone(), &mut printer).await?),
                        };
                        if let Some(run) = event.run
                            && is_new(listed, &run)
                        {
                            printer.page(vec![run])?;
                        }
                    },
                };
                match ended {
                    Ended::Expired => break,
                    Ended::Broken(status) if may_pass(&status) => {
                        // A stream that ended well goes on without a word.
                        if status.code() != Code::Ok {
                            let why = self.connect.failure(&status);
                            output::note(&format!("{why}; trying again"));
                        }
                    }
                    Ended::Broken(status) => return Err(self.connect.failure(&status)),
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            output::note("changes were missed meanwhile; listing again");
        }
    }

    /// The runs that are there now, printed.
    async fn begin(
        &self,
        filter: String,
        printer: &mut Printer<Stdout>,
    ) -> Result<Listed, Failure> {
        let mut listed = Listed::new();
        let mut keep = |runs: &[RunRow]| {
            let times = runs.iter().map(|run| (run.record.clone(), run.update_time));
            listed.extend(times);
        };
        let request = self.request(filter, printer.columns());
        let mut runs = self.connect.client()?.runs();
        let listing = self.list(&mut runs, request, printer, &mut keep).await?;
        if listing.found == 0 {
            output::note(&format!(
                "no runs found {}; waiting for some",
                self.place.said()
            ));
        }
        Ok(listed)
    }

    async fn open(&self, request: &WatchRunsRequest) -> Result<Streaming<RunEvent>, Status> {
        let request = self.asked.rows.request(request.clone());
        let request = request.map_err(|failure| Status::invalid_argument(failure.to_string()))?;
        let client = self.connect.client();
        let client = client.map_err(|failure| Status::invalid_argument(failure.to_string()))?;
        Ok(client.runs().watch_runs(request).await?.into_inner())
    }
}

/// The next event; a stream that ended is an error, of the code OK if it ended well.
async fn next(stream: &mut Streaming<RunEvent>) -> Result<RunEvent, Status> {
    match tokio::time::timeout(SILENCE, stream.message()).await {
        Ok(Ok(Some(event))) => Ok(event),
        Ok(Ok(None)) => Err(Status::ok("")),
        Ok(Err(status)) => Err(status),
        Err(_elapsed) => Err(Status::unavailable("it has not said anything for long")),
    }
}

fn ended(status: Status) -> Ended {
    match status.code() {
        Code::OutOfRange => Ended::Expired,
        _ => Ended::Broken(status),
    }
}

/// Whether the same request may be answered later.
fn may_pass(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Ok
            | Code::Unavailable
            | Code::Unknown
            | Code::Cancelled
            | Code::Internal
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
    )
}

/// Whether a state is later than that which was listed.
fn is_new(listed: &mut Listed, run: &RunRow) -> bool {
    let at = |time: &Timestamp| (time.seconds, time.nanos);
    match listed.get(&run.record) {
        Some(Some(shown)) if run.update_time.as_ref().map(at) <= Some(at(shown)) => false,
        _ => {
            listed.remove(&run.record);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_listed_is_not_printed_again() {
        let run = |seconds| RunRow {
            record: "ci/results/r/records/a".to_owned(),
            update_time: Some(Timestamp { seconds, nanos: 5 }),
            ..RunRow::default()
        };
        let shown = run(7);
        let mut listed = Listed::from([(shown.record, shown.update_time)]);
        assert!(!is_new(&mut listed, &run(6)), "it was told late");
        assert!(!is_new(&mut listed, &run(7)));
        assert!(is_new(&mut listed, &run(8)));
        assert!(listed.is_empty(), "what follows is always later");
    }
}
