//! The command `hindsight context`: servers by name.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    contexts::{Context, Contexts},
    failure::Failure,
    output,
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};

/// Name the servers that commands ask
///
/// A context is a server with its credentials and a namespace. Commands ask that of `--context`, or
/// else the current one; `--server` asks another server, which gets nothing of the current context.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = "The file of contexts is hindsight/contexts.toml in $XDG_CONFIG_HOME or ~/.config, with mode 0600.

Examples:
  hindsight context set prod --server https://hindsight.example --token-file token --namespace shop
  hindsight context use prod
  hindsight context list"
)]
pub(super) struct ContextCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List contexts; the current one is marked
    #[command(visible_alias = "ls")]
    List(List),
    /// Make the context of this name the current one
    Use {
        /// Name of the context
        name: String,
    },
    Set(Set),
    /// Delete the context of this name
    Delete {
        /// Name of the context
        name: String,
    },
}

#[derive(Debug, Args)]
struct List {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,
}

/// Make a context, or change what is given of one
///
/// An empty value takes a setting out. The first context becomes the current one.
#[derive(Debug, Args)]
struct Set {
    /// Name of the context
    name: String,

    /// The server to ask
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// Namespace of commands that are given none
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// File with the bearer token; takes out a token that `hindsight login` stored
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Extra CA certificates (PEM) to trust, besides those of the system
    #[arg(long, value_name = "FILE")]
    server_ca: Option<PathBuf>,

    /// Client certificate (PEM), for servers that want one
    #[arg(long, value_name = "FILE")]
    client_cert: Option<PathBuf>,

    /// Private key of --client-cert (PEM)
    #[arg(long, value_name = "FILE")]
    client_key: Option<PathBuf>,
}

/// A context as JSON and YAML show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    name: &'a str,
    current: bool,
    server: Option<&'a str>,
    namespace: Option<&'a str>,
    credentials: Option<String>,
}

impl ContextCommand {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let mut contexts = Contexts::load()?;
        match &self.what {
            What::List(list) => return list.run(&contexts),
            What::Use { name } => {
                contexts.get(Some(name))?;
                contexts.current = Some(name.clone());
                contexts.save()?;
                output::note(&format!("`{name}` is the current context"));
            }
            What::Set(set) => set.run(&mut contexts)?,
            What::Delete { name } => {
                if contexts.contexts.remove(name).is_none() {
                    return Err(contexts.unknown(name));
                }
                let was_current = contexts.current.as_deref() == Some(name);
                contexts.current.take_if(|_| was_current);
                contexts.save()?;
                let more = if was_current {
                    "; no context is current now"
                } else {
                    ""
                };
                output::note(&format!("deleted context `{name}`{more}"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Set {
    fn run(self: &Set, contexts: &mut Contexts) -> Result<(), Failure> {
        if self.name.trim().is_empty() || self.name.contains(output::steers) {
            return Err(Failure::usage(
                "a context needs a name of visible characters",
            ));
        }
        let context = contexts.contexts.entry(self.name.clone()).or_default();
        text(&mut context.server, self.server.as_ref());
        text(&mut context.namespace, self.namespace.as_ref());
        if self.token_file.is_some() {
            context.token = None;
        }
        for (setting, given) in [
            (&mut context.token_file, &self.token_file),
            (&mut context.server_ca, &self.server_ca),
            (&mut context.client_cert, &self.client_cert),
            (&mut context.client_key, &self.client_key),
        ] {
            file(setting, given.as_ref())?;
        }
        let first = contexts.current.is_none();
        if first {
            contexts.current = Some(self.name.clone());
        }
        contexts.save()?;
        let current = if first { ", the current one" } else { "" };
        output::note(&format!("stored context `{}`{current}", self.name));
        Ok(())
    }
}

/// Changes a setting to the text that is given, if one is.
fn text(setting: &mut Option<String>, given: Option<&String>) {
    if let Some(given) = given {
        *setting = Some(given.clone()).filter(|text| !text.is_empty());
    }
}

/// Changes a setting to the file that is given, if one is, whatever the folder of later commands.
pub(super) fn file(setting: &mut Option<PathBuf>, given: Option<&PathBuf>) -> Result<(), Failure> {
    let Some(given) = given else { return Ok(()) };
    *setting = match given.as_os_str().is_empty() {
        true => None,
        false => Some(std::path::absolute(given)?),
    };
    Ok(())
}

impl List {
    fn run(&self, contexts: &Contexts) -> Result<ExitCode, Failure> {
        let columns = [
            Column::usual("current", Cut::Never),
            Column::usual("name", Cut::Middle),
            Column::usual("server", Cut::Middle),
            Column::usual("namespace", Cut::Middle),
            Column::usual("credentials", Cut::Middle),
        ];
        let mut table = Table::new(columns.to_vec(), &self.look, false)?;
        let current = contexts.current.as_deref();
        let views = contexts.contexts.iter().map(|(name, context)| View {
            name,
            current: current == Some(name),
            server: context.server.as_deref(),
            namespace: context.namespace.as_deref(),
            credentials: credentials(context),
        });
        let views: Vec<_> = views.collect();
        match self.output {
            Form::Json | Form::Yaml => {
                output::document(self.look.out(), self.output == Form::Yaml, &views)?;
            }
            Form::Table | Form::Csv => {
                for view in &views {
                    table.row(row(view));
                }
                if table.is_empty() {
                    output::note(
                        "there are no contexts; make one with `hindsight context set NAME --server URL`",
                    );
                }
                table.print(self.output == Form::Csv, &self.look)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(view: &View<'_>) -> Vec<Value> {
    let text = |text: Option<&str>| Value::of(text.unwrap_or_default());
    let (is_current, mark) = if view.current {
        ("true", "*")
    } else {
        ("false", " ")
    };
    vec![
        Value::both(is_current, mark),
        Value::of(view.name),
        text(view.server),
        text(view.namespace),
        text(view.credentials.as_deref()),
    ]
}

/// What a server is shown, without what is secret.
fn credentials(context: &Context) -> Option<String> {
    if let Some(path) = &context.token_file {
        return Some(format!("token in {}", path.display()));
    }
    if context.token.is_some() {
        return Some("token".to_owned());
    }
    let path = context.client_cert.as_ref()?;
    Some(format!("certificate {}", path.display()))
}
