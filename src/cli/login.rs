//! The command `hindsight login`: a token that a server accepts, kept in a context.

mod prompt;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use hindsight_proto::v1::ListRunsRequest;
use tonic::Code;

use super::{
    connect::{Credentials, FLAGS},
    context::file,
    contexts::{Context, Contexts, Token, USUAL},
    failure::Failure,
    output,
};

/// Store a token for a server, once that accepts it
///
/// The token is read from standard input, on terminals without showing it, or stays in the file of
/// --token-file, which is read anew by each command. The context becomes the current one.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight login --server https://hindsight.example --token-file token
  kubectl create token ci | hindsight login --server https://hindsight.example
  hindsight login --context prod --namespace shop --token-file token")]
pub(super) struct Login {
    /// The server; by default that of the context
    #[arg(long, value_name = "URL", env = "HINDSIGHT_SERVER")]
    server: Option<String>,

    /// Context that gets the token; by default the current one, or `default`
    #[arg(
        long = "context",
        id = "into",
        value_name = "NAME",
        env = "HINDSIGHT_CONTEXT"
    )]
    context: Option<String>,

    /// Namespace of commands that are given none
    #[arg(short, long = "namespace", id = "within", value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// File with the bearer token
    #[arg(long, value_name = "FILE", env = "HINDSIGHT_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Extra CA certificates (PEM) to trust, besides those of the system
    #[arg(long, value_name = "FILE", env = "HINDSIGHT_SERVER_CA")]
    server_ca: Option<PathBuf>,

    /// Timeout of the check, such as `5s` or `2m`; a bare number is in seconds
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = hindsight_connect::timeout)]
    timeout: Duration,
}

impl Login {
    /// The context that is logged in to: the one that is named, or that has the server, or a new one
    /// called after the host; without a server the current one.
    fn name(&self, contexts: &Contexts) -> String {
        if let Some(name) = &self.context {
            return name.clone();
        }
        let Some(server) = &self.server else {
            return contexts.current.clone().unwrap_or_else(|| USUAL.to_owned());
        };
        let has_it = |context: &Context| context.server.as_ref() == Some(server);
        let mut named = contexts.contexts.iter();
        if let Some((name, _)) = named.find(|(_, context)| has_it(context)) {
            return name.clone();
        }
        let free = |name: &String| !contexts.contexts.contains_key(name);
        let after_scheme = server
            .split_once("://")
            .map_or(server.as_str(), |(_, rest)| rest);
        let host = after_scheme
            .split(['/', ':'])
            .next()
            .unwrap_or(USUAL)
            .to_owned();
        [USUAL.to_owned(), host]
            .into_iter()
            .find(free)
            .unwrap_or_else(|| after_scheme.trim_end_matches('/').to_owned())
    }

    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let mut contexts = Contexts::load()?;
        let name = self.name(&contexts);
        let mut context = contexts.contexts.get(&name).cloned().unwrap_or_default();
        if let Some(server) = &self.server {
            context.server = Some(server.clone());
        }
        let Some(server) = context.server.clone() else {
            return Err(Failure::usage(format!(
                "context `{name}` has no server; name one with --server"
            )));
        };
        if let Some(namespace) = &self.namespace {
            context.namespace = Some(namespace.clone());
        }
        file(&mut context.server_ca, self.server_ca.as_ref())?;
        context.token = None;
        context.token_file = None;
        file(&mut context.token_file, self.token_file.as_ref())?;
        if context.token_file.is_none() {
            let token = prompt::token()?;
            if token.is_empty() {
                return Err(Failure::usage("no token is on standard input"));
            }
            context.token = Some(Token(token));
        }
        let client = Credentials::of(&context).client(&server, self.timeout, FLAGS)?;
        let namespace = context.namespace.as_deref().unwrap_or("-");
        let request = ListRunsRequest {
            parent: format!("{namespace}/results/-"),
            page_size: 1,
            ..ListRunsRequest::default()
        };
        let may_list = match client.runs().list_runs(request).await {
            Ok(_) => true,
            // The caller is known, and may do other things.
            Err(status) if status.code() == Code::PermissionDenied => false,
            Err(status) => return Err(Failure::status(&server, &status, FLAGS)),
        };
        contexts.contexts.insert(name.clone(), context.clone());
        contexts.current = Some(name.clone());
        contexts.save()?;
        output::note(&format!("logged in to {server}, as context `{name}`"));
        if !may_list {
            let place = match namespace {
                "-" => "all namespaces; give one of yours with --namespace".to_owned(),
                namespace => format!("namespace {namespace}"),
            };
            output::note(&format!("warning: you may not list runs of {place}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}
