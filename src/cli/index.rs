//! `hindsight index`.

use std::{num::NonZeroU32, process::ExitCode, time::Instant};

use clap::{ArgMatches, Args, Command, FromArgMatches as _, ValueEnum};
use serde::Serialize;

use super::{
    failure::{Failure, of_store},
    flags_of, output, progress, serve,
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};
use crate::app;
use hindsight_filter::{
    Filter,
    indexed::{Kind, Path},
};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use hindsight_storage::{Error, IndexedPath, Maintenance, resolve::open};

/// Records that are indexed by one transaction.
const BATCH: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

const ABOUT: &str = "Indexes of parts of payloads, for filters that ask for them often

Names, labels, times, reasons and the like are indexed from the beginning. Whatever else filters \
ask of payloads is read from each of them; an index spares that. Servers need no restart, and \
answers stay the same: what an index finds is still judged by the whole filter.";

const EXAMPLES: &str = "Examples:
  hindsight index add 'data.spec.params[name==\"env\"].value'
  hindsight index add data.spec.serviceAccountName
  hindsight index add data.spec.priority --type number
  hindsight index list
  hindsight index remove data.spec.priority

Then ask as before, and see what is used:
  hindsight explain runs -A -f 'data.spec.params.exists(p, p.name == \"env\" && p.value == \"prod\")'";

/// Index a part of every payload, from now on and of what is stored already
///
/// PATH leads from `data`, the payload, by members (`.spec`, `["odd-key"]`), places (`[0]`) and,
/// once, by a text that a member has: `[name=="env"]` are the elements whose name is env. Filters
/// on it use the index when they say the same: `data.spec.params.exists(p, p.name == "env" &&
/// p.value == "prod")`, `data.spec.params.filter(p, p.name == "env")[0].value == "prod"`.
///
/// Servers go on reading and writing meanwhile, and use the index once all is indexed. Should this
/// be interrupted, however hard, the same command goes on where it stopped. The first 128
/// characters of a text are indexed; at most 16 parts can be.
///
/// Exit codes: 0 it is indexed, 1 it was already, or there are too many, 2 PATH or type is wrong,
/// 5 the database is not reachable.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Add {
    /// Which part, such as `data.spec.params[name=="env"].value`
    #[arg(value_name = "PATH")]
    path: String,

    /// Which values of it; others are as if they were not there
    #[arg(long, value_enum, value_name = "TYPE", default_value = "text")]
    r#type: Type,
}

/// Show what is indexed, and whether the index is whole
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct List {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,
}

/// Index a part no more; filters on it read payloads again
///
/// Exit codes: 0 it is gone, 2 PATH is wrong, 3 it was not indexed, 5 the database is not
/// reachable.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Remove {
    /// Which part, as `hindsight index list` shows it
    #[arg(value_name = "PATH")]
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Type {
    /// JSON strings, compared as text
    Text,
    /// JSON numbers, whole or not
    Number,
    /// The JSON values true and false
    Bool,
    /// JSON strings that are RFC 3339 times
    Time,
}

impl From<Type> for Kind {
    fn from(given: Type) -> Self {
        match given {
            Type::Text => Self::Text,
            Type::Number => Self::Number,
            Type::Bool => Self::Bool,
            Type::Time => Self::Time,
        }
    }
}

/// What JSON shows of an index.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    path: String,
    r#type: &'static str,
    state: String,
    added: String,
}

impl Shown {
    fn of(index: &IndexedPath) -> Self {
        Self {
            path: index.path.to_string(),
            r#type: index.kind.name(),
            state: match index.ready {
                true => "ready".to_owned(),
                false => format!("building, {}%", percent(index)),
            },
            added: index.added.to_string(),
        }
    }
}

fn percent(index: &IndexedPath) -> i64 {
    index.done_row.saturating_mul(100) / index.until_row.max(1)
}

