//! The pages. Each asks the services for what it shows, and makes a view of texts and numbers that
//! its template writes.

mod badge;
mod capture;
mod compare;
mod error;
mod feed;
mod frame;
mod graph;
mod health;
mod jump;
mod list;
mod login;
mod logs;
mod overview;
mod pipeline;
mod raw;
mod run;
mod runs;
mod series;
mod shell;
mod stats;
mod you;

use askama::Template;
use axum::http::StatusCode;
use futures::future::BoxFuture;

use crate::fault::Fault;
use crate::headers::Content;
use crate::html::visible;

use frame::Frame;

pub(crate) use badge::badge;
pub(crate) use capture::capture;
pub(crate) use compare::compare;
pub(crate) use error::error;
pub(crate) use feed::feed;
pub(crate) use graph::graph;
pub(crate) use health::health;
pub(crate) use jump::jump;
pub(crate) use login::{Attempt, login, signed_out};
pub(crate) use logs::{LogFile, logs, raw_log};
pub(crate) use overview::overview;
pub(crate) use pipeline::pipeline;
pub(crate) use raw::{Payload, payload, raw};
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use stats::stats;
pub(crate) use you::you;

/// A page as it is sent.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) html: String,
    pub(crate) kind: Form,
}

/// What a page is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Svg,
    Atom,
}

impl Form {
    pub(crate) fn media(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Svg => "image/svg+xml; charset=utf-8",
            Self::Atom => "application/atom+xml; charset=utf-8",
        }
    }

    pub(crate) fn content(self) -> Content {
        match self {
            Self::Html | Self::Atom => Content::Page,
            Self::Svg => Content::Badge,
        }
    }
}

/// A page, or why there is none.
pub(crate) type Shown = Result<Page, Fault>;

/// A page of which the beginning is sent while the rest is made.
pub(crate) struct Begun {
    /// All before the content.
    pub(crate) head: String,
    /// The whole page, which begins alike.
    pub(crate) whole: BoxFuture<'static, Shown>,
}

/// A page that is made, or begun.
pub(crate) enum Made {
    Whole(Page),
    Begun(Begun),
}

/// What stands before the content of every page.
#[derive(Debug, Template)]
#[template(path = "head.html")]
struct Head {
    frame: Frame,
}

/// With what the content of a page begins.
const CONTENT: &str = "<main id=\"content\" tabindex=\"-1\">";

impl Begun {
    /// A page with this frame, which the whole page has too.
    fn new(frame: Frame, whole: BoxFuture<'static, Shown>) -> Self {
        let mut head = Page::of(&Head { frame }).html;
        head.truncate(content_of(&head));
        Self { head, whole }
    }
}

impl Page {
    /// What follows the beginning of the page that was sent.
    pub(crate) fn rest(mut self) -> String {
        self.html.split_off(content_of(&self.html))
    }
}

/// Where the content of a page begins. Texts of others do not look so, because `<` in them is escaped.
fn content_of(html: &str) -> usize {
    html.find(CONTENT).map_or(0, |at| at + CONTENT.len())
}

impl Page {
    /// Renders a template.
    fn of(template: &impl Template) -> Self {
        Self::with(StatusCode::OK, template)
    }

    fn with(status: StatusCode, template: &impl Template) -> Self {
        Self::written(Form::Html, status, template)
    }

    fn written(kind: Form, status: StatusCode, template: &impl Template) -> Self {
        match template.render() {
            Ok(html) => Self {
                status,
                html: visible(html),
                kind,
            },
            Err(error) => {
                tracing::error!(%error, "a page cannot be rendered");
                Self {
                    status: StatusCode::INTERNAL_SERVER_ERROR,
                    html: String::from(
                        "<!doctype html><title>Internal error</title><p>Internal error",
                    ),
                    kind: Form::Html,
                }
            }
        }
    }
}
