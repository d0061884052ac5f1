//! `hindsight import`: objects from files, or from another results server, stored by ours.

mod archive;
mod columnar;
mod logs;
mod results_api;

use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use futures::{StreamExt as _, stream};
use hindsight_client::{Batched, Effect, Stored};
use hindsight_proto::names::{Parent, ParseNameError};
use hindsight_run::{SummaryPolicy, Upload, UploadError, View, upload};
use tonic::Code;

use self::columnar::{Archived, Stopped};
pub(super) use self::{
    archive::{ArgoArchive, KubeArchive, argo, kubearchive},
    logs::{ImportLogs, run as logs},
    results_api::{ResultsApi, run as results_api},
};
use super::{connect::Connect, failure::Failure, output, progress};
use crate::import::{Object, read};
use hindsight_runtime::error::report;

/// Store objects that `kubectl get -o json|yaml` printed, as the watcher would
///
/// `import logs` stores logs that `hindsight export logs` wrote. `import results-api` reads a server of Tekton Results instead, and `import tekton-results` its
/// database. Reads Lists, single objects, and streams of either; `-` reads standard input. Records that
/// `hindsight export` wrote are read as well, from lines, Parquet files and directories of these. Importing the
/// same objects again changes nothing. Objects that cannot be stored are listed with the reason,
/// the others are stored all the same, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  kubectl get taskruns,pipelineruns -A -o json | hindsight import -
  hindsight import backup/*.json --server http://127.0.0.1:8080
  hindsight import history
  hindsight import results-api https://tekton-results.example:8080 --from-token-file token")]
pub(super) struct Import {
    /// Files to read, or directories of Parquet files; `-` is standard input
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
    refused: u64,
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
        let parent = parent(self.parent.as_deref())?;
        // All files are read before anything is sent, so that a typing error changes nothing.
        let (mut objects, mut archives) = (Vec::new(), Vec::new());
        for file in &self.files {
            let name = file.display().to_string();
            let unreadable = |error| Failure::usage(format!("{name}: {error}"));
            if columnar::is_archive(file).map_err(unreadable)? {
                archives.extend(columnar::open(file)?);
                continue;
            }
            let read = open(file).map_err(unreadable)?;
            let read = self::read(&read)
                .map_err(|error| Failure::usage(format!("{name}: {}", report(&error))))?;
            objects.extend(read);
        }
        if objects.is_empty() && archives.is_empty() {
            return Err(Failure::usage("there are no objects in the input"));
        }
        let client = self.connect.client()?.batched();
        let began = Instant::now();
        let archived: u64 = archives.iter().map(Archived::rows).sum();
        let bar = progress::bar("objects", objects.len() as u64 + archived);
        let mut count = Count::default();
        let parents = Parents::of(parent);
        let chains = chains(objects, &parents);
        let sent = count.send(&client, chains, self.concurrency, || bar.inc(1));
        let mut sent = sent.await.map_err(Stopped::Server);
        for archive in &archives {
            if sent.is_ok() {
                let send = archive.send(&client, &parents, self.concurrency, &bar, &mut count);
                sent = send.await;
            }
        }
        bar.finish_and_clear();
        sent.map_err(|stopped| match stopped {
            Stopped::File(failure) => failure,
            Stopped::Server(status) => self.connect.failure(&status),
        })?;
        let files = counted(self.files.len() as u64, "file");
        count.conclude(&files, began.elapsed())
    }
}

/// The parent that everything is to be stored under.
fn parent(given: Option<&str>) -> Result<Option<Parent>, Failure> {
    let parse = |text: &str| text.parse();
    let parent = given.map(parse).transpose();
    parent.map_err(|error| Failure::usage(format!("--parent: {error}")))
}

/// Under which parent each object is stored.
#[derive(Debug)]
enum Parents {
    /// That of its namespace.
    Namespaces,
    /// That of its namespace in the cluster of this id, as the watcher of that cluster names it.
    Cluster(String),
    /// One for all.
    One(Parent),
}

impl Parents {
    /// One for all, if there is one.
    fn of(parent: Option<Parent>) -> Self {
        parent.map_or(Self::Namespaces, Self::One)
    }

    /// That of an object; none for that of its namespace.
    fn of_object(&self, view: &View<'_>) -> Result<Option<Parent>, ParseNameError> {
        match (self, view.namespace()) {
            (Self::One(parent), _) => Ok(Some(parent.clone())),
            (Self::Cluster(id), Some(namespace)) => format!("cluster/{id}/namespace/{namespace}")
                .parse()
                .map(Some),
            _ => Ok(None),
        }
    }
}

/// A number of things, in the singular for one.
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Count {
    /// Stores objects, and calls `done` after each. It fails if the server is not there, so that going on is of no
    /// use to the records that are left.
    async fn send(
        &mut self,
        client: &Batched,
        chains: Vec<Vec<Prepared>>,
        at_once: u16,
        mut done: impl FnMut(),
    ) -> Result<(), tonic::Status> {
        let mut sending = stream::iter(chains)
            .map(|chain| {
                let stored = stream::iter(chain).then(|object| store(client, object));
                Box::pin(stored)
            })
            .flatten_unordered(usize::from(at_once));
        while let Some((what, outcome)) = sending.next().await {
            match outcome {
                Outcome::Done(Stored {
                    record: Effect::Created,
                    ..
                }) => self.created += 1,
                Outcome::Done(Stored {
                    record: Effect::Unchanged,
                    result: Effect::Unchanged,
                }) => {
                    self.unchanged += 1;
                }
                Outcome::Done(_) => self.updated += 1,
                Outcome::Refused(why) => self.refuse(&what, &why),
                Outcome::Stop(status) => return Err(status),
            }
            done();
        }
        Ok(())
    }

    fn refuse(&mut self, what: &str, why: &str) {
        output::note(&format!("refused {what}: {why}"));
        self.refused += 1;
    }

    fn conclude(&self, from: &str, took: Duration) -> Result<ExitCode, Failure> {
        let total = self.created + self.updated + self.unchanged;
        writeln!(
            std::io::stdout().lock(),
            "imported {} from {from} in {:.1} s: {} created, {} updated, {} unchanged, {} refused",
            counted(total, "object"),
            took.as_secs_f64(),
            self.created,
            self.updated,
            self.unchanged,
            self.refused
        )?;
        Ok(self.code())
    }

    fn code(&self) -> ExitCode {
        match self.refused {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(Failure::FAILED),
        }
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
    fn new(object: Object, parents: &Parents) -> Self {
        let text = |pointer: &str| object.value.pointer(pointer).and_then(|v| v.as_str());
        let what = [
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        ]
        .map(|part| part.unwrap_or("?"))
        .join("/");
        let view = View::new(&object.value);
        let parent = parents.of_object(&view).map_err(UploadError::from);
        let policy = SummaryPolicy::default();
        Self {
            what,
            upload: parent.and_then(|parent| upload(&view, parent, &policy)),
            bytes: object.bytes,
        }
    }
}

/// The objects by the result that they belong to, in the order of the input: what belongs
/// together is sent one after the other, so that of several states of one run (as `kubectl get
/// --watch` prints them) the last one stays, and objects of one result do not race each other.
fn chains(objects: Vec<Object>, parents: &Parents) -> Vec<Vec<Prepared>> {
    let mut chains: Vec<Vec<Prepared>> = Vec::new();
    let mut of_result = HashMap::new();
    for object in objects {
        let prepared = Prepared::new(object, parents);
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
