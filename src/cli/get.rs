//! `hindsight get`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hindsight_client::Client;
use hindsight_proto::v1alpha2 as pb;
use hindsight_run::View;
use hindsight_run::json;
use serde::Serialize;

use super::{
    connect::Connect,
    failure::Failure,
    list::run_status,
    output::{self, Format, RecordView, ResultView},
    pager::Paging,
    place::Place,
    run_ref::{Finder, RUN, Several},
};

/// Kinds of things that `hindsight get` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// A run, by its name, UID or as RUN below; the newest of that name
    #[value(alias = "runs")]
    Run,
    /// A record, by its full name
    #[value(alias = "records")]
    Record,
    /// A result, by its full name
    #[value(alias = "results")]
    Result,
}

/// Show one run, record or result
///
/// `get run` prints the object as it was in the cluster, byte for byte with `-o json`; `get record`
/// and `get result` print what the server keeps about it too.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight get run release-42 -n shop -o yaml
  hindsight get record shop/results/5d5f/records/5d5f -o json
  hindsight get result shop/results/5d5f"))]
pub(super) struct Get {
    /// Whether the name is that of a run, record or result
    #[arg(value_enum)]
    what: What,

    /// Name of the run, record or result
    name: String,

    #[command(flatten)]
    place: Place,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    connect: Connect,
}

impl Get {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let client = self.connect.client()?;
        let mut rpc = client.rpc();
        let failure = |status: tonic::Status| self.connect.failure(&status);
        match self.what {
            What::Run => {
                let record = self.find_run(&client).await?;
                self.print_run(record)?;
            }
            What::Record => {
                let request = pb::GetRecordRequest {
                    name: self.name.clone(),
                };
                let record = rpc.get_record(request).await.map_err(failure)?.into_inner();
                self.print_record(record)?;
            }
            What::Result => {
                let request = pb::GetResultRequest {
                    name: self.name.clone(),
                };
                let result = rpc.get_result(request).await.map_err(failure)?.into_inner();
                self.print_result(result)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn find_run(&self, client: &Client) -> Result<pb::Record, Failure> {
        let finder = Finder {
            place: &self.place,
            pipeline: None,
            connect: &self.connect,
        };
        let name = finder.record(client, &self.name, Several::Newest).await?;
        let reply = client.rpc().get_record(pb::GetRecordRequest { name }).await;
        let record = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(record.into_inner())
    }

    fn print_run(&self, record: pb::Record) -> Result<(), Failure> {
        let data = record.data.clone().unwrap_or_default();
        match self.output {
            Format::Json => output::bytes(&mut self.paging.out(), &data.value),
            Format::Yaml => {
                let object = json::parse(&data.value).map_err(|error| {
                    Failure::other(format!("the stored run is no JSON: {error}"))
                })?;
                output::document(self.paging.out(), true, &object)
            }
            Format::Table | Format::Wide | Format::Name => self.print_record(record),
        }
    }

    fn print_record(&self, record: pb::Record) -> Result<(), Failure> {
        match self.output {
            Format::Json | Format::Yaml => return self.document(&RecordView::from(record)),
            Format::Name => return output::say(&record.name),
            Format::Table | Format::Wide => {}
        }
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value).unwrap_or_default();
        let view = View::new(&object);
        let time = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
        let closed = view.closed().map(|closed| closed.reason);
        let message = closed.or(view.finish().message);
        let mut facts = vec![
            ("Record", Some(record.name)),
            ("Type", Some(data.r#type)),
            ("Object", view.name().map(str::to_owned)),
            ("Namespace", view.namespace().map(str::to_owned)),
            ("Pipeline", view.pipeline().map(str::to_owned)),
            ("Started", time(view.started())),
            ("Ended", time(view.ended())),
            ("Duration", Some(output::took(view.started(), view.ended()))),
            ("Message", message.map(str::to_owned)),
            ("Payload", Some(format!("{} bytes", data.value.len()))),
            ("Stored", time(record.create_time.and_then(output::time))),
            ("Updated", time(record.update_time.and_then(output::time))),
        ];
        if self.output == Format::Wide {
            facts.extend([("UID", Some(record.uid)), ("Etag", Some(record.etag))]);
        }
        facts.push(("Status", Some(run_status(&view))));
        print(facts, &self.paging)
    }

    fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        output::document(self.paging.out(), self.output == Format::Yaml, document)
    }

    fn print_result(&self, result: pb::Result) -> Result<(), Failure> {
        match self.output {
            Format::Json | Format::Yaml => return self.document(&ResultView::from(result)),
            Format::Name => return output::say(&result.name),
            Format::Table | Format::Wide => {}
        }
        let time = |time: Option<prost_types::Timestamp>| {
            time.and_then(output::time).map(|time| time.to_string())
        };
        let mut facts = vec![
            ("Result", Some(result.name)),
            ("Stored", time(result.create_time)),
            ("Updated", time(result.update_time)),
        ];
        if self.output == Format::Wide {
            facts.extend([("UID", Some(result.uid)), ("Etag", Some(result.etag))]);
        }
        for (key, value) in &result.annotations {
            facts.push(("Annotation", Some(format!("{key} = {value}"))));
        }
        if let Some(summary) = &result.summary {
            facts.extend([
                ("About", Some(summary.record.clone())),
                ("Type", Some(summary.r#type.clone())),
                ("Started", time(summary.start_time)),
                ("Ended", time(summary.end_time)),
                ("Status", Some(output::status_name(summary))),
            ]);
        }
        print(facts, &self.paging)
    }
}

fn print(facts: Vec<(&'static str, Option<String>)>, paging: &Paging) -> Result<(), Failure> {
    let rows: Vec<_> = facts
        .into_iter()
        .filter_map(|(name, value)| Some(vec![format!("{name}:"), value?]))
        .collect();
    output::facts(&rows, paging)
}
