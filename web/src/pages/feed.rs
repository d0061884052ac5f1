//! The failures that a filter selects, as a feed of Atom.

use askama::Template;
use axum::http::StatusCode;
use hindsight_proto::v1::{ListRunsRequest, RunRow};
use jiff::Timestamp;

use super::list::{newest_first, status_of};
use super::series::{Series, asking};
use super::{Form, Page, Shown};
use crate::ask::Ask;
use crate::html::end_cut;
use crate::route::encoded;
use crate::time::{length, timestamp};

/// Entries of a feed.
const ENTRIES: i32 = 50;
/// Runs that a feed has.
const FAILURES: &str = "run.outcome in [FAILURE, TIMEOUT]";

#[derive(Debug, Template)]
#[template(path = "feed.xml", escape = "html")]
struct Feed {
    id: String,
    title: String,
    own: String,
    list: String,
    updated: Timestamp,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: String,
    title: String,
    link: String,
    updated: Timestamp,
    category: &'static str,
    summary: String,
}

pub(crate) async fn feed(ask: &Ask) -> Shown {
    let (text, scope) = (ask.query.get("q"), ask.scope());
    let request = ListRunsRequest {
        filter: FAILURES.to_owned(),
        time_zone: ask.look.zone.clone(),
        page_size: ENTRIES,
        ..asking(scope, text)
    };
    let mut runs = ask.api.list_runs(request).await?.runs;
    newest_first(&mut runs);
    let origin = ask.public.as_deref().and_then(|public| {
        let path = ask.links.base().strip_suffix("/ui")?;
        public.strip_suffix(path)
    });
    let origin = origin.unwrap_or_default();
    let entries: Vec<_> = runs.iter().map(|run| entry(ask, origin, run)).collect();
    let updated = entries.iter().map(|entry| entry.updated).max();
    let view = Feed {
        id: id(&format!("feed/{}/{}", encoded(scope), encoded(text))),
        title: match (text, scope) {
            ("", "") => "Failed runs".to_owned(),
            (text, "") => format!("Failed runs: {text}"),
            ("", scope) => format!("Failed runs in {scope}"),
            (text, scope) => format!("Failed runs in {scope}: {text}"),
        },
        own: format!("{origin}{}", ask.links.feed(text, scope)),
        list: format!("{origin}{}", ask.links.runs(text, scope)),
        updated: updated.unwrap_or(Timestamp::UNIX_EPOCH),
        entries,
    };
    Ok(Page::written(Form::Atom, StatusCode::OK, &view))
}

/// An identifier that no other feed or entry has and that stays the same.
fn id(what: &str) -> String {
    format!("tag:hindsight.dev,2026:{what}")
}

fn entry(ask: &Ask, origin: &str, run: &RunRow) -> Entry {
    let status = status_of(run).word();
    let of = Series::of(run).map(|series| format!(" of {}", series.name));
    let took = run
        .duration_seconds
        .map(|seconds| format!(" after {}", length(seconds)));
    let reason = match run.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let name = match run.namespace.as_str() {
        "" => run.name.clone(),
        namespace => format!("{namespace}/{}", run.name),
    };
    let times = [run.update_time, run.end_time, run.create_time];
    let path: Vec<_> = run.record.split('/').map(encoded).collect();
    Entry {
        id: id(&format!("run/{}", path.join("/"))),
        title: end_cut(&format!("{name} {status}{reason}"), 300),
        link: format!("{origin}{}", ask.links.run(&run.record)),
        updated: times
            .into_iter()
            .find_map(timestamp)
            .unwrap_or(Timestamp::UNIX_EPOCH),
        category: status,
        summary: end_cut(
            &format!(
                "{} {name}{} {status}{}{reason}",
                run.kind,
                of.unwrap_or_default(),
                took.unwrap_or_default()
            ),
            1_000,
        ),
    }
}
