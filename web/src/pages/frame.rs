//! What every page has around its content.

use crate::ask::{Ask, Theme};

/// A place of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Runs,
    Stats,
    Health,
    Capture,
    You,
    Elsewhere,
}

/// A link of the navigation.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) label: &'static str,
    pub(super) link: String,
    pub(super) is_here: bool,
    /// The key that goes there, after `g`.
    pub(super) key: &'static str,
}

/// A choice of colours.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) is_set: bool,
}

/// The head and the foot of a page.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) items: Vec<Item>,
    pub(super) home: String,
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
    pub(super) theme: &'static str,
    pub(super) themes: Vec<Choice>,
    pub(super) zone: String,
    pub(super) here: String,
    pub(super) preferences: String,
    pub(super) jump: String,
    pub(super) you: Item,
    /// Where a caller who signed in signs out.
    pub(super) logout: Option<String>,
    pub(super) notice: &'static str,
    /// What cookies of pages are bound to.
    pub(super) base: String,
}

impl Frame {
    pub(super) fn new(ask: &Ask, title: impl Into<String>, place: Place) -> Self {
        let (links, scope) = (&ask.links, ask.scope());
        let item = |label, link, own, key| Item {
            label,
            link,
            is_here: own == place,
            key,
        };
        let themes = [Theme::System, Theme::Light, Theme::Dark];
        Self {
            title: title.into(),
            items: vec![
                item("Overview", links.overview(scope), Place::Overview, "o"),
                item("Runs", links.runs("", scope), Place::Runs, "r"),
                item("Stats", links.stats("", scope, "", ""), Place::Stats, "s"),
                item("Health", links.health("", scope), Place::Health, "h"),
                item("Capture", links.capture(scope), Place::Capture, "c"),
            ],
            home: links.overview(""),
            style: links.asset(&ask.assets.style.name),
            script: links.asset(&ask.assets.script.name),
            icon: links.asset(&ask.assets.icon.name),
            theme: ask.look.theme.name(),
            themes: themes
                .into_iter()
                .map(|theme| Choice {
                    name: theme.name(),
                    is_set: theme == ask.look.theme,
                })
                .collect(),
            zone: ask.look.zone.clone(),
            here: ask.here.clone(),
            preferences: links.preferences(),
            jump: links.jump(),
            you: item("You", links.you(), Place::You, "y"),
            logout: ask.signed_in().then(|| links.logout()),
            notice: ask.notice,
            base: links.base().to_owned(),
        }
    }
}
