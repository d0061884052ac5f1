//! Why there is no page, and what can be done about it.

use axum::http::StatusCode;

use crate::api::{Kind, Refusal};

/// Why a request has no page.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The server refused a call.
    Refused(Refusal),
    /// There is no such page.
    NoPage,
    /// The page does not take this method.
    Method,
    /// The request is not from a page of this server.
    Foreign,
    /// A form is too large, or broke off.
    Form,
    /// Too many pages are being made.
    Busy,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Fault {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Refused(refusal) => match refusal.kind {
                Kind::Invalid => StatusCode::BAD_REQUEST,
                Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
                Kind::Denied => StatusCode::FORBIDDEN,
                Kind::NotFound => StatusCode::NOT_FOUND,
                Kind::Large => StatusCode::PAYLOAD_TOO_LARGE,
                Kind::TooMuch => StatusCode::TOO_MANY_REQUESTS,
                Kind::Late => StatusCode::GATEWAY_TIMEOUT,
                Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                Kind::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            },
            Self::NoPage => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::Form => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What happened, in one line.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => match refusal.kind {
                Kind::Invalid => "The server cannot read this request",
                Kind::Unauthenticated => "The server does not know the caller",
                Kind::Denied => "Permission denied",
                Kind::NotFound => "Not found",
                Kind::Large => "Too large for a page",
                Kind::TooMuch => "A limit is reached",
                Kind::Late => "The answer takes too long",
                Kind::Unavailable => "The server is unavailable",
                Kind::Broken => "The server has an internal error",
            },
            Self::NoPage => "No such page",
            Self::Method => "This page is not changed this way",
            Self::Foreign => "This form was not sent by a page of this server",
            Self::Form => "The form is too large",
            Self::Busy => "The server is busy",
        }
    }

    /// What the server says about it.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.message,
            _ => "",
        }
    }

    /// What a reader can do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => match refusal.kind {
                Kind::Invalid => "Check the address or the filter.",
                Kind::Unauthenticated => {
                    "The Authorization header of this request is not valid, or has expired. It may \
                     come from a proxy in front of the server."
                }
                Kind::Denied => {
                    "Name a namespace whose records you may list, or ask for the verb list on records."
                }
                Kind::NotFound => "The run may have been deleted, or its name is misspelt.",
                Kind::Large => "The command line and REST give what pages do not.",
                Kind::TooMuch => "Narrow the filter, or try again in a minute.",
                Kind::Late => "Narrow the filter, for example by since:24h, and try again.",
                Kind::Unavailable => "Try again in a moment.",
                Kind::Broken => "The server's log has the cause, under the name of this request.",
            },
            Self::NoPage => "Go on from the list of runs.",
            Self::Method => "Go back and use the page's own buttons.",
            Self::Foreign => "Open the page again and send the form from there.",
            Self::Form => "Send less text.",
            Self::Busy => "Try again in a moment.",
        }
    }
}
