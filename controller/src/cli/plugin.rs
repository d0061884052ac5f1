//! `kubectl workflow`: shows, cancels and retries workflows.

mod history;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use hindsight_cluster::{ClusterError, call, choose_cryptography, connect};
use hindsight_runtime::error::report;
use hindsight_workflow::describe::{describe, graph, retry};
use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};

use self::history::{History, Stored};
use crate::object::WorkflowObject;

const NAME: &str = "kubectl-workflow";

const MORE: &str = "Examples:
  kubectl workflow get -n ci
  kubectl workflow describe build -n ci
  kubectl workflow graph build -n ci | dot -Tsvg > build.svg
  kubectl workflow retry build -n ci
  kubectl workflow get --history -n ci --hindsight-server https://hindsight.example

A workflow that is not in the cluster any more is shown and retried as the history has it, which is at the \
server that --hindsight-server names, or HINDSIGHT_SERVER, or the current context of `hindsight context`. \
Credentials are found in the same places.

Exit codes: 0 done, 1 not done, 2 wrong usage.";

/// Workflows in a page of a list.
const PAGE: u32 = 500;

/// Runs the plugin with these arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let code = u8::from(error.use_stderr()) * 2;
            // Help that nobody reads to its end is no error.
            return error
                .print()
                .map_or(ExitCode::from(code), |()| ExitCode::from(code));
        }
    };
    choose_cryptography();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started");
    let done = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let kubeconfig = matches.get_one::<PathBuf>("kubeconfig").cloned();
            let client = connect(kubeconfig).await?;
            run(client, &matches, &mut io::stdout()).await
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr().lock(), "{NAME}: {}", report(error.as_ref())).unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

/// The command and its subcommands.
pub fn command() -> Command {
    let name = || Arg::new("name").value_name("NAME");
    let one = |command: Command, about| command.about(about).arg(name().required(true));
    let flag = |name| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new(NAME)
        .bin_name("kubectl workflow")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Show, cancel and retry workflows of Jobs, workflows.hindsight.dev")
        .after_help(MORE)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("kubeconfig")
                .long("kubeconfig")
                .value_name("FILE")
                .global(true)
                .value_parser(value_parser!(PathBuf))
                .help("Kubeconfig of the cluster"),
        )
        .arg(
            Arg::new("namespace")
                .short('n')
                .long("namespace")
                .value_name("NAME")
                .global(true)
                .help("Namespace of the workflow; that of the kubeconfig when absent"),
        )
        .subcommand(
            history::command("get")
                .about("List workflows")
                .arg(name())
                .arg(flag("all-namespaces").short('A').help("Of all namespaces"))
                .arg(
                    flag("history")
                        .conflicts_with("name")
                        .help("What the history has instead of what the cluster has, newest first"),
                ),
        )
        .subcommand(one(
            history::command("describe"),
            "Show all steps of a workflow, and what each waits for",
        ))
        .subcommand(one(
            history::command("graph"),
            "Print the graph of a workflow in the language DOT",
        ))
        .subcommand(one(
            Command::new("cancel"),
            "Delete a workflow and its running Jobs",
        ))
        .subcommand(one(
            history::command("retry"),
            "Create a workflow that does what a failed one has not done",
        ))
}

