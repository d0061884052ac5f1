//! From a text to the run that it means: a name, a UID, an address, a digest.

mod target;

use askama::Template;
use axum::http::StatusCode;
use hindsight_filter::words::{quoted, value};
use hindsight_proto::v1::{ListRunsRequest, RunRow};
use hindsight_run::reference;

use super::Page;
use super::frame::{Frame, Place};
use super::list::{Row, rows};
use super::series::asking;
use crate::api::{Kind, Refusal};
use crate::ask::Ask;
use crate::fault::Fault;

use target::{Target, is_commit, target};

/// Candidates that are shown.
const CANDIDATES: i32 = 20;
/// Days in which results of runs are searched for a digest, in payloads.
const DAYS: i32 = 30;

#[derive(Debug, Template)]
#[template(path = "jump.html")]
struct Jump {
    frame: Frame,
    text: String,
    action: String,
    is_asked: bool,
    rows: Vec<Row>,
    /// What was not searched, and why.
    notes: Vec<String>,
    search: String,
}

/// The page with the candidates, or the address of the only run that is meant.
pub(crate) async fn jump(ask: &Ask) -> Result<Result<Page, String>, Fault> {
    let text = ask.query.get("to");
    let mut notes = Vec::new();
    let found = match target(text) {
        Target::Empty => Vec::new(),
        Target::Record(name) => return Ok(Err(ask.links.run(&name))),
        Target::Named { namespace, name } => named(ask, &namespace, &name).await?,
        Target::Digest(digits) => with_digest(ask, &digits, &mut notes).await?,
    };
    if let [only] = found.as_slice() {
        return Ok(Err(ask.links.run(&only.record)));
    }
    let is_asked = !text.is_empty();
    let status = match is_asked && found.is_empty() {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::OK,
    };
    let view = Jump {
        frame: Frame::new(ask, "Go to a run", Place::Elsewhere),
        text: text.to_owned(),
        action: ask.links.jump(),
        is_asked,
        rows: rows(ask, &found),
        notes,
        search: ask.links.runs(&value(text), ask.scope()),
    };
    Ok(Ok(Page::with(status, &view)))
}

async fn list(ask: &Ask, scope: &str, filter: String, query: &str) -> Result<Vec<RunRow>, Refusal> {
    let request = ListRunsRequest {
        filter,
        page_size: CANDIDATES,
        ..asking(scope, query)
    };
    Ok(ask.api.list_runs(request).await?.runs)
}

/// Runs of a name or UID, or else whose UID begins so, or else with it in a label or in their names.
async fn named(ask: &Ask, namespace: &str, name: &str) -> Result<Vec<RunRow>, Refusal> {
    let scope = if namespace.is_empty() {
        ask.scope()
    } else {
        namespace
    };
    let literal = quoted(name);
    let mut filters = vec![format!(
        "data.metadata.name == {literal} || data.metadata.uid == {literal}"
    )];
    if reference::begins_uid(name) {
        filters.push(format!("data.metadata.uid.startsWith({literal})"));
    }
    if is_commit(name) {
        filters.push(format!("data.metadata.labels.contains({literal})"));
    }
    let part = format!("data.metadata.name.contains({literal})");
    let filters = filters.into_iter().map(|filter| (filter, ""));
    // Of many parts of a name whole runs come first.
    let filters = filters.chain([(part.clone(), "is:top"), (part, "")]);
    for (filter, query) in filters {
        let found = list(ask, scope, filter, query).await?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Runs that have a digest in their labels, or else whose results have it.
async fn with_digest(
    ask: &Ask,
    digits: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<RunRow>, Refusal> {
    // A label has 63 characters at most, and the digest of an image 64.
    let literal = quoted(digits.get(..63).unwrap_or(digits));
    let filter = format!("data.metadata.labels.contains({literal})");
    let found = list(ask, ask.scope(), filter, "").await?;
    if !found.is_empty() {
        return Ok(found);
    }
    let literal = quoted(digits);
    let has = |field: &str| format!("data.status.{field}.exists(r, r.value.contains({literal}))");
    let filter = format!(
        "{} || {} || {}",
        has("results"),
        has("taskResults"),
        has("pipelineResults")
    );
    let query = format!("since:{DAYS}d kind:pr,tr");
    match list(ask, ask.scope(), filter, &query).await {
        Ok(found) => {
            notes.push(format!(
                "Labels of all runs, and results of the runs of the last {DAYS} days, are searched for digests."
            ));
            Ok(found)
        }
        Err(Refusal {
            kind: Kind::TooMuch | Kind::Late,
            message,
        }) => {
            notes.push(format!(
                "No label has this digest, and results of runs are too many to search: {message}"
            ));
            Ok(Vec::new())
        }
        Err(refusal) => Err(refusal),
    }
}
