//! `hindsight import results-api`.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use clap::{ArgMatches, Args, FromArgMatches as _};
use hindsight_client::Rpc;
use hindsight_proto::v1alpha2 as pb;
use indicatif::ProgressBar;
use tonic::{Code, Status};

use super::{Count, Parents, chains, parent};
use crate::{
    cli::{
        connect::{Connect, Credentials, FLAGS},
        failure::Failure,
        output, runtime,
    },
    import::Object,
};

/// Records asked for in one call, and the fewest that Tekton Results takes.
const PAGE: i32 = 200;
const SMALLEST_PAGE: i32 = 5;

/// Store the runs that a server of Tekton Results holds, read over its API
///
/// For servers whose database cannot be reached; where it can, `import tekton-results` keeps names,
/// uids and times as well. Payloads are stored byte for byte as the server gives them. Runs get the
/// names that the watcher would give them, so importing again, or after an interruption, changes
/// nothing that is there and equal. Records that are no runs (logs, lists of events) are counted as
/// skipped; runs that cannot be stored are listed with the reason, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight import results-api https://tekton-results.example:8080 --from-token-file token
  hindsight import results-api http://127.0.0.1:8081 --from-parent ci \\
    --server https://hindsight.example --token-file hindsight.token")]
pub(in crate::cli) struct ResultsApi {
    /// The server to read, `http://HOST:PORT` or `https://HOST:PORT`
    #[arg(value_name = "URL")]
    from: String,

    /// File with the bearer token for the server that is read
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    from_token_file: Option<PathBuf>,

    /// Extra CA certificates (PEM) to trust for the server that is read
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    from_ca: Option<PathBuf>,

    /// Read only the records of this parent (namespace)
    #[arg(
        long,
        value_name = "PARENT",
        default_value = "-",
        help_heading = "Source"
    )]
    from_parent: String,

    /// Store everything under this parent instead of the namespace of each object
    #[arg(long, value_name = "PARENT")]
    parent: Option<String>,

    /// How many objects to send at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,

    #[command(flatten)]
    connect: Connect,
}

pub(in crate::cli) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = ResultsApi::from_arg_matches(matches);
    let given = given.map_err(|error| Failure::usage(error.to_string()))?;
    runtime()?.block_on(given.import())
}

impl ResultsApi {
    async fn import(&self) -> Result<ExitCode, Failure> {
        let parents = Parents::of(parent(self.parent.as_deref())?);
        let source = Credentials::of_files(self.from_token_file.clone(), self.from_ca.clone());
        let mut source = source
            .client(&self.from, self.connect.deadline(), FLAGS)?
            .rpc();
        let target = self.connect.client()?.batched();
        let began = Instant::now();
        let bar = ProgressBar::new_spinner().with_message("runs read");
        let (mut count, mut skipped) = (Count::default(), 0_u64);
        let mut pages = Pages::of(&self.from_parent);
        loop {
            let page = pages.next(&mut source).await;
            let Some(records) =
                page.map_err(|status| Failure::status(&self.from, &status, FLAGS))?
            else {
                break;
            };
            let mut objects = Vec::with_capacity(records.len());
            for record in records {
                match object(&record) {
                    Ok(Some(object)) => objects.push(object),
                    Ok(None) => skipped += 1,
                    Err(why) => bar.suspend(|| count.refuse(&record.name, &why)),
                }
            }
            let chains = chains(objects, &parents);
            let sent = count.send(&target, chains, self.concurrency, || bar.inc(1));
            sent.await.map_err(|status| self.connect.failure(&status))?;
        }
        bar.finish_and_clear();
        if skipped > 0 {
            output::note(&format!("skipped {skipped} records that are no runs"));
        }
        count.conclude(&self.from, began.elapsed())
    }
}

/// The run in a record; none if it holds something else.
fn object(record: &pb::Record) -> Result<Option<Object>, String> {
    let data = record.data.clone().unwrap_or_default();
    if data.r#type.starts_with("results.tekton.dev/") || data.value.is_empty() {
        return Ok(None);
    }
    match Object::exact(data.value.to_vec()) {
        Ok(object) => Ok(Some(object)),
        Err(error) => Err(format!("its payload is not JSON: {error}")),
    }
}

/// The pages of a list of all records.
struct Pages {
    request: pb::ListRecordsRequest,
    ended: bool,
}

impl Pages {
    fn of(parent: &str) -> Self {
        Self {
            request: pb::ListRecordsRequest {
                parent: format!("{parent}/results/-"),
                page_size: PAGE,
                ..pb::ListRecordsRequest::default()
            },
            ended: false,
        }
    }

    /// The next page; none after the last. A page that is too large for a message is asked for again
    /// in smaller ones.
    async fn next(&mut self, source: &mut Rpc) -> Result<Option<Vec<pb::Record>>, Status> {
        while !self.ended {
            match source.list_records(self.request.clone()).await {
                Ok(reply) => {
                    let reply = reply.into_inner();
                    self.ended = reply.next_page_token.is_empty();
                    self.request.page_token = reply.next_page_token;
                    return Ok(Some(reply.records));
                }
                Err(status)
                    if matches!(status.code(), Code::ResourceExhausted | Code::OutOfRange)
                        && self.request.page_size > SMALLEST_PAGE =>
                {
                    self.request.page_size = (self.request.page_size / 2).max(SMALLEST_PAGE);
                }
                Err(status) => return Err(status),
            }
        }
        Ok(None)
    }
}
