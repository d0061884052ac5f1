//! The hidden command `hindsight __complete`: what the last word of a command line may go on with. The
//! scripts that `hindsight completion` prints ask it.
//!
//! It never fails and never waits long: a server that does not answer in time suggests nothing.

mod line;
mod scripts;
mod values;

use std::{collections::BTreeMap, io::Write as _, process::ExitCode, time::Duration};

use clap::{Args, Command, FromArgMatches as _};
use hindsight_proto::v1::{SuggestRequest, suggest_request::Kind};
use tokio::time::timeout;

use self::{
    line::Line,
    values::{Asked, Candidate, Source, source},
};
use super::{connect::Connect, contexts::Contexts, failure::Failure};

pub(super) use self::scripts::{INSTALL, script};

/// Most suggestions of a server.
const MOST: i32 = 200;
/// Tells the shell to complete names of files.
const FILES: &str = ":files";
/// Flags that say which server is asked, and how.
const CONNECTING: [&str; 7] = [
    "server",
    "context",
    "token",
    "token_file",
    "server_ca",
    "client_cert",
    "client_key",
];

/// Print what the last word of a command line may go on with
#[derive(Debug, Args)]
pub(super) struct Complete {
    /// The command line up to the cursor, as bash has it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    line: Option<String>,

    /// How long a server has to answer. A person waits for it, and the program needs some time, too
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 250)]
    patience: u64,

    /// The words after the name of the program, the last of which is completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Complete {
    pub(super) async fn run(&self, mut root: Command) -> Result<ExitCode, Failure> {
        root.build();
        let words = match &self.line {
            // The first word is the name of the program.
            Some(line) => line::words(line).into_iter().skip(1).collect(),
            None => self.words.clone(),
        };
        let line = Line::of(&root, &words);
        let found = found(&line, Duration::from_millis(self.patience)).await;
        let mut out = std::io::stdout().lock();
        // Bash takes the text after the last of these for the word.
        let word = words.last().map_or("", String::as_str);
        let kept = word.rfind([':', '=']).map_or(0, |at| at + 1);
        let kept = if self.line.is_some() { kept } else { 0 };
        for Candidate { value, help } in found {
            let value = value.get(kept..).unwrap_or_default();
            match help.as_str() {
                "" => writeln!(out, "{value}")?,
                help => writeln!(out, "{value}\t{help}")?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the last word may go on with.
async fn found(line: &Line<'_>, patience: Duration) -> Vec<Candidate> {
    let (source, before, value) = source(line);
    let mut found = match source {
        Source::Fixed(found) => found,
        Source::Files => return vec![Candidate::of(FILES)],
        Source::Contexts => {
            let contexts = Contexts::load().unwrap_or_default();
            contexts.contexts.into_keys().map(Candidate::of).collect()
        }
        Source::Server(asked, more) => {
            let asking = timeout(patience, asked_of_server(line, &asked, &value));
            let told = asking.await.ok().flatten().unwrap_or_default();
            let told = told
                .into_iter()
                .map(|text| format!("{text}{}", asked.after));
            more.into_iter().chain(told.map(Candidate::of)).collect()
        }
    };
    found.retain(|it| it.value.starts_with(&value) && is_safe(&it.value));
    for candidate in &mut found {
        candidate.value.insert_str(0, &before);
    }
    found
}

/// Whether a shell takes a text as it is. Names that a server tells could hold anything.
fn is_safe(text: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/@%+".contains(c);
    text.chars().all(safe)
}

/// What a server suggests; none if it cannot be asked.
async fn asked_of_server(line: &Line<'_>, asked: &Asked, value: &str) -> Option<Vec<String>> {
    let connect = connect(&line.given)?;
    let parent = match &asked.namespace {
        Some(namespace) => namespace.clone(),
        None if asked.kind == Kind::Namespace || line.given.contains_key("all_namespaces") => {
            "-".to_owned()
        }
        None => match line.given.get("namespace") {
            Some(namespace) => namespace.clone(),
            None => connect.namespace().ok()?.unwrap_or("default").to_owned(),
        },
    };
    let request = SuggestRequest {
        parent: format!("{parent}/results/-"),
        kind: asked.kind.into(),
        prefix: value.to_owned(),
        label_key: asked.label_key.clone(),
        limit: MOST,
    };
    let reply = connect.client().ok()?.runs().suggest(request).await;
    Some(reply.ok()?.into_inner().values)
}

/// The server that the flags of a line name.
fn connect(given: &BTreeMap<&str, String>) -> Option<Connect> {
    let flags = CONNECTING.iter().filter_map(|id| {
        let value = given.get(id)?;
        Some(format!("--{}={value}", id.replace('_', "-")))
    });
    let words = std::iter::once("hindsight".to_owned()).chain(flags);
    let matches = Connect::augment_args(Command::new("hindsight"));
    let matches = matches.try_get_matches_from(words).ok()?;
    Connect::from_arg_matches(&matches).ok()
}

#[cfg(test)]
mod tests;
