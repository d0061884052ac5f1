//! The page on which a caller pastes a token or goes to the provider, and the page after the last one.

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
    /// No cookie can hold the token of a provider, which has so many bytes.
    Large(usize),
    /// A provider answers a browser that did not ask, or did so long ago.
    NotBegun,
    /// A provider answers another sign-in.
    OtherState,
    /// Another error, in the server's words.
    Other(String),
    /// The same, and it may pass.
    Unavailable(String),
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
    /// Host and address of the provider.
    provider: Option<(&'a str, String)>,
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
        Attempt::Large(bytes) => Some(format!(
            "The token of this provider has {bytes} bytes, and a session holds 2,560. It fits if \
             the provider puts fewer claims into it, such as the groups of this application alone."
        )),
        Attempt::NotBegun => Some(
            "No sign-in goes on in this browser, or it took longer than 10 minutes. Begin again."
                .into(),
        ),
        Attempt::OtherState => Some(
            "This answer belongs to another sign-in, perhaps in another tab. Begin again.".into(),
        ),
        Attempt::Other(message) | Attempt::Unavailable(message) => Some(message.clone()),
    };
    let status = match error {
        _ if ask.asks_who && !may => StatusCode::FORBIDDEN,
        None => StatusCode::OK,
        Some(_) if matches!(attempt, Attempt::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
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
        provider: ask
            .provider
            .as_deref()
            .map(|host| (host, ask.links.depart(to))),
        elsewhere,
    };
    Page::with(status, &view)
}

#[derive(Debug, Template)]
#[template(path = "signed_out.html")]
struct SignedOut<'a> {
    frame: Frame,
    host: &'a str,
    link: &'a str,
}

/// The page after a session that began at a provider, with the address at which that one ends too.
pub(crate) fn signed_out(ask: &Ask, link: &str) -> Page {
    let mut frame = Frame::new(ask, "Signed out", Place::Elsewhere);
    frame.logout = None;
    Page::of(&SignedOut {
        frame,
        host: ask.provider.as_deref().unwrap_or_default(),
        link,
    })
}
