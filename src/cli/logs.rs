//! The command `hindsight logs`: lines of the containers of a run.

mod kubectl;
mod print;
mod wanted;

use std::process::ExitCode;

use clap::Args;
use hindsight_client::Client;
use hindsight_logs::Pattern;
use hindsight_proto::v1::{
    DescribeLogRequest, GetRunTreeRequest, ReadLogRequest, ReadLogResponse, RunTree,
    run_node::Outcome,
};
use hindsight_run::{View, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::{Code, Status};

pub(super) use self::print::shown;
use self::{
    print::{Form, Printer},
    wanted::{Source, sources},
};
use super::{
    failure::Failure,
    output,
    pager::Paging,
    run_ref::{Lookup, RUN},
    when::When,
};
use hindsight_filter::model::{LogName, RecordName};
use hindsight_runtime::clock::{Clock as _, SystemClock};

/// How often a run that goes on is asked which containers it has.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Print the logs of a run
///
/// Of a run that failed, the logs of the steps that failed; of any other, all of them, task by task in the order
/// in which they began. What steers a terminal is escaped, and colours are left out. Where no log is
/// stored, a command of kubectl is printed that shows it while the pods of the run exist.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight logs release-42 -n shop
  hindsight logs @last-failed -n shop --tail 100
  hindsight logs shop/release-42 --all --grep 'error|warning' --timestamps"))]
pub(super) struct Logs {
    /// Run whose logs are wanted
    run: String,

    /// Every step, also of a run that failed
    #[arg(short, long)]
    all: bool,

    /// Only this step or container; may be given several times
    #[arg(short, long = "step", visible_alias = "container", value_name = "NAME")]
    steps: Vec<String>,

    /// Only the last lines of each container
    #[arg(short, long, value_name = "LINES", value_parser = clap::value_parser!(u32).range(1..))]
    tail: Option<u32>,

    /// Only lines written since a time, such as 10m, 2h or 2026-03-02T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    since: Option<When>,

    /// Only lines that match a regular expression; --tail and --since count before it
    #[arg(short, long, value_name = "PATTERN")]
    grep: Option<String>,

    /// Letters of either case are the same to --grep
    #[arg(short, long, requires = "grep")]
    ignore_case: bool,

    /// Wait for lines to come, until the run has ended
    #[arg(short, long)]
    follow: bool,

    /// When each line was written, before it
    #[arg(long)]
    timestamps: bool,

    /// Task and step before each line: always, never, or where there are several
    #[arg(long, value_enum, default_value_t = Prefix::Auto, value_name = "WHEN")]
    prefix: Prefix,

    /// The bytes as they are; not to a terminal
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    lookup: Lookup,
}

/// When lines have their task and step before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Prefix {
    Auto,
    Always,
    Never,
}

