//! `hindsight import`.

use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use futures::{StreamExt as _, stream};
use hindsight_proto::{
    client::{Batched, Effect, Stored},
    names::Parent,
    run::{SummaryPolicy, Upload, UploadError, upload},
};
use indicatif::{ProgressBar, ProgressStyle};
use tonic::Code;

use super::{connect::Connect, failure::Failure, output};
use crate::{
    error::report,
    import::{Object, read},
};

/// Store objects that `kubectl get -o json|yaml` printed, as the watcher would
///
/// Reads Lists, single objects, and streams of either; `-` reads standard input. Importing the
/// same objects again changes nothing. Objects that cannot be stored are listed with the reason,
/// the others are stored all the same, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  kubectl get taskruns,pipelineruns -A -o json | hindsight import -
  hindsight import backup/*.json --server http://127.0.0.1:8080")]
pub(super) struct Import {
    /// Files to read; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Store everything under this parent instead of the namespace of each object
    #[arg(long, value_name = "PARENT")]
    parent: Option<String>,

    /// How many objects to send at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,

    #[command(flatten)]
    connect: Connect,
}

#[derive(Debug, Default)]
struct Count {
    created: u64,
    updated: u64,
    unchanged: u64,
    refused: Vec<String>,
}

/// What became of one object.
enum Outcome {
    Done(Stored),
    Refused(String),
    /// The server is not there, so that going on makes no sense.
    Stop(tonic::Status),
}

impl Import {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let parent: Option<Parent> = match &self.parent {
            Some(text) => Some(
                text.parse()
                    .map_err(|error| Failure::usage(format!("--parent: {error}")))?,
            ),
            None => None,
        };
        // All files are read before anything is sent, so that a typing error changes nothing.
        let mut objects = Vec::new();
        for file in &self.files {
            let name = file.display().to_string();
            let read = open(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            let read = self::read(&read)
                .map_err(|error| Failure::usage(format!("{name}: {}", report(&error))))?;
            objects.extend(read);
        }
        let client = self.connect.client()?.batched();
        let began = Instant::now();
        let count = self.send(&client, objects, parent).await?;
        self.conclude(&count, began.elapsed())
    }

    async fn send(
        &self,
        client: &Batched,
        objects: Vec<Object>,
        parent: Option<Parent>,
    ) -> Result<Count, Failure> {
        let bar = bar(objects.len() as u64);
        let mut count = Count::default();
        let chains = chains(objects, parent.as_ref());
        let mut sending = stream::iter(chains)
            .map(|chain| {
                let stored = stream::iter(chain).then(|object| store(client, object));
                Box::pin(stored)
            })
            .flatten_unordered(usize::from(self.concurrency));
        while let Some((what, outcome)) = sending.next().await {
            match outcome {
                Outcome::Done(Stored {
                    record: Effect::Created,
                    ..
                }) => count.created += 1,
                Outcome::Done(Stored {
                    record: Effect::Unchanged,
                    result: Effect::Unchanged,
                }) => {
                    count.unchanged += 1;
                }
                Outcome::Done(_) => count.updated += 1,
                Outcome::Refused(why) => count.refused.push(format!("{what}: {why}")),
                Outcome::Stop(status) => {
                    bar.abandon();
                    return Err(self.connect.failure(&status));
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(count)
    }

    fn conclude(&self, count: &Count, took: Duration) -> Result<ExitCode, Failure> {
        for refused in &count.refused {
            output::note(&format!("refused {refused}"));
        }
        let total = count.created + count.updated + count.unchanged;
        writeln!(
            std::io::stdout().lock(),
            "imported {total} objects from {} files in {:.1} s: {} created, {} updated, {} unchanged, {} refused",
            self.files.len(),
            took.as_secs_f64(),
            count.created,
            count.updated,
            count.unchanged,
            count.refused.len()
        )?;
        Ok(if count.refused.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(Failure::FAILED)
        })
    }
}

fn open(file: &Path) -> std::io::Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut input = Vec::new();
        std::io::stdin().lock().read_to_end(&mut input)?;
        return Ok(input);
    }
    std::fs::read(file)
}

/// An object that is about to be sent.
struct Prepared {
    /// Kind, namespace and name.
    what: String,
    upload: Result<Upload, UploadError>,
    bytes: Vec<u8>,
}

impl Prepared {
    fn new(object: Object, parent: Option<Parent>) -> Self {
        let text = |pointer: &str| object.value.pointer(pointer).and_then(|v| v.as_str());
        let what = [
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        ]
        .map(|part| part.unwrap_or("?"))
        .join("/");
        Self {
            what,
            upload: upload(&object.value, parent, &SummaryPolicy::default()),
            bytes: object.bytes,
        }
    }
}

/// The objects by the result that they belong to, in the order of the input: what belongs
/// together is sent one after the other, so that of several states of one run (as `kubectl get
/// --watch` prints them) the last one stays, and objects of one result do not race each other.
fn chains(objects: Vec<Object>, parent: Option<&Parent>) -> Vec<Vec<Prepared>> {
    let mut chains: Vec<Vec<Prepared>> = Vec::new();
    let mut of_result = HashMap::new();
    for object in objects {
        let prepared = Prepared::new(object, parent.cloned());
        let at = match &prepared.upload {
            Ok(upload) => *of_result
                .entry(upload.grouping.record.result().clone())
                .or_insert(chains.len()),
            Err(_refused) => chains.len(),
        };
        if at == chains.len() {
            chains.push(Vec::new());
        }
        chains[at].push(prepared);
    }
    chains
}

async fn store(client: &Batched, object: Prepared) -> (String, Outcome) {
    let Prepared {
        what,
        upload,
        bytes,
    } = object;
    let upload = match upload {
        Ok(upload) => upload,
        Err(error) => return (what, Outcome::Refused(report(&error))),
    };
    for warning in &upload.grouping.notes {
        output::note(&format!("{what}: {warning}"));
    }
    let outcome = match client.store(&upload, bytes).await {
        Ok(stored) => Outcome::Done(stored),
        Err(status) if hopeless(status.code()) => Outcome::Stop(status),
        Err(status) => Outcome::Refused(status.message().to_owned()),
    };
    (what, outcome)
}

fn hopeless(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unauthenticated
            | Code::Unimplemented
    )
}

fn bar(objects: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} objects, {per_sec}, {eta} left")
        .unwrap_or_else(|_e| ProgressStyle::default_bar());
    // Draws on standard error, and only on a terminal.
    ProgressBar::new(objects).with_style(style)
}
