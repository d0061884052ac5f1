//! `hindsight delete`.

use std::{collections::HashSet, process::ExitCode};

use clap::{Args, ValueEnum};
use hindsight_client::{Client, Rpc};
use hindsight_proto::{
    names::{RecordName, ResultName},
    v1alpha2 as pb,
};
use serde_json::Value;

use super::{
    confirm::confirm,
    connect::Connect,
    failure::Failure,
    output,
    place::Place,
    run_ref::{Finder, RUN, Several},
};
use crate::import::Object;

/// Kinds of things that `hindsight delete` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Runs, each by its name, UID or as RUN below
    #[value(alias = "runs")]
    Run,
    /// Records, by their full names
    #[value(alias = "records")]
    Record,
    /// Results with all their records, by their full names
    #[value(alias = "results")]
    Result,
}

/// Delete runs, records or results, with everything below them
///
/// Below a run are the runs that it owns, as its task runs, and the result that holds nothing else;
/// below a result are its records. A name that cannot be deleted does not keep the others; the exit
/// code is that of the first. What is deleted is gone for good: asks first on a terminal; elsewhere
/// --yes is needed. What a file or a backup of the database still holds is in docs/secure.md.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight delete run release-40 -n shop --yes
  hindsight delete record shop/results/5d5f/records/77aa --yes
  hindsight delete result shop/results/5d5f --yes --ignore-not-found"))]
pub(super) struct Delete {
    /// Whether the names are those of runs, records or results
    #[arg(value_enum)]
    what: What,

    /// Names of runs; full names of records and results
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    place: Place,

    /// Delete without asking for confirmation
    #[arg(short, long)]
    yes: bool,

    /// Do not fail if a name does not exist
    #[arg(long)]
    ignore_not_found: bool,

    #[command(flatten)]
    connect: Connect,
}

/// Records asked for in one call.
const PAGE: i32 = 500;

/// What is to be deleted by one call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Record(String),
    Result(String),
}

impl Target {
    fn name(&self) -> &str {
        match self {
            Self::Record(name) | Self::Result(name) => name,
        }
    }
}

impl Delete {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let client = self.connect.client()?;
        let mut rpc = client.rpc();
        let mut failed = None;
        let mut targets = Vec::new();
        for name in &self.names {
            match self.targets(&client, name).await {
                Ok(found) => targets.extend(found),
                Err(failure) => self.note(name, failure, &mut failed)?,
            }
        }
        self.confirm(&targets)?;
        for target in &targets {
            let name = target.name().to_owned();
            let answer = match target {
                Target::Record(_) => rpc.delete_record(pb::DeleteRecordRequest { name }).await,
                Target::Result(_) => rpc.delete_result(pb::DeleteResultRequest { name }).await,
            };
            match answer {
                Ok(_) => output::say(&format!("{} deleted", target.name()))?,
                Err(status) => {
                    let failure = self.connect.failure(&status);
                    self.note(target.name(), failure, &mut failed)?;
                }
            }
        }
        // What went wrong was said beside its name.
        Ok(failed.map_or(ExitCode::SUCCESS, ExitCode::from))
    }

    /// Says why a name was not deleted and goes on, unless the server is not there.
    fn note(&self, name: &str, failure: Failure, failed: &mut Option<u8>) -> Result<(), Failure> {
        if failure.is_missing() && self.ignore_not_found {
            output::note(&format!("{name} does not exist"));
            return Ok(());
        }
        if failure.is_unreachable() {
            return Err(failure);
        }
        failed.get_or_insert(failure.code());
        output::note(&format!("{name} was not deleted: {failure}"));
        Ok(())
    }

    /// What is to be deleted for a name.
    async fn targets(&self, client: &Client, name: &str) -> Result<Vec<Target>, Failure> {
        match self.what {
            What::Record => return Ok(vec![Target::Record(name.to_owned())]),
            What::Result => return Ok(vec![Target::Result(name.to_owned())]),
            What::Run => {}
        }
        let finder = Finder {
            place: &self.place,
            pipeline: None,
            connect: &self.connect,
        };
        let found = finder.record(client, name, Several::Refused).await?;
        let mut rpc = client.rpc();
        let request = pb::GetRecordRequest { name: found };
        let run = rpc.get_record(request).await;
        let run = run
            .map_err(|status| self.connect.failure(&status))?
            .into_inner();
        let parsed: RecordName = run
            .name
            .parse()
            .map_err(|error| Failure::other(format!("the server sent the name `{error}`")))?;
        let siblings = self.records_of(&mut rpc, parsed.result()).await?;
        let below = below(&run, &siblings);
        // Events and logs of a run go with the result; they own nothing and are owned by no run.
        let is_of_run = |record: &pb::Record| {
            below.contains(&record.name) || !is_run(record) || record.name == run.name
        };
        if siblings.iter().all(is_of_run) {
            return Ok(vec![Target::Result(parsed.result().to_string())]);
        }
        Ok(below.into_iter().map(Target::Record).collect())
    }

    /// All records of a result.
    async fn records_of(
        &self,
        rpc: &mut Rpc,
        result: &ResultName,
    ) -> Result<Vec<pb::Record>, Failure> {
        let (mut records, mut token) = (Vec::new(), String::new());
        loop {
            let request = pb::ListRecordsRequest {
                parent: result.to_string(),
                page_size: PAGE,
                page_token: token,
                ..pb::ListRecordsRequest::default()
            };
            let reply = rpc.list_records(request).await;
            let reply = reply
                .map_err(|status| self.connect.failure(&status))?
                .into_inner();
            records.extend(reply.records);
            token = reply.next_page_token;
            if token.is_empty() {
                return Ok(records);
            }
        }
    }

    fn confirm(&self, targets: &[Target]) -> Result<(), Failure> {
        if self.yes || targets.is_empty() {
            return Ok(());
        }
        let names = targets.iter().map(|target| match target {
            Target::Record(name) => format!("{name}\n"),
            Target::Result(name) => format!("{name}, with all its records\n"),
        });
        let question = names.chain(["Delete these?".to_owned()]);
        confirm(&question.collect::<String>(), "nothing was deleted")
    }
}

/// Whether a record is of a run, and not of what Tekton Results keeps beside runs.
fn is_run(record: &pb::Record) -> bool {
    let data_type = record.data.as_ref().map_or("", |data| data.r#type.as_str());
    !data_type.starts_with("results.tekton.dev/")
}

/// The names of a run and of the runs that it owns, over however many generations.
fn below(run: &pb::Record, records: &[pb::Record]) -> HashSet<String> {
    let object = |record: &pb::Record| {
        let data = record.data.clone().unwrap_or_default();
        Object::exact(data.value.to_vec()).map_or(Value::Null, |object| object.value)
    };
    let uid = |object: &Value| object.pointer("/metadata/uid")?.as_str().map(str::to_owned);
    let mut uids: HashSet<String> = uid(&object(run)).into_iter().collect();
    let mut names = HashSet::from([run.name.clone()]);
    let all: Vec<_> = records
        .iter()
        .map(|record| (record, object(record)))
        .collect();
    loop {
        let before = names.len();
        for (record, object) in &all {
            let owners = object.pointer("/metadata/ownerReferences");
            let owners = owners.and_then(Value::as_array).into_iter().flatten();
            let mut owners = owners.filter_map(|owner| owner.get("uid")?.as_str());
            if owners.any(|owner| uids.contains(owner)) && names.insert(record.name.clone()) {
                uids.extend(uid(object));
            }
        }
        if names.len() == before {
            return names;
        }
    }
}