/// Does what the arguments say with the cluster behind `client`.
pub async fn run(client: Client, matches: &ArgMatches, out: &mut impl Write) -> anyhow::Result<()> {
    let Some((command, matches)) = matches.subcommand() else {
        bail!("there is no command");
    };
    let namespace = matches.get_one("namespace").map(String::as_str);
    let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
    let api: Api<WorkflowObject> = Api::namespaced(client.clone(), &namespace);
    let name = matches.get_one("name").map(String::as_str);
    if command == "get" {
        return match matches.get_flag("all-namespaces") {
            true => get(&Api::all(client), None, matches, out).await,
            false => get(&api, Some(&namespace), matches, out).await,
        };
    }
    let name = name.context("the name of a workflow is missing")?;
    if command == "cancel" {
        let asked = call(api.delete(name, &DeleteParams::background())).await;
        asked.with_context(|| format!("workflow `{name}` cannot be deleted"))?;
        writeln!(out, "workflow.hindsight.dev/{name} cancelled")?;
        return Ok(());
    }
    let found = match call(api.get(name)).await {
        Err(ClusterError::Moved) => {
            let stored = History::of(matches)?.find(Some(&namespace), name).await;
            stored.and_then(|stored| Ok((stored.object()?, Some(stored))))
        }
        Err(error) => Err(error.into()),
        Ok(object) => Ok((object, None)),
    };
    let (object, stored) = found.with_context(|| format!("workflow `{name}` cannot be read"))?;
    let workflow = || object.read().map_err(anyhow::Error::msg);
    match command {
        "describe" => {
            if let Some(stored) = stored {
                writeln!(out, "History:   {stored}")?;
            }
            out.write_all(describe(&workflow()?).as_bytes())?;
        }
        "graph" => {
            if let Some(stored) = stored {
                writeln!(out, "// History: {stored}")?;
            }
            out.write_all(graph(&workflow()?).as_bytes())?;
        }
        _ => {
            let value = object.value().map_err(anyhow::Error::msg)?;
            let again = retry(&value).map_err(anyhow::Error::msg)?;
            let again = WorkflowObject::of(&again).map_err(anyhow::Error::msg)?;
            let made = call(api.create(&PostParams::default(), &again)).await;
            let made = made.with_context(|| format!("workflow `{name}` cannot be done again"))?;
            let of = stored.map(|stored| format!(" from the history, {stored}"));
            let (made, of) = (made.name_any(), of.unwrap_or_default());
            writeln!(out, "workflow.hindsight.dev/{made} created{of}")?;
        }
    }
    Ok(())
}

/// Prints one line for each workflow that the arguments ask for.
async fn get(
    api: &Api<WorkflowObject>,
    namespace: Option<&str>,
    matches: &ArgMatches,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    writeln!(out, "NAMESPACE\tNAME\tSTATUS\tSTEPS\tSTARTED\tHISTORY")?;
    if matches.get_flag("history") {
        return get_stored(&History::of(matches)?, namespace, out).await;
    }
    let name = matches.get_one("name").map(String::as_str);
    let mut params = ListParams::default().limit(PAGE);
    if let Some(name) = name {
        params = params.fields(&format!("metadata.name={name}"));
    }
    let mut found = 0;
    loop {
        let page = match call(api.list(&params)).await {
            // The kind is not installed any more.
            Err(ClusterError::Moved) if name.is_some() => break,
            page => page.context("workflows cannot be listed")?,
        };
        for object in &page.items {
            print(object, None, out)?;
            found += 1;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    match name {
        Some(name) if found == 0 => {
            let stored = History::of(matches)?.find(namespace, name).await;
            let stored = stored.with_context(|| format!("workflow `{name}` cannot be read"))?;
            print(&stored.object()?, Some(&stored), out)
        }
        _ => Ok(()),
    }
}

/// Prints one line for each workflow of the history.
async fn get_stored(
    history: &History,
    namespace: Option<&str>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut token = String::new();
    loop {
        let page = history.list(namespace, token).await;
        let (stored, next) = page.context("the history cannot be read")?;
        for stored in &stored {
            print(&stored.object()?, Some(stored), out)?;
        }
        token = match next.is_empty() {
            true => return Ok(()),
            false => next,
        };
    }
}

/// Prints the line of a workflow.
fn print(
    object: &WorkflowObject,
    stored: Option<&Stored>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let workflow = object.read().map_err(anyhow::Error::msg)?;
    let status = &workflow.status;
    let text = |time: Option<Timestamp>| time.map_or_else(String::new, |time| time.to_string());
    let (start, stored) = (
        text(status.start_time),
        text(stored.map(|stored| stored.at)),
    );
    writeln!(
        out,
        "{}\t{}\t{}\t{}\t{start}\t{stored}",
        workflow.namespace, workflow.name, status.phase, status.progress
    )?;
    Ok(())
}
