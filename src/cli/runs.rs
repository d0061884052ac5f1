//! The command `hindsight runs`: runs found by words.

mod asked;
mod lines;
mod print;
mod row;
mod times;
mod watch;

use std::{io::Write, process::ExitCode};

use clap::Args;
use hindsight_client::Runs as RunsRpc;
use hindsight_filter::words::Now;
use hindsight_proto::v1::{ListRunsRequest, RunRow};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::tz::TimeZone;

pub(super) use self::{asked::Words, lines::Lines};
use self::{
    print::Printer,
    row::Column,
    times::{TimeForm, Times},
};
use super::{
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    list::{Asked, Form},
    output,
    pager::Paging,
    place::Place,
    terminal::{ColorWhen, Screen},
};

/// Runs asked for in one call.
const PAGE: usize = 500;
/// Runs counted below a table that does not show all.
const COUNTED: i32 = 500;

/// Find runs by words, such as `failed since:24h`
///
/// WORDS are joined by `and`: a part of a name; `failed` (timeouts, too) `succeeded` `timeout`
/// `cancelled` `running` `waiting` `vanished`; `status:a,b` `pipeline:` `cluster:` `name:` `kind:`
/// `namespace:` `uid:` `reason:` `signature:` `tier:` `label:key=value` `took>10m` `since:24h` `until:2026-03-02` `is:top`
/// `is:child`. Values may begin or end with `*`. `not:` before a word excludes; after `--` also `-`. A
/// text with `==`, `!=`, `&&`, `||`, `(` or `[`, or after `cel:`, is a filter in CEL. Quotes are those
/// of a word, inside those of the shell.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight runs failed since:24h -A
  hindsight runs -n ci -p release --slower-than 10m
  hindsight runs -A not:succeeded is:top -o csv --columns run,outcome,took,label:team

Columns: status run namespace name kind engine pipeline parent cluster reason outcome created started
ended took queue stored updated uid record type message signature attempt label:KEY. Where the output is no
terminal, times are RFC 3339 and lengths of time are in seconds.")]
pub(super) struct Runs {
    /// What runs must match
    words: Vec<String>,

    /// Only runs that failed or timed out
    #[arg(long, conflicts_with = "status")]
    failed: bool,

    /// Only runs of these statuses, between commas
    #[arg(long, value_name = "STATUS,...")]
    status: Option<String>,

    /// Only runs that started then or later: `24h` ago, `2026-03-02`, `today`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only runs that started before that
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Only runs that took longer, such as `10m`
    #[arg(long, value_name = "LENGTH")]
    slower_than: Option<String>,

    /// Only runs of these pipelines, between commas
    #[arg(short, long, value_name = "NAME,...", value_parser = pipelines)]
    pipeline: Option<String>,

    /// Only runs of these kinds, between commas
    #[arg(long, value_name = "KIND,...")]
    kind: Option<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: InCluster,

    #[command(flatten)]
    asked: Asked,

    /// Maximum number of runs to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Print all runs that match
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Print the list, then each run that is stored or changes, until interrupted
    #[arg(short, long, conflicts_with = "order_by")]
    watch: bool,

    /// Print the filter that words and flags make, in CEL, and list nothing
    #[arg(long)]
    show_filter: bool,

    /// Which columns, between commas; see below
    #[arg(long, value_name = "COLUMN,...")]
    columns: Option<String>,

    /// Leave out the line with the names of columns
    #[arg(long)]
    no_headers: bool,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    /// Form of times; on terminals `both`, elsewhere `iso`
    #[arg(long, value_enum)]
    time: Option<TimeForm>,

    /// When to colour
    #[arg(long, value_enum, default_value_t = ColorWhen::Auto)]
    color: ColorWhen,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    connect: Connect,
}

/// Names of pipelines. A colon is in none: `-pipeline:release` is read as `-p ipeline:release`.
fn pipelines(names: &str) -> Result<String, String> {
    match names.contains(':') {
        true => Err(
            "no pipeline has a colon in its name; to leave runs out, write \
                     `not:pipeline:NAME`, or words that begin with `-` after `--`"
                .to_owned(),
        ),
        false => Ok(names.to_owned()),
    }
}

