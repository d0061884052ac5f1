//! The caller of pages: who that is, how long a session lasts, and how pages look.

use askama::Template;

use super::Page;
use super::frame::{Frame, Place};
use super::shell::quoted;
use crate::ask::Ask;
use crate::time::{When, length};

/// Zones that are offered; any name of the IANA database is taken.
const ZONES: [&str; 8] = [
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Sydney",
];

#[derive(Debug, Template)]
#[template(path = "you.html")]
struct You<'a> {
    frame: Frame,
    caller: &'a str,
    auth: &'static str,
    asks_who: bool,
    /// When the session ends, and how long it lasts until then.
    ends: Option<(When, String)>,
    has_header: bool,
    zone: &'a str,
    chosen: Option<&'a str>,
    zones: [&'static str; 8],
    preferences: String,
    to: String,
    commands: Vec<String>,
    logout: Option<String>,
    login: Option<String>,
}

pub(crate) fn you(ask: &Ask) -> Page {
    let server = ask.public.as_deref().unwrap_or("https://THIS-SERVER");
    let mut commands = vec![format!(
        "hindsight context set here --server {}",
        quoted(server)
    )];
    if ask.asks_who {
        commands.push("hindsight login".to_owned());
    }
    let view = You {
        frame: Frame::new(ask, "You", Place::You),
        caller: &ask.caller,
        auth: ask.auth,
        asks_who: ask.asks_who,
        ends: ask.ends.map(|ends| {
            let left = ends.duration_since(ask.clock.now).as_secs_f64();
            (ask.clock.when(ends), length(left))
        }),
        has_header: ask.has_header,
        zone: &ask.look.zone,
        chosen: ask.look.chosen.as_deref(),
        zones: ZONES,
        preferences: ask.links.preferences(),
        to: ask.links.you(),
        commands,
        logout: ask.signed_in().then(|| ask.links.logout()),
        login: (ask.asks_who && !ask.has_header).then(|| ask.links.login(&ask.links.you())),
    };
    Page::of(&view)
}
