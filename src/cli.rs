//! The command line: what is asked, what is printed, which exit code says how it went.

mod all_in_one;
mod archive;
mod backup;
mod caret;
mod cluster;
mod compared;
mod complete;
mod config;
mod confirm;
mod context;
mod copy;
mod cursor;
mod delete;
mod describe;
mod diff;
mod explain;
mod export;
mod failure;
mod flaky;
mod fsck;
mod get;
mod hold;
mod import;
mod index;
mod kubeflow;
mod ledger;
mod list;
mod log_line;
mod log_message;
mod login;
mod logs;
mod man;
mod migrate;
mod open;
mod output;
mod pager;
mod pipelines;
mod place;
mod progress;
mod purge;
mod rerun;
mod retention;
mod run_ref;
mod runs;
mod selection;
mod serve;
mod slow;
mod stats;
mod table;
mod terminal;
mod token;
mod top;
mod when;
mod why;

use std::{io::Write as _, process::ExitCode};

use clap::{
    ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
};

use hindsight_connect::{self as connect, contexts};

use self::failure::Failure;
use crate::config::PROGRAM;

/// Long-term history of what ran on Kubernetes.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 not allowed,
/// 5 server or database not reachable, 6 damage found.
#[derive(Debug, Parser)]
#[command(name = "hindsight", version, help_template = TEMPLATE)]
struct Cli {}

/// The commands by what they are for, most used first. A test compares them with the tree.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Ask a server:
  runs        Find runs by words, such as `failed since:24h`
  list        List runs, records or results [alias: ls]
  get         Show one run, record or result
  describe    Draw a run and everything below it, with times
  why         Say what ended a run, since when, and what changed
  diff        Compare two runs, or a run with the last success before it
  slow        List pipelines that became slower, and the run with which it began
  flaky       List pipelines that succeed and fail on the same code
  stats       Count and time runs in groups
  top         List the pipelines that take most time or fail most
  logs        Print the logs of a run, of the steps that failed if it did
  open        Print the address of the page of a run, or of its record
  rerun       Print a manifest that creates a run again
  export      Write runs, records or logs as lines, for programs and for import
  explain     Explain how a list would be answered, and what it costs
  delete      Delete runs, records or results, with everything below them
  hold        Keep runs from being deleted by retention
  import      Store objects or logs from files, or from the database or server of another archive

Choose a server:
  context     Name servers, with credentials and namespace
  login       Store a token for a server, once that accepts it

Run a server:
  serve       Run the server
  all-in-one  Run server and watcher in one process
  config      Look at the configuration
  token       Make a token for the file of users
  ledger      Show what a running watcher has not stored, and why

Keep a database:
  migrate     Bring the schema up to date
  index       Index parts of payloads, for filters that ask for them often
  fsck        Look for damage
  backup      Copy a SQLite database while it is in use
  restore     Bring back a backup
  copy        Copy a database into another
  pipelines   Move pipelines of Kubeflow between stores, as manifests
  retention   Move old runs to the archive and delete them by policies, or list which
  archive     Verify the archive, or put records back from it
  purge       Delete for good, free pages and object store included

  completion  Print a completion script for a shell
  man         Print the manual page, or write those of all commands
  version     Print the version
  help        Print help of a command

{options}

{after-help}";

