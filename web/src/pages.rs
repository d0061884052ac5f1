//! The pages. Each asks the services for what it shows, and makes a view of texts and numbers that
//! its template writes.

mod compare;
mod error;
mod frame;
mod health;
mod list;
mod login;
mod overview;
mod pipeline;
mod raw;
mod run;
mod runs;

use askama::Template;
use axum::http::StatusCode;

use crate::fault::Fault;
use crate::html::visible;

pub(crate) use compare::compare;
pub(crate) use error::error;
pub(crate) use health::health;
pub(crate) use login::{Attempt, login};
pub(crate) use overview::overview;
pub(crate) use pipeline::pipeline;
pub(crate) use raw::{Payload, payload, raw};
pub(crate) use run::run;
pub(crate) use runs::runs;

/// A page as it is sent.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) html: String,
}

/// A page, or why there is none.
pub(crate) type Shown = Result<Page, Fault>;

impl Page {
    /// Renders a template.
    fn of(template: &impl Template) -> Self {
        Self::with(StatusCode::OK, template)
    }

    fn with(status: StatusCode, template: &impl Template) -> Self {
        match template.render() {
            Ok(html) => Self {
                status,
                html: visible(html),
            },
            Err(error) => {
                tracing::error!(%error, "a page cannot be rendered");
                Self {
                    status: StatusCode::INTERNAL_SERVER_ERROR,
                    html: String::from(
                        "<!doctype html><title>Internal error</title><p>Internal error",
                    ),
                }
            }
        }
    }
}
