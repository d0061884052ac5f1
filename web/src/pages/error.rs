//! Pages that say why there is none.

use askama::Template;

use super::Page;
use super::frame::{Frame, Place};
use crate::api::{Kind, Refusal};
use crate::ask::Ask;
use crate::fault::Fault;

#[derive(Debug, Template)]
#[template(path = "error.html")]
struct Problem<'a> {
    frame: Frame,
    status: u16,
    title: &'static str,
    message: &'a str,
    remedy: &'static str,
    /// Where another namespace is asked for.
    action: Option<String>,
    id: &'a str,
    again: &'a str,
    runs: String,
}

/// The page of a fault.
pub(crate) fn error(ask: &Ask, fault: &Fault) -> Page {
    let is_denied = matches!(
        fault,
        Fault::Refused(Refusal {
            kind: Kind::Denied,
            ..
        })
    );
    let status = fault.status();
    let view = Problem {
        frame: Frame::new(ask, fault.title(), Place::Elsewhere),
        status: status.as_u16(),
        title: fault.title(),
        message: fault.message(),
        remedy: fault.remedy(),
        action: is_denied.then(|| ask.links.runs("", "")),
        id: &ask.id,
        again: &ask.here,
        runs: ask.links.runs("", ""),
    };
    Page::with(status, &view)
}