#[derive(Debug, Subcommand)]
enum Ask {
    Runs(runs::Runs),
    /// List runs, records or results, newest first
    #[command(visible_alias = "ls")]
    List(list::List),
    /// Explain how a list would be answered: what the database is asked, and what it costs
    Explain(explain::Explain),
    /// Show one run, record or result
    Get(get::Get),
    /// Draw a run and everything below it, with times
    Describe(describe::Describe),
    /// Say what ended a run, since when, and what changed
    Why(why::Why),
    /// Compare two runs, or a run with the last success before it
    Diff(diff::Diff),
    Slow(slow::Slow),
    Flaky(flaky::Flaky),
    /// Count and time runs in groups
    Stats(stats::Stats),
    /// Delete runs, records or results, with everything below them
    Delete(delete::Delete),
    Hold(hold::HoldCommand),
    /// Store objects from files, or from the database or server of another archive
    Import(import::Import),
    Top(top::Top),
    Logs(logs::Logs),
    Open(open::Open),
    Rerun(rerun::Rerun),
    Export(export::Export),
    Man(man::ManCommand),
    Context(context::ContextCommand),
    Login(login::Login),
    /// Print a script that completes this program's commands in a shell
    Completion(Completion),
    #[command(name = "__complete", hide = true)]
    Complete(complete::Complete),
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = complete::INSTALL)]
struct Completion {
    /// Shell for which the script is written
    shell: clap_complete::Shell,
}

/// The whole command tree.
#[must_use]
pub fn command() -> Command {
    let serve = flags(
        Command::new("serve")
            .about("Run the server")
            .long_about(serve::ABOUT)
            .after_long_help(serve::EXAMPLES),
    );
    let serve = kubeflow::flags(serve);
    let migrate = flags_of(
        Command::new("migrate")
            .about("Bring the database's schema up to date")
            .long_about(migrate::ABOUT),
        &["db"],
    );
    let print = flags(
        Command::new("print")
            .about("Print the configuration in effect, and where each value comes from"),
    );
    let docs = Command::new("docs").about("Print the reference of every key, as Markdown");
    let config = Command::new("config")
        .about("Look at the configuration")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(print)
        .subcommand(docs);
    let token = Command::new("token")
        .about("Make a token for the file of users")
        .long_about(token::ABOUT);
    let tekton = copy::TektonResults::augment_args(Command::new("tekton-results"));
    let tekton = flags_of(
        tekton,
        &["db", "objects_url", "objects_above", "logs_redact"],
    );
    let api = import::ResultsApi::augment_args(Command::new("results-api"));
    let kubearchive = import::KubeArchive::augment_args(Command::new("kubearchive"));
    let argo = import::ArgoArchive::augment_args(Command::new("argo-archive"));
    let logs = import::ImportLogs::augment_args(Command::new("logs"));
    Ask::augment_subcommands(keeping(
        Cli::command()
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(serve)
            .subcommand(all_in_one::command())
            .subcommand(migrate)
            .subcommand(config)
            .subcommand(token)
            .subcommand(ledger::command())
            .subcommand(Command::new("version").about("Print the version")),
    ))
    .mut_subcommand("import", |import| {
        // What is not the name of a source is that of a file.
        import
            .subcommand(tekton)
            .subcommand(api)
            .subcommand(kubearchive)
            .subcommand(argo)
            .subcommand(logs)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
    })
}

/// Adds what operators do to a database.
fn keeping(root: Command) -> Command {
    let of_db = |command| flags_of(command, &["db", "objects_url", "objects_keep"]);
    root.subcommand(of_db(fsck::Fsck::augment_args(Command::new("fsck"))))
        .subcommand(of_db(backup::Backup::augment_args(Command::new("backup"))))
        .subcommand(of_db(backup::Restore::augment_args(Command::new(
            "restore",
        ))))
        .subcommand(flags_of(
            copy::Copy::augment_args(Command::new("copy")),
            &["objects_above"],
        ))
        .subcommand(pipelines::command())
        .subcommand(index::command())
        .subcommand(retention::command())
        .subcommand(archive::command())
        .subcommand(flags_of(
            purge::Purge::augment_args(Command::new("purge")),
            &[
                "db",
                "objects_url",
                "objects_keep",
                "archive_url",
                "audit_log",
            ],
        ))
}

/// Runs the program on the arguments of the process, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let matches = command().get_matches();
    let outcome = in_namespace(matches).and_then(|matches| run(&matches));
    match outcome {
        Ok(code) => code,
        Err(failure) => output::tell(&failure),
    }
}

