//! The list of runs: one box for words and CEL, and a page of what matches.

use askama::Template;
use axum::http::StatusCode;
use hindsight_proto::v1::{ListRunsRequest, ListRunsResponse};

use super::frame::{Frame, Place};
use super::list::{Row, rows};
use super::series::asking;
use super::{Page, Shown};
use crate::api::{Kind, Refusal};
use crate::ask::Ask;
use crate::fault::Fault;
use crate::query::{self, Wrong};

/// Runs of one page.
const ROWS: i32 = 50;

/// Words that are often added, and what they say.
const CHIPS: [(&str, &str); 7] = [
    ("failed", "Failed"),
    ("running", "Running"),
    ("is:top", "Whole runs only"),
    ("since:24h", "Last 24 hours"),
    ("since:7d", "Last 7 days"),
    ("took>10m", "Longer than 10 min"),
    ("kind:pr", "PipelineRuns"),
];

/// A word of the filter that a click adds or takes away.
#[derive(Debug)]
struct Chip {
    text: String,
    /// What the word is, if the text does not say it.
    word: String,
    link: String,
    is_on: bool,
}

#[derive(Debug, Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    query: String,
    scope: String,
    /// Where the form is sent.
    action: String,
    chips: Vec<Chip>,
    rows: Vec<Row>,
    /// Whether a row may change soon.
    is_live: bool,
    /// The address of this page, for what asks again.
    again: String,
    next: Option<String>,
    first: Option<String>,
    /// What the query was read as.
    read_as: String,
    wrong: Option<Wrong>,
    /// Queries that match more.
    wider: Vec<Chip>,
    /// Whether nothing is asked for and nothing is there.
    is_first_use: bool,
    examples: Vec<Chip>,
    stats: String,
    feed: String,
}

pub(crate) async fn runs(ask: &Ask) -> Shown {
    let (text, scope, token) = (ask.query.get("q"), ask.scope(), ask.query.get("page"));
    let now = ask.present();
    let found = match query::wrong_word(text, &now) {
        Some(wrong) => Err(wrong),
        None => match list(ask, text, scope, token).await {
            Ok(found) => Ok(found),
            Err(Refusal {
                kind: Kind::Invalid,
                message,
            }) => Err(query::wrong_cel(text, &now, message)),
            Err(refusal) => return Err(Fault::from(refusal)),
        },
    };
    let status = match found {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::BAD_REQUEST,
    };
    let (found, wrong) = match found {
        Ok(found) => (found, None),
        Err(wrong) => (ListRunsResponse::default(), Some(wrong)),
    };
    let rows = rows(ask, &found.runs);
    let is_words = wrong.is_none() && !query::is_cel(text, &now);
    let is_empty = rows.is_empty() && wrong.is_none();
    let link = |text: &str| ask.links.runs(text, scope);
    let view = Runs {
        frame: Frame::new(ask, "Runs", Place::Runs),
        query: text.to_owned(),
        scope: scope.to_owned(),
        action: ask.links.runs("", ""),
        chips: if is_words {
            chips(text, &link)
        } else {
            Vec::new()
        },
        is_live: token.is_empty() && wrong.is_none(),
        again: ask.links.runs(text, scope),
        next: (!found.next_page_token.is_empty())
            .then(|| ask.links.page(text, scope, &found.next_page_token)),
        first: (!token.is_empty()).then(|| link(text)),
        wider: if is_empty && is_words {
            wider(ask, text, scope)
        } else {
            Vec::new()
        },
        is_first_use: is_empty && text.is_empty() && scope.is_empty() && token.is_empty(),
        examples: if wrong.is_some() {
            examples(&link)
        } else {
            Vec::new()
        },
        stats: ask.links.stats(text, scope, by_of(text), ""),
        feed: ask.links.feed(text, scope),
        read_as: found.query_filter,
        rows,
        wrong,
    };
    Ok(Page::with(status, &view))
}

/// What runs are grouped by that these words select: of one pipeline, by day.
fn by_of(text: &str) -> &'static str {
    let is_one = query::split(text)
        .iter()
        .any(|word| word.starts_with("pipeline:"));
    if is_one { "day(started)" } else { "pipeline" }
}

async fn list(
    ask: &Ask,
    text: &str,
    scope: &str,
    token: &str,
) -> Result<ListRunsResponse, Refusal> {
    let request = ListRunsRequest {
        time_zone: ask.look.zone.clone(),
        page_size: ROWS,
        page_token: token.to_owned(),
        ..asking(scope, text)
    };
    ask.api.list_runs(request).await
}

/// The usual words, then the others that the text has.
fn chips(text: &str, link: &impl Fn(&str) -> String) -> Vec<Chip> {
    let words = query::split(text);
    let usual = CHIPS.into_iter().map(|(word, label)| Chip {
        text: label.to_owned(),
        word: word.to_owned(),
        link: link(&query::toggled(text, word)),
        is_on: words.contains(&word),
    });
    let others = words
        .iter()
        .filter(|word| CHIPS.iter().all(|(usual, _)| usual != *word))
        .map(|word| Chip {
            text: (*word).to_owned(),
            word: String::new(),
            link: link(&query::toggled(text, word)),
            is_on: true,
        });
    usual.chain(others).collect()
}

/// The text without each of its words, and all namespaces instead of one.
fn wider(ask: &Ask, text: &str, scope: &str) -> Vec<Chip> {
    let mut wider = Vec::new();
    let chip = |text: String, word: &str, link| Chip {
        text,
        word: word.to_owned(),
        link,
        is_on: false,
    };
    if !scope.is_empty() {
        let link = ask.links.runs(text, "");
        wider.push(chip("in all namespaces".to_owned(), "", link));
    }
    for word in query::split(text) {
        let link = ask.links.runs(&query::toggled(text, word), scope);
        wider.push(chip("without".to_owned(), word, link));
    }
    wider
}

/// What a text may look like.
fn examples(link: &impl Fn(&str) -> String) -> Vec<Chip> {
    let texts = [
        "failed since:24h",
        "pipeline:release took>10m",
        "label:team=web not:succeeded",
        "run.outcome == FAILURE && run.task == \"test\"",
    ];
    let examples = texts.into_iter().map(|text| Chip {
        text: text.to_owned(),
        word: String::new(),
        link: link(text),
        is_on: false,
    });
    examples.collect()
}
