//! Which run a person means.

mod reference;

use clap::Args;
use hindsight_client::Client;
use hindsight_filter::{run_filter, words::quoted};
use hindsight_proto::{
    v1::{ListRunsRequest, RunRow},
    v1alpha2 as pb,
};
use hindsight_run::{View, json, reference::begins_uid};

use self::reference::Reference;
use super::{connect::Connect, failure::Failure, output, place::Place};

/// What RUN may be, for the help of commands.
pub(super) const RUN: &str = "RUN is a name, NAMESPACE/NAME, a UID or its first 4 or more digits, the full name of a record, the
address of a page or call of one, or @last, @last-failed, @-3 for the third newest run of the namespace
that is no part of another.";

/// How many runs of one name or beginning are looked at.
const CANDIDATES: i32 = 20;

/// Where runs are looked up, and at which server.
#[derive(Debug, Args)]
pub(super) struct Lookup {
    #[command(flatten)]
    pub(super) place: Place,

    /// Pipeline of the runs that @last, @last-failed and @-N count
    #[arg(short, long, value_name = "NAME")]
    pipeline: Option<String>,

    #[command(flatten)]
    pub(super) connect: Connect,
}

impl Lookup {
    /// The name of the record of the run that `text` means. Of runs that share a name, those that no
    /// other run owns come first, then the newest.
    ///
    /// It fails if there is none, if the text may mean several, or if the server does not answer.
    pub(super) async fn record(&self, text: &str) -> Result<String, Failure> {
        let client = self.connect.client()?;
        let finder = Finder {
            place: &self.place,
            pipeline: self.pipeline.as_deref(),
            connect: &self.connect,
        };
        finder.record(&client, text, Several::Newest).await
    }

    /// The record itself.
    pub(super) async fn whole(&self, text: &str) -> Result<pb::Record, Failure> {
        let name = self.record(text).await?;
        let request = pb::GetRecordRequest { name };
        let reply = self.connect.client()?.rpc().get_record(request).await;
        let record = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(record.into_inner())
    }
}

/// What is done where several runs have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Several {
    /// The newest is taken, with a note.
    Newest,
    /// The command ends and lists them.
    Refused,
}

/// Looks up runs.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    pub(super) place: &'a Place,
    /// Pipeline of the runs that `@` counts.
    pub(super) pipeline: Option<&'a str>,
    pub(super) connect: &'a Connect,
}