/// The arguments read again with the namespace of the context as the usual one, if that has one.
fn in_namespace(matches: ArgMatches) -> Result<ArgMatches, Failure> {
    let Some(namespace) = connect::namespace(&matches)? else {
        return Ok(matches);
    };
    Ok(with_namespace(command(), &matches, namespace).get_matches())
}

/// The command, in which the one that is meant has another usual namespace.
fn with_namespace(command: Command, matches: &ArgMatches, namespace: String) -> Command {
    match matches.subcommand() {
        Some((name, below)) => {
            command.mut_subcommand(name, |sub| with_namespace(sub, below, namespace))
        }
        None => command.mut_arg("namespace", |arg| arg.default_value(namespace)),
    }
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("serve", sub)) => serve::run(sub),
        Some(("all-in-one", sub)) => all_in_one::run(sub),
        Some(("migrate", sub)) => migrate::run(sub),
        Some(("fsck", sub)) => fsck::run(sub),
        Some(("backup", sub)) => backup::run_backup(sub),
        Some(("restore", sub)) => backup::run_restore(sub),
        Some(("copy", sub)) => copy::run(sub),
        Some(("pipelines", sub)) => pipelines::run(sub),
        Some(("index", sub)) => index::run(sub),
        Some(("retention", sub)) => retention::run(sub),
        Some(("archive", sub)) => archive::run(sub),
        Some(("purge", sub)) => purge::run(sub),
        Some(("import", sub)) if let Some(("tekton-results", sub)) = sub.subcommand() => {
            copy::tekton_results(sub)
        }
        Some(("import", sub)) if let Some(("results-api", sub)) = sub.subcommand() => {
            import::results_api(sub)
        }
        Some(("import", sub)) if let Some(("kubearchive", sub)) = sub.subcommand() => {
            import::kubearchive(sub)
        }
        Some(("import", sub)) if let Some(("argo-archive", sub)) = sub.subcommand() => {
            import::argo(sub)
        }
        Some(("import", sub)) if let Some(("logs", sub)) = sub.subcommand() => import::logs(sub),
        Some(("config", sub)) => config::run(sub),
        Some(("token", _)) => token::run(),
        Some(("version", _)) => {
            output::say(command().render_version().trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("ledger", sub)) => ledger::run(sub),
        _ => ask(matches),
    }
}

/// Adds `--config` and a flag for every key.
fn flags(command: Command) -> Command {
    PROGRAM.add_flags(command, |_| true)
}

/// Adds `--config` and the flags of these keys alone.
fn flags_of(command: Command, names: &[&str]) -> Command {
    PROGRAM.add_flags(command, |key| names.contains(&key.name))
}

/// What commands run on.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| Failure::other(error.to_string()))
}

fn ask(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let ask = Ask::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    runtime()?.block_on(async {
        match ask {
            Ask::Runs(runs) => runs.run().await,
            Ask::List(list) => list.run().await,
            Ask::Explain(explain) => explain.run().await,
            Ask::Get(get) => get.run().await,
            Ask::Describe(describe) => describe.run().await,
            Ask::Why(why) => why.run().await,
            Ask::Diff(diff) => diff.run().await,
            Ask::Slow(slow) => slow.run().await,
            Ask::Flaky(flaky) => flaky.run().await,
            Ask::Stats(stats) => stats.run().await,
            Ask::Delete(delete) => delete.run().await,
            Ask::Hold(hold) => hold.run().await,
            Ask::Import(import) => import.run().await,
            Ask::Top(top) => top.run().await,
            Ask::Logs(logs) => logs.run().await,
            Ask::Open(open) => open.run().await,
            Ask::Rerun(rerun) => rerun.run().await,
            Ask::Export(export) => export.run().await,
            Ask::Man(man) => man.run(command()),
            Ask::Context(context) => context.run(),
            Ask::Login(login) => login.run().await,
            Ask::Complete(complete) => complete.run(command()).await,
            Ask::Completion(Completion { shell }) => {
                let script = complete::script(shell, &mut command());
                std::io::stdout().lock().write_all(&script)?;
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}