/// The command and what it consists of.
pub(super) fn command() -> Command {
    let of_db = |command| flags_of(command, &["db", "objects_url"]);
    Command::new("index")
        .about("Index parts of payloads, for filters that ask for them often")
        .long_about(ABOUT)
        .after_long_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(of_db(Add::augment_args(Command::new("add"))))
        .subcommand(of_db(List::augment_args(Command::new("list"))))
        .subcommand(of_db(Remove::augment_args(Command::new("remove"))))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    match matches.subcommand() {
        Some(("add", sub)) => {
            let given = Add::from_arg_matches(sub).map_err(usage)?;
            let path = path(&given.path)?;
            on(sub, async |base| {
                add(base, &path, given.r#type.into()).await
            })
        }
        Some(("remove", sub)) => {
            let given = Remove::from_arg_matches(sub).map_err(usage)?;
            let path = path(&given.path)?;
            on(sub, async |base| remove(base, &path).await)
        }
        Some((_, sub)) => {
            let given = List::from_arg_matches(sub).map_err(usage)?;
            on(sub, async |base| list(base, &given).await)
        }
        None => Err(Failure::usage("want `add`, `list` or `remove`")),
    }
}

/// The path that a user gave.
fn path(text: &str) -> Result<Path, Failure> {
    let path: Path = text
        .trim()
        .parse()
        .map_err(|error| Failure::usage(format!("`{text}` is no path: {error}")))?;
    if Filter::has_column(&path) {
        return Err(Failure::usage(format!(
            "`{path}` is a column already, so filters on it read no payloads; see \"What is \
             indexed\" in docs/filters.md"
        )));
    }
    Ok(path)
}

/// Does something with the database that is configured.
fn on(
    matches: &ArgMatches,
    work: impl AsyncFnOnce(&dyn Maintenance) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let config = serve::load(matches)?;
    super::runtime()?.block_on(async {
        let options = app::command_options(&config).map_err(|error| of_store(&error))?;
        let opened = open(&config.db.expose(), &options).await;
        let opened = opened.map_err(|error| of_store(&error))?;
        let done = work(&*opened.maintenance).await;
        opened.maintenance.close().await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

async fn add(base: &dyn Maintenance, path: &Path, kind: Kind) -> Result<(), Failure> {
    let failed = |error: Error| of_store(&error);
    let there = base.indexes().await.map_err(failed)?;
    let there = there.into_iter().find(|one| one.path == *path);
    let index = match there {
        Some(one) if one.kind != kind => {
            return Err(Failure::other(format!(
                "`{path}` is indexed as {}; remove that first with `hindsight index remove`",
                one.kind
            )));
        }
        Some(one) if one.ready => {
            return Err(Failure::other(format!("`{path}` is indexed already")));
        }
        Some(one) => {
            output::note(&format!("`{path}` was begun before; going on from there"));
            one
        }
        None => {
            let now = SystemClock.now();
            base.create_index(path, kind, now).await.map_err(failed)?
        }
    };
    let began = Instant::now();
    let rows = index.until_row.saturating_sub(index.done_row);
    let bar = progress::bar("indexed", u64::try_from(rows).unwrap_or(0));
    let mut records = 0;
    loop {
        let filled = base.build_index(index.id, BATCH).await;
        let filled = filled.map_err(|error| {
            bar.finish_and_clear();
            failed(error)
        })?;
        records += filled.records;
        bar.inc(filled.rows);
        if filled.ready {
            break;
        }
    }
    bar.finish_and_clear();
    output::say(&format!(
        "`{path}` ({kind}) is indexed: {records} records in {:.1} s; servers use it within a second",
        began.elapsed().as_secs_f64()
    ))
}

async fn list(base: &dyn Maintenance, given: &List) -> Result<(), Failure> {
    let columns = ["path", "type", "added", "state"];
    let columns = columns.map(|name| Column::usual(name, Cut::Never));
    let mut table = Table::new(columns.to_vec(), &given.look, false)?;
    let all = base.indexes().await.map_err(|e| of_store(&e))?;
    let shown: Vec<Shown> = all.iter().map(Shown::of).collect();
    match given.output {
        Form::Json | Form::Yaml => {
            output::document(given.look.out(), given.output == Form::Yaml, &shown)
        }
        Form::Table | Form::Csv => {
            for one in shown {
                let values = [one.path, one.r#type.to_owned(), one.added, one.state];
                table.row(values.map(Value::of).to_vec());
            }
            if table.is_empty() {
                output::note(
                    "nothing is indexed besides what always is; see `hindsight index add -h`",
                );
            }
            table.print(given.output == Form::Csv, &given.look)
        }
    }
}

async fn remove(base: &dyn Maintenance, path: &Path) -> Result<(), Failure> {
    match base.drop_index(path).await {
        Ok(()) => {}
        Err(Error::Missing(_)) => {
            return Err(Failure::missing(format!(
                "`{path}` is not indexed; `hindsight index list` shows what is"
            )));
        }
        Err(error) => return Err(of_store(&error)),
    }
    base.sweep_indexes(BATCH).await.map_err(|e| of_store(&e))?;
    output::say(&format!("`{path}` is indexed no more"))
}
