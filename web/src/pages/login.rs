//! The page on which a caller pastes a token.

use askama::Template;
use axum::http::StatusCode;

use super::Page;
use super::frame::{Frame, Place};
use crate::ask::Ask;

/// Why the page is shown.
#[derive(Debug, Clone)]
pub(crate) enum Attempt {
    /// It was asked for.
    First,
    /// The server does not know the token.
    Unknown,
    /// No cookie can hold it.
    Unusable,
    /// Another error, in the server's words.
    Other(String),
}

#[derive(Debug, Template)]
#[template(path = "login.html")]
struct Login<'a> {
    frame: Frame,
    action: String,
    to: &'a str,
    error: Option<String>,
    /// Whether browsers that are elsewhere may send a token here.
    may: bool,
    is_needed: bool,
    /// The same page at the configured address of the server.
    elsewhere: Option<String>,
}

/// The page, which leads to `to`. Without `may`, the way to the server is not safe for tokens.
pub(crate) fn login(ask: &Ask, to: &str, attempt: &Attempt, may: bool) -> Page {
    let error = match attempt {
        Attempt::First => None,
        Attempt::Unknown => Some("The server does not know this token, or it has expired.".into()),
        Attempt::Unusable => Some(
            "This is not a token that can be kept: want 1 to 2,560 visible ASCII characters."
                .into(),
        ),
        Attempt::Other(message) => Some(message.clone()),
    };
    let status = match error {
        _ if ask.asks_who && !may => StatusCode::FORBIDDEN,
        None => StatusCode::OK,
        Some(_) => StatusCode::UNAUTHORIZED,
    };
    let secure = ask.public.as_deref().filter(|it| it.starts_with("https:"));
    let elsewhere = secure.and_then(|public| {
        let path = ask.links.base().strip_suffix("/ui")?;
        Some(format!(
            "{}{}",
            public.strip_suffix(path)?,
            ask.links.login(to)
        ))
    });
    let view = Login {
        frame: Frame::new(ask, "Sign in", Place::Elsewhere),
        action: ask.links.login(""),
        to,
        error,
        may,
        is_needed: ask.asks_who,
        elsewhere,
    };
    Page::with(status, &view)
}
