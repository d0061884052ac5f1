//! `hindsight-watcher release`: takes finalizers off, before the watcher is uninstalled.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::{Arg, ArgAction, ArgMatches, Command};
use hindsight_config::{Problems, Sources};
use hindsight_run::{Kind, Kinds};

use crate::{
    config::{Launch, PROGRAM},
    release::{Outcome, Summary, Wish, release},
};
use hindsight_runtime::clock::SystemClock;

/// Keys of the configuration that count here as well.
const KEYS: [&str; 3] = ["kubeconfig", "namespace", "writes_per_second"];

const MORE: &str =
    "Stop the watcher first: one that runs with --finalizers puts them on again. Runs \
that are being deleted go at once, stored or not; others stay as they are. All kinds that the \
watcher knows are looked at, and those that --config declares.

Each run is a line on standard output, with the finalizers that came off.

Exit codes: 0 if no such finalizer is left, 1 if some are, 2 if it was told something wrong.";

/// The command, as clap sees it.
pub(super) fn command() -> Command {
    let switch = |id, help| Arg::new(id).long(id).action(ArgAction::SetTrue).help(help);
    let tekton = switch(
        "tekton",
        "Also take off results.tekton.dev/taskrun, /pipelinerun and /customrun, which Tekton \
         Results' watcher puts on as well; not while that one runs",
    );
    let dry_run = switch("dry-run", "Say what would come off, and take nothing off");
    let command = Command::new("release")
        .about("Take the watcher's finalizers off all runs, before it is uninstalled")
        .after_help(MORE)
        .arg(tekton)
        .arg(dry_run);
    PROGRAM.add_flags(command, |key| KEYS.contains(&key.name))
}

/// What was asked for, as the configuration understands it.
///
/// # Errors
/// Everything that is wrong.
pub(super) fn read(matches: &ArgMatches) -> Result<Asked, Problems> {
    let launch = Launch::load(&PROGRAM, &Sources::gather(&PROGRAM, matches))?;
    let config = launch.config;
    Ok(Asked {
        kubeconfig: launch.settings.kubeconfig,
        kinds: Kinds::with(&config.kinds).all().collect(),
        wish: Wish {
            namespace: config.namespace,
            tekton: matches.get_flag("tekton"),
            dry_run: matches.get_flag("dry-run"),
            per_second: config.writes_per_second,
        },
    })
}

/// Whose finalizers are taken off.
pub(super) struct Asked {
    kubeconfig: Option<PathBuf>,
    kinds: Vec<&'static Kind>,
    wish: Wish,
}

/// Takes them off. Whether none is left.
///
/// # Errors
/// If no cluster is named.
pub(super) async fn run(asked: Asked) -> anyhow::Result<bool> {
    let client = hindsight_cluster::connect(asked.kubeconfig).await?;
    let mut print = |outcome: Outcome<'_>| print(&outcome, &mut io::stdout(), &mut io::stderr());
    let clock = Arc::new(SystemClock);
    let summary = release(client, &asked.kinds, &asked.wish, clock, &mut print).await;
    conclude(&summary, &asked.wish, &mut io::stderr());
    let is_kept = asked.wish.dry_run && summary.released > 0;
    Ok(!is_kept && (summary.left, summary.failed, summary.unseen) == (0, 0, 0))
}

/// What cannot be printed is left out, and finalizers come off all the same.
fn print(outcome: &Outcome<'_>, out: &mut impl Write, notes: &mut impl Write) {
    let written = match outcome {
        Outcome::Released(run, finalizers) => writeln!(out, "{run} {}", finalizers.join(",")),
        Outcome::Left(_) => Ok(()),
        Outcome::Failed(run, why) => writeln!(notes, "error: {run} keeps its finalizer: {why}"),
        Outcome::Unseen(kind, why) => {
            writeln!(
                notes,
                "error: {kind} cannot be listed, so that finalizers may be left: {why}"
            )
        }
    };
    written.unwrap_or_default();
}

fn conclude(summary: &Summary, wish: &Wish, to: &mut impl Write) {
    let Summary {
        released,
        left,
        failed,
        unseen,
    } = summary;
    let done = if wish.dry_run {
        "would be released"
    } else {
        "released"
    };
    writeln!(
        to,
        "{released} runs {done}, {failed} failed, {unseen} kinds not listed"
    )
    .unwrap_or_default();
    if *left > 0 {
        writeln!(
            to,
            "{left} runs have finalizers of results.tekton.dev, which Tekton Results' watcher uses \
             as well; if that one does not run, take them off with --tekton"
        )
        .unwrap_or_default();
    }
}