impl Logs {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        if self.raw && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            return Err(Failure::usage(
                "--raw may hold what steers a terminal; send it to a file or a program",
            ));
        }
        let pattern = self
            .grep
            .as_ref()
            .map(|text| Pattern::new(text, true, self.ignore_case));
        let pattern = pattern.transpose();
        let pattern = pattern.map_err(|wrong| Failure::usage(format!("--grep {wrong}")))?;
        let name = self.lookup.record(&self.run).await?;
        let client = self.lookup.connect.client()?;
        let tree = self.tree(&client, &name).await?;
        let wanted = sources(&tree, &self.steps, self.all || self.follow);
        let has_prefix = match self.prefix {
            Prefix::Always => true,
            Prefix::Never => false,
            Prefix::Auto => !self.raw,
        };
        let form = Form {
            timestamps: self.timestamps,
            prefix: has_prefix,
            raw: self.raw,
            pattern,
        };
        let printed = match self.follow {
            true => self.follow(&client, &name, wanted, form).await?,
            false => self.print(&client, &wanted, form).await?,
        };
        if printed == 0 {
            return self.nothing(&client, &name).await;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn tree(&self, client: &Client, name: &str) -> Result<RunTree, Failure> {
        let request = GetRunTreeRequest {
            name: name.to_owned(),
            steps: true,
            brief: false,
        };
        let tree = client.runs().get_run_tree(request).await;
        let tree = tree.map_err(|status| self.lookup.connect.failure(&status))?;
        Ok(tree.into_inner())
    }

    fn request(&self, source: &Source) -> Result<ReadLogRequest, Failure> {
        let since = self
            .since
            .map(|since| since.time("--since", SystemClock.now()))
            .transpose()?;
        let record = source.record.parse::<RecordName>();
        let record = record.map_err(|error| Failure::other(error.to_string()))?;
        Ok(ReadLogRequest {
            name: LogName::from(record).to_string(),
            containers: source.containers.clone(),
            tail: self.tail.map_or(0, i64::from),
            since: since.map(|since| prost_types::Timestamp {
                seconds: since.as_second(),
                nanos: since.subsec_nanosecond(),
            }),
            follow: self.follow,
            ..ReadLogRequest::default()
        })
    }

    /// Prints what is stored; says how many lines were looked at.
    async fn print(&self, client: &Client, wanted: &[Source], form: Form) -> Result<u64, Failure> {
        let mut printer = Printer::new(self.paging.out(), form);
        let mut count = 0;
        for source in wanted {
            let opened = client.logs().read_log(self.request(source)?).await;
            let mut stream = match opened {
                Ok(opened) => opened.into_inner(),
                Err(status) if status.code() == Code::NotFound => continue,
                Err(status) => return Err(self.lookup.connect.failure(&status)),
            };
            loop {
                let message = stream.message().await;
                let message = message.map_err(|status| self.lookup.connect.failure(&status))?;
                let Some(message) = message else { break };
                count += printer.lines(&source.task, message)?;
            }
        }
        Ok(count)
    }

    /// Prints what is stored and what comes, of all containers at once, until the run has ended.
    async fn follow(
        &self,
        client: &Client,
        name: &str,
        mut wanted: Vec<Source>,
        form: Form,
    ) -> Result<u64, Failure> {
        let mut printer = Printer::new(std::io::stdout(), form);
        let (sender, mut lines) = mpsc::channel::<(String, ReadLogResponse)>(64);
        let (mut reads, mut known, mut count) = (JoinSet::new(), Vec::new(), 0);
        let mut is_over = false;
        let mut again = tokio::time::interval(AGAIN);
        loop {
            for source in wanted.drain(..) {
                if known.contains(&source.record) {
                    continue;
                }
                known.push(source.record.clone());
                let (request, sender) = (self.request(&source)?, sender.clone());
                reads.spawn(read(client.clone(), request, source.task, sender));
            }
            tokio::select! {
                line = lines.recv() => {
                    let Some((task, message)) = line else { return Ok(count) };
                    count += printer.lines(&task, message)?;
                    printer.flush()?;
                }
                Some(ended) = reads.join_next(), if !reads.is_empty() => {
                    if let Ok(Err(status)) = ended {
                        return Err(self.lookup.connect.failure(&status));
                    }
                }
                _ = again.tick(), if !is_over => {
                    let tree = self.tree(client, name).await?;
                    let root = tree.nodes.first();
                    is_over = root.is_none_or(|root| root.outcome() != Outcome::Unknown);
                    wanted = sources(&tree, &self.steps, true);
                }
            }
            if is_over && reads.is_empty() && wanted.is_empty() {
                while let Ok((task, message)) = lines.try_recv() {
                    count += printer.lines(&task, message)?;
                }
                return Ok(count);
            }
        }
    }

    /// Says where the logs are, if nowhere here.
    async fn nothing(&self, client: &Client, name: &str) -> Result<ExitCode, Failure> {
        let record = name.parse::<RecordName>();
        let record = record.map_err(|error| Failure::other(error.to_string()))?;
        let request = DescribeLogRequest {
            name: LogName::from(record).to_string(),
            only_stored: true,
        };
        let told = client.logs().describe_log(request).await;
        let link = told.map(|told| told.into_inner().link).unwrap_or_default();
        if !link.is_empty() {
            output::say(&link)?;
            output::note("no such log is here; this page shows it");
            return Ok(ExitCode::SUCCESS);
        }
        let record = self.lookup.whole(&self.run).await?;
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value).unwrap_or_default();
        match kubectl::command(&View::new(&object)) {
            Ok(command) => {
                output::say(&command)?;
                output::note(
                    "no such log is stored; this shows it while the pods of the run exist",
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(why) => Err(Failure::missing(format!(
                "no such log is stored, and {why}"
            ))),
        }
    }
}

/// Reads one log until its end.
async fn read(
    client: Client,
    request: ReadLogRequest,
    task: String,
    sender: mpsc::Sender<(String, ReadLogResponse)>,
) -> Result<(), Status> {
    let mut stream = client.logs().read_log(request).await?.into_inner();
    while let Some(message) = stream.message().await? {
        if sender.send((task.clone(), message)).await.is_err() {
            break;
        }
    }
    Ok(())
}
