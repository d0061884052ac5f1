//! A drawing of how the last finished run of a pipeline ended, for pages elsewhere.

use askama::Template;
use axum::http::StatusCode;
use hindsight_proto::v1::ListRunsRequest;

use super::list::{newest_first, status_of};
use super::series::{Series, asking};
use super::{Form, Page, Shown};
use crate::ask::Ask;
use crate::html::middle_cut;
use crate::route::Of;
use crate::status::Status;

/// Runs among which the last finished one is sought.
const RUNS: i32 = 30;
/// Longest name in the drawing, and the width of a character and of the space around a text.
const NAME: usize = 40;
const CHARACTER: usize = 7;
const AROUND: usize = 14;

#[derive(Debug, Template)]
#[template(path = "badge.svg", escape = "html")]
struct Badge {
    name: String,
    word: &'static str,
    /// Colours of the word and of what is behind it.
    fill: &'static str,
    left: usize,
    right: usize,
}

pub(crate) async fn badge(ask: &Ask, of: Of, namespace: &str, name: &str) -> Shown {
    let parent = match ask.query.get("in") {
        "" => namespace,
        parent => parent,
    };
    let request = ListRunsRequest {
        page_size: RUNS,
        ..asking(parent, &Series { of, name }.query(namespace))
    };
    let mut runs = ask.api.list_runs(request).await?.runs;
    newest_first(&mut runs);
    let ended = runs.iter().map(status_of).find(|it| !it.is_unfinished());
    let (word, fill) = match ended {
        Some(status) => (status.word(), fill(status)),
        None => ("no run", "#5a616a"),
    };
    let name = middle_cut(name, NAME);
    let view = Badge {
        left: name.chars().count() * CHARACTER + AROUND,
        right: word.len() * CHARACTER + AROUND,
        name,
        word,
        fill,
    };
    Ok(Page::written(Form::Svg, StatusCode::OK, &view))
}

/// The colour behind a white word; contrasts are 4.5 or more.
fn fill(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "#0b7562",
        Status::Failed => "#b01030",
        Status::Timeout => "#8f5600",
        _ => "#5a616a",
    }
}