impl Finder<'_> {
    /// The name of the record of the run that `text` means.
    pub(super) async fn record(
        &self,
        client: &Client,
        text: &str,
        several: Several,
    ) -> Result<String, Failure> {
        match Reference::of(text)? {
            Reference::Record(name) => Ok(name),
            Reference::Back { nth, failed } => self.back(client, text, nth, failed).await,
            Reference::Named { namespace, name } => {
                let parent = namespace.as_deref().unwrap_or_else(|| self.place.parent());
                let found = self.named(client, parent, &name).await?;
                if let Some(found) = chosen(&name, found, several)? {
                    return Ok(found);
                }
                let place = match &namespace {
                    Some(namespace) => format!("in namespace {namespace}"),
                    None => self.place.said(),
                };
                if begins_uid(&name) {
                    return self.begun(client, parent, &name, &place).await;
                }
                Err(Failure::missing(format!("no run `{name}` {place}")))
            }
        }
    }

    /// The run so many runs back.
    async fn back(
        &self,
        client: &Client,
        text: &str,
        nth: u32,
        failed: bool,
    ) -> Result<String, Failure> {
        let pipeline = self
            .pipeline
            .map(|name| format!("run.pipeline == {}", quoted(name)));
        let request = ListRunsRequest {
            parent: self.place.within(None),
            filter: pipeline.unwrap_or_default(),
            query: String::from(if failed { "is:top failed" } else { "is:top" }),
            page_size: i32::try_from(nth).unwrap_or(i32::MAX),
            ..ListRunsRequest::default()
        };
        let mut runs = self.rows(client, request).await?;
        let found = runs.len();
        match runs.pop().filter(|_| found == nth as usize) {
            Some(run) => {
                output::note(&format!("{text} is {}", called(&run)));
                Ok(run.record)
            }
            None => {
                let what = if failed { "failed runs" } else { "runs" };
                let of = self.pipeline.map(|name| format!(" of pipeline {name}"));
                let (of, place) = (of.unwrap_or_default(), self.place.said());
                let found = match found {
                    0 => format!("no {what}{of}"),
                    1 => format!("only 1 run{of}"),
                    found => format!("only {found} {what}{of}"),
                };
                Err(Failure::missing(format!("`{text}`: {found} {place}")))
            }
        }
    }

    /// The runs of a name or a whole UID, newest first, with their payloads.
    async fn named(
        &self,
        client: &Client,
        parent: &str,
        name: &str,
    ) -> Result<Vec<pb::Record>, Failure> {
        let literal = quoted(name);
        let filter = format!(
            "(data.metadata.name == {literal} || data.metadata.uid == {literal}) && {}",
            run_filter()
        );
        let request = pb::ListRecordsRequest {
            parent: format!("{parent}/results/-"),
            filter,
            page_size: CANDIDATES,
            ..pb::ListRecordsRequest::default()
        };
        let reply = client.rpc().list_records(request).await;
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(reply.into_inner().records)
    }

    /// The run whose UID begins so.
    async fn begun(
        &self,
        client: &Client,
        parent: &str,
        name: &str,
        place: &str,
    ) -> Result<String, Failure> {
        let request = ListRunsRequest {
            parent: format!("{parent}/results/-"),
            filter: format!("data.metadata.uid.startsWith({})", quoted(name)),
            page_size: CANDIDATES,
            ..ListRunsRequest::default()
        };
        let mut runs = self.rows(client, request).await?;
        match runs.as_mut_slice() {
            [] => Err(Failure::missing(format!(
                "no run `{name}` {place}, and no UID begins so"
            ))),
            [run] => Ok(std::mem::take(&mut run.record)),
            runs => {
                let lines = runs.iter().map(|run| (called(run), run.uid.as_str()));
                Err(ambiguous(
                    &format!("several UIDs begin with `{name}`"),
                    lines,
                ))
            }
        }
    }

    async fn rows(
        &self,
        client: &Client,
        request: ListRunsRequest,
    ) -> Result<Vec<RunRow>, Failure> {
        let reply = client.runs().list_runs(request).await;
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(reply.into_inner().runs)
    }
}

/// The record that is meant among runs of one name or UID; none if there are none.
fn chosen(name: &str, found: Vec<pb::Record>, several: Several) -> Result<Option<String>, Failure> {
    let found = found.into_iter().map(Candidate::of);
    let (mut found, by_uid): (Vec<_>, Vec<_>) = found.partition(|run| run.name == name);
    if found.is_empty() {
        return Ok(by_uid.into_iter().next().map(|run| run.record));
    }
    // Stable, so that the newest stays first.
    found.sort_by_key(|run| run.is_owned);
    let Some(first) = found.first() else {
        return Ok(None);
    };
    let same = |run: &&Candidate| several == Several::Refused || run.is_owned == first.is_owned;
    let others: Vec<_> = found.iter().filter(same).collect();
    let elsewhere = others.iter().any(|run| run.namespace != first.namespace);
    if others.len() > 1 {
        let what = format!("several runs are called `{name}`");
        if several == Several::Refused || elsewhere {
            let lines = others.iter().map(|run| {
                let called = format!("{}/{name}", run.namespace);
                (called, run.uid.as_str())
            });
            return Err(ambiguous(&what, lines));
        }
        output::note(&format!(
            "{what}; this is the newest (give a UID for another)"
        ));
    }
    Ok(Some(first.record.clone()))
}

/// A run that may be meant.
#[derive(Debug)]
struct Candidate {
    record: String,
    name: String,
    namespace: String,
    uid: String,
    is_owned: bool,
}

impl Candidate {
    fn of(record: pb::Record) -> Self {
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value).unwrap_or_default();
        let view = View::new(&object);
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            name: text(view.name()),
            namespace: text(view.namespace()),
            uid: text(view.uid()),
            is_owned: view.is_owned(),
            record: record.name,
        }
    }
}

/// A run as people call it.
fn called(run: &RunRow) -> String {
    match run.namespace.as_str() {
        "" => run.name.clone(),
        namespace => format!("{namespace}/{}", run.name),
    }
}

/// Says that a text means several runs, each with its name and UID.
fn ambiguous<'a>(what: &str, runs: impl Iterator<Item = (String, &'a str)>) -> Failure {
    let lines: Vec<_> = runs
        .map(|(name, uid)| format!("\n  {uid}  {name}"))
        .collect();
    Failure::usage(format!("{what}; give the UID of one:{}", lines.concat()))
}
