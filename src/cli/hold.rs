//! `hindsight hold`: adds, removes and lists holds, which keep results from retention.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use hindsight_config::{Span, Value as _};
use hindsight_proto::{
    names::{RecordName, ResultName},
    v1 as pb,
};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    connect::Connect,
    failure::Failure,
    output,
    place::Place,
    run_ref::{Finder, RUN, Several},
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};

/// How many holds are asked for at once.
const PAGE: i32 = 1_000;

/// Keep runs from being deleted by retention
///
/// A hold is of a result, with all runs and logs in it. What is held stays until the hold is removed or
/// expires, whatever the policies of retention say; `hindsight delete` deletes it nevertheless.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight hold add shop/results/5d5f --reason 'audit of 2026'
  hindsight hold list -n shop
  hindsight hold remove shop/results/5d5f"))]
pub(super) struct HoldCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Add(Add),
    Remove(Remove),
    List(List),
}

/// Hold the result of a run
#[derive(Debug, Args)]
struct Add {
    #[command(flatten)]
    of: Of,

    /// Why it is held
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Time after which the hold ends by itself, such as `90d`
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<String>,
}

/// End the hold of the result of a run
#[derive(Debug, Args)]
struct Remove {
    #[command(flatten)]
    of: Of,
}

/// Show what is held, why and until when
#[derive(Debug, Args)]
struct List {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    connect: Connect,
}

/// Which result is meant.
#[derive(Debug, Args)]
struct Of {
    /// Run, or the full name of a result
    run: String,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    connect: Connect,
}

impl Of {
    async fn result(&self) -> Result<String, Failure> {
        if self.run.parse::<ResultName>().is_ok() {
            return Ok(self.run.clone());
        }
        let finder = Finder {
            place: &self.place,
            pipeline: None,
            connect: &self.connect,
        };
        let client = self.connect.client()?;
        let record = finder.record(&client, &self.run, Several::Refused).await?;
        let record: RecordName = record
            .parse()
            .map_err(|error| Failure::other(format!("the server sent the name `{error}`")))?;
        Ok(record.result().to_string())
    }
}

/// A hold, as JSON shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    result: String,
    reason: String,
    caller: String,
    created: Option<Timestamp>,
    expires: Option<Timestamp>,
}

impl Shown {
    fn of(hold: pb::Hold) -> Self {
        Self {
            result: hold.result,
            reason: hold.reason,
            caller: hold.caller,
            created: hold.create_time.and_then(output::time),
            expires: hold.expire_time.and_then(output::time),
        }
    }
}

impl HoldCommand {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        match &self.what {
            What::Add(add) => add.run().await,
            What::Remove(remove) => remove.run().await,
            What::List(list) => list.run().await,
        }
    }
}

impl Add {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let end = match &self.time {
            None => None,
            Some(text) => {
                let span = Span::<1_000>::read(text);
                let span = span.map_err(|bad| Failure::usage(format!("--for {bad}")))?;
                let end = SystemClock.now().checked_add(span.signed());
                let end = end.map_err(|_late| Failure::usage("--for is too long"))?;
                Some(prost_types::Timestamp {
                    seconds: end.as_second(),
                    nanos: end.subsec_nanosecond(),
                })
            }
        };
        let request = pb::CreateHoldRequest {
            result: self.of.result().await?,
            reason: self.reason.clone(),
            expire_time: end,
        };
        let reply = self.of.connect.client()?.holds().create_hold(request).await;
        let hold = reply.map_err(|status| self.of.connect.failure(&status))?;
        output::say(&format!("{} held", hold.into_inner().result))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Remove {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let result = self.of.result().await?;
        let request = pb::DeleteHoldRequest {
            result: result.clone(),
        };
        let reply = self.of.connect.client()?.holds().delete_hold(request).await;
        reply.map_err(|status| self.of.connect.failure(&status))?;
        output::say(&format!("{result} is not held any more"))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let mut holds = self.connect.client()?.holds();
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let request = pb::ListHoldsRequest {
                parent: self.place.parent().to_owned(),
                page_size: PAGE,
                page_token: token,
            };
            let reply = holds.list_holds(request).await;
            let reply = reply.map_err(|status| self.connect.failure(&status))?;
            let reply = reply.into_inner();
            all.extend(reply.holds.into_iter().map(Shown::of));
            token = reply.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        match self.output {
            Form::Json | Form::Yaml => {
                output::document(self.look.out(), self.output == Form::Yaml, &all)?;
            }
            form => {
                if all.is_empty() && form != Form::Csv {
                    output::note(&format!("nothing is held {}", self.place.said()));
                }
                let mut table = Table::new(columns(), &self.look, false)?;
                let time =
                    |time: Option<Timestamp>| time.map_or_else(String::new, |t| t.to_string());
                for hold in all {
                    table.row(vec![
                        Value::of(hold.result),
                        Value::of(hold.reason),
                        Value::of(hold.caller),
                        Value::of(time(hold.created)),
                        Value::of(time(hold.expires)),
                    ]);
                }
                table.print(form == Form::Csv, &self.look)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::usual("result", Cut::Middle),
        Column::usual("reason", Cut::Middle),
        Column::usual("caller", Cut::Middle),
        Column::usual("created", Cut::Never),
        Column::usual("expires", Cut::Never),
    ]
}
