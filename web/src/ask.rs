//! What a page is asked for: by whom, with which parameters, and how it should look.

use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};

use hindsight_filter::words::Now;

use crate::api::Api;
use crate::assets::Assets;
use crate::form::Form;
use crate::route::Links;
use crate::time::Clock;

/// Names of the cookies of how pages look.
pub(crate) const THEME: &str = "hs_theme";
pub(crate) const ZONE: &str = "hs_zone";
pub(crate) const CHOSEN_ZONE: &str = "hs_chosen_zone";

/// Colours of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    /// The colours of this name; those of the system if there are none.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A zone of this name, which is that of a database of zones.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain);
    is_name.then(|| TimeZone::get(name).ok()).flatten()
}

/// One request for a page.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The services with the caller's credentials.
    pub(crate) api: Api,
    /// The parameters of the address.
    pub(crate) query: Form,
    pub(crate) links: Arc<Links>,
    pub(crate) assets: Arc<Assets>,
    pub(crate) clock: Clock,
    pub(crate) look: Look,
    /// Who asks; empty while callers are not asked who they are.
    pub(crate) caller: String,
    /// The configured way in which callers say who they are.
    pub(crate) auth: &'static str,
    /// The configured address of the server.
    pub(crate) public: Option<String>,
    /// The address of this page.
    pub(crate) here: String,
    /// Name of the request, which logs have too.
    pub(crate) id: String,
    /// When the session of a caller ends who signed in by a page.
    pub(crate) ends: Option<Timestamp>,
    /// Whether the session, which may be over, began at a provider.
    pub(crate) is_provided: bool,
    /// The host at which callers sign in, if that is elsewhere.
    pub(crate) provider: Option<String>,
    /// Whether the request itself names its caller.
    pub(crate) has_header: bool,
    /// Whether callers are asked who they are.
    pub(crate) asks_who: bool,
    /// What stands above every page.
    pub(crate) notice: &'static str,
}

/// How pages should look.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// Name of the zone of the clock.
    pub(crate) zone: String,
    /// The zone that was chosen instead of that of the browser.
    pub(crate) chosen: Option<String>,
    pub(crate) theme: Theme,
}

impl Ask {
    /// Whether the caller signed in by a page.
    pub(crate) fn signed_in(&self) -> bool {
        self.ends.is_some()
    }

    /// What relative times and dates of filters mean.
    pub(crate) fn present(&self) -> Now {
        Now {
            time: self.clock.now,
            zone: self.clock.zone.clone(),
        }
    }

    /// The parent whose runs are asked for; empty is all of them.
    pub(crate) fn scope(&self) -> &str {
        self.query.get("ns")
    }
}

/// The results of one parent, or of all if it is empty.
pub(crate) fn results_of(scope: &str) -> String {
    match scope {
        "" => "-/results/-".to_owned(),
        scope => format!("{scope}/results/-"),
    }
}

#[cfg(test)]
impl Ask {
    /// A caller whose calls reach no server. Needs a runtime.
    pub(crate) fn sample() -> Self {
        Self {
            api: Api::sample(),
            query: Form::default(),
            links: Arc::new(Links::below("")),
            assets: Arc::new(Assets::new()),
            clock: Clock {
                now: "2026-03-02T17:00:00Z".parse().unwrap(),
                zone: TimeZone::UTC,
            },
            look: Look {
                zone: "UTC".to_owned(),
                chosen: None,
                theme: Theme::System,
            },
            caller: String::new(),
            auth: "off",
            public: None,
            here: "/ui/".to_owned(),
            id: String::new(),
            ends: None,
            is_provided: false,
            provider: None,
            has_header: false,
            asks_who: false,
            notice: "",
        }
    }
}
