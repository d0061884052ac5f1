//! `kubectl workflow`: shows, cancels and retries workflows.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use hindsight_cluster::{call, choose_cryptography, connect};
use hindsight_runtime::error::report;
use hindsight_workflow::{
    Workflow,
    describe::{describe, graph, retry},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};

use crate::object::WorkflowObject;

const NAME: &str = "kubectl-workflow";

const MORE: &str = "Examples:
  kubectl workflow get -n ci
  kubectl workflow describe build -n ci
  kubectl workflow graph build -n ci | dot -Tsvg > build.svg
  kubectl workflow retry build -n ci

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
    let one = |command: &'static str, about: &'static str| {
        Command::new(command)
            .about(about)
            .arg(name().required(true))
    };
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
            Command::new("get").about("List workflows").arg(name()).arg(
                Arg::new("all-namespaces")
                    .short('A')
                    .long("all-namespaces")
                    .action(ArgAction::SetTrue)
                    .help("Of all namespaces"),
            ),
        )
        .subcommand(one(
            "describe",
            "Show all steps of a workflow, and what each waits for",
        ))
        .subcommand(one(
            "graph",
            "Print the graph of a workflow in the language DOT",
        ))
        .subcommand(one("cancel", "Delete a workflow and its running Jobs"))
        .subcommand(one(
            "retry",
            "Create a workflow that does what a failed one has not done",
        ))
}

/// Does what the arguments say with the cluster behind `client`.
pub async fn run(client: Client, matches: &ArgMatches, out: &mut impl Write) -> anyhow::Result<()> {
    let Some((command, matches)) = matches.subcommand() else {
        bail!("there is no command");
    };
    let api: Api<WorkflowObject> = match matches.get_one::<String>("namespace") {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::default_namespaced(client.clone()),
    };
    let name = matches.get_one::<String>("name");
    if command == "get" {
        let api = match matches.get_flag("all-namespaces") {
            true => Api::all(client),
            false => api,
        };
        return get(&api, name.map(String::as_str), out).await;
    }
    let name = name.context("the name of a workflow is missing")?;
    let object = call(api.get(name)).await;
    let object = object.with_context(|| format!("workflow `{name}` cannot be read"))?;
    match command {
        "describe" => out.write_all(describe(&read(&object)?).as_bytes())?,
        "graph" => out.write_all(graph(&read(&object)?).as_bytes())?,
        "cancel" => {
            let params = DeleteParams::background();
            let asked = call(api.delete(name, &params)).await;
            asked.with_context(|| format!("workflow `{name}` cannot be deleted"))?;
            writeln!(out, "workflow.hindsight.dev/{name} cancelled")?;
        }
        _ => {
            let value = object.value().map_err(anyhow::Error::msg)?;
            let again = retry(&value).map_err(anyhow::Error::msg)?;
            let again = WorkflowObject::of(&again).map_err(anyhow::Error::msg)?;
            let made = call(api.create(&PostParams::default(), &again)).await;
            let made = made.with_context(|| format!("workflow `{name}` cannot be done again"))?;
            writeln!(out, "workflow.hindsight.dev/{} created", made.name_any())?;
        }
    }
    Ok(())
}

fn read(object: &WorkflowObject) -> anyhow::Result<Workflow> {
    object.read().map_err(anyhow::Error::msg)
}

/// Prints one line for each workflow.
async fn get(
    api: &Api<WorkflowObject>,
    name: Option<&str>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    writeln!(out, "NAMESPACE\tNAME\tSTATUS\tSTEPS\tSTARTED")?;
    let mut params = ListParams::default().limit(PAGE);
    if let Some(name) = name {
        params = params.fields(&format!("metadata.name={name}"));
    }
    let mut found = 0;
    loop {
        let page = call(api.list(&params))
            .await
            .context("workflows cannot be listed")?;
        for object in &page.items {
            let workflow = read(object)?;
            let status = &workflow.status;
            let start = status.start_time.map(|start| start.to_string());
            writeln!(
                out,
                "{}\t{}\t{}\t{}\t{}",
                workflow.namespace,
                workflow.name,
                status.phase,
                status.progress,
                start.unwrap_or_default()
            )?;
            found += 1;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    match name {
        Some(name) if found == 0 => bail!("there is no workflow `{name}`"),
        _ => Ok(()),
    }
}