impl Runs {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let zone = match self.time {
            Some(TimeForm::Utc | TimeForm::Iso) => TimeZone::UTC,
            _ => TimeZone::system(),
        };
        let now = Now {
            time: SystemClock.now(),
            zone,
        };
        let filter = self.words().filter(&now)?;
        let filter = self.cluster.filter(&self.place, &filter)?;
        if self.show_filter {
            output::say(&filter)?;
            return Ok(ExitCode::SUCCESS);
        }
        let screen = Screen::of_stdout(self.color);
        let times = Times::new(now, self.time, screen.width.is_some());
        let mut columns = row::columns(self.columns.as_deref(), self.output == Form::Wide)?;
        if self.columns.is_none() && screen.width.is_some() && !self.place.is_everywhere() {
            row::within_one_namespace(&mut columns);
        }
        if self.watch {
            let out = std::io::stdout();
            let printer = Printer::to(out, self.output, columns, screen, times);
            return self
                .watch(filter, printer.without_headers(self.no_headers))
                .await;
        }
        let printer = Printer::to(self.paging.out(), self.output, columns, screen, times);
        let mut printer = printer.without_headers(self.no_headers);
        let request = self.request(filter, printer.columns());
        let mut runs = self.connect.client()?.runs();
        let asked = request.clone();
        let listing = self
            .list(&mut runs, asked, &mut printer, &mut |_| {})
            .await?;
        printer.end()?;
        let is_on_terminal = printer.is_on_terminal();
        // The pager ends before more is said.
        drop(printer);
        let found = listing.found;
        if found == 0 {
            output::note(&format!("no runs found {}", self.place.said()));
        } else if listing.is_cut {
            let of = match is_on_terminal {
                true => self.counted(&mut runs, request).await,
                false => None,
            };
            output::note(&match of {
                Some(of) => format!("{found} of {of} runs: raise --limit, or print --all"),
                None => "there are more runs: raise --limit, or print --all".to_owned(),
            });
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What the command line says of runs.
    fn words(&self) -> Words<'_> {
        let mut words = Words::of(&self.words);
        if self.failed {
            words.flag("--failed", "failed", "");
        }
        for (flag, word, value) in [
            ("--status ", "status:", &self.status),
            ("--since ", "since:", &self.since),
            ("--until ", "until:", &self.until),
            ("--slower-than ", "took>", &self.slower_than),
            ("--pipeline ", "pipeline:", &self.pipeline),
            ("--kind ", "kind:", &self.kind),
        ] {
            if let Some(value) = value {
                words.flag(flag, word, value);
            }
        }
        words.and(&self.asked.rows.filter)
    }

    /// A list of what the filter matches, with the labels that are columns.
    fn request(&self, filter: String, columns: &[Column]) -> ListRunsRequest {
        let label_keys = columns.iter().filter_map(Column::label);
        ListRunsRequest {
            parent: self.cluster.within(&self.place, None),
            filter,
            order_by: self.asked.order_by.clone(),
            label_keys: label_keys.map(str::to_owned).collect(),
            ..ListRunsRequest::default()
        }
    }

    /// Prints runs up to the limit, and shows them to `each`.
    async fn list<W: Write>(
        &self,
        runs: &mut RunsRpc,
        mut request: ListRunsRequest,
        printer: &mut Printer<W>,
        each: &mut (dyn FnMut(&[RunRow]) + Send),
    ) -> Result<Listing, Failure> {
        let limit = if self.all {
            usize::MAX
        } else {
            self.limit as usize
        };
        let mut found = 0;
        loop {
            let page = PAGE.min(limit - found);
            request.page_size = i32::try_from(page).unwrap_or(i32::MAX);
            let reply = runs
                .list_runs(self.asked.rows.request(request.clone())?)
                .await;
            let reply = reply.map_err(|status| self.connect.failure(&status))?;
            let reply = reply.into_inner();
            found += reply.runs.len();
            each(&reply.runs);
            printer.page(reply.runs)?;
            request.page_token = reply.next_page_token;
            if request.page_token.is_empty() || found >= limit {
                break;
            }
        }
        Ok(Listing {
            found,
            is_cut: !request.page_token.is_empty(),
        })
    }

    /// How many runs match, as in `500+`; nothing if that cannot be said.
    async fn counted(&self, runs: &mut RunsRpc, list: ListRunsRequest) -> Option<String> {
        let request = ListRunsRequest {
            page_size: 1,
            count_up_to: COUNTED,
            label_keys: Vec::new(),
            ..list
        };
        let reply = runs.list_runs(self.asked.rows.request(request).ok()?).await;
        let reply = reply.ok()?.into_inner();
        let more = if reply.more { "+" } else { "" };
        reply.count.map(|count| format!("{count}{more}"))
    }
}

/// What a list printed.
struct Listing {
    found: usize,
    /// Whether there are more runs.
    is_cut: bool,
}

#[cfg(test)]
mod tests {
    use super::pipelines;

    #[test]
    fn a_word_that_excludes_is_not_taken_for_the_flag_of_pipelines() {
        assert_eq!(pipelines("release,nightly*").unwrap(), "release,nightly*");
        let why = pipelines("ipeline:release").unwrap_err();
        assert!(why.contains("`not:pipeline:NAME`"), "{why}");
    }
}
