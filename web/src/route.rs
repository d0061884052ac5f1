//! Addresses of pages, read and written in one place.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stands in addresses as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What runs on the page of a pipeline have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Pipeline,
    Template,
    ClusterTemplate,
    Cron,
}

impl Of {
    /// Those that a label names, of which the first that a run has counts.
    pub(crate) const LABELLED: [Self; 3] = [Self::Template, Self::ClusterTemplate, Self::Cron];

    fn word(self) -> &'static str {
        match self {
            Self::Pipeline => "",
            Self::Template => "template",
            Self::ClusterTemplate => "cluster-template",
            Self::Cron => "cron",
        }
    }

    fn named(word: &str) -> Self {
        let found = Self::LABELLED.into_iter().find(|of| of.word() == word);
        found.unwrap_or(Self::Pipeline)
    }

    /// The label of Argo that names it.
    pub(crate) fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::Pipeline => return None,
            Self::Template => "workflows.argoproj.io/workflow-template",
            Self::ClusterTemplate => "workflows.argoproj.io/cluster-workflow-template",
            Self::Cron => "workflows.argoproj.io/cron-workflow",
        })
    }
}

/// What an address below `/ui` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    Runs,
    Run(String),
    Raw(String),
    Payload(String),
    Logs(String),
    RawLog(String),
    Compare,
    Graph(String),
    Pipeline {
        of: Of,
        namespace: String,
        name: String,
    },
    Badge {
        of: Of,
        namespace: String,
        name: String,
    },
    Stats,
    Health,
    Capture,
    Jump,
    Feed,
    You,
    Login,
    /// The way to the provider at which callers sign in, and back from it.
    Depart,
    Arrive,
    Logout,
    Preferences,
    Asset(String),
}

impl Route {
    /// The route of a path after `/ui`, still encoded; none if no page has it. `of` says what the runs
    /// of a pipeline have in common.
    pub(crate) fn parse(path: &str, of: &str) -> Option<Self> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let text = |part: &str| {
            let text = percent_decode_str(part).decode_utf8().ok()?;
            (!text.is_empty()).then(|| text.into_owned())
        };
        Some(match (first, rest) {
            ("", "") => Self::Overview,
            ("runs", "") => Self::Runs,
            ("compare", "") => Self::Compare,
            ("stats", "") => Self::Stats,
            ("health", "") => Self::Health,
            ("capture", "") => Self::Capture,
            ("jump", "") => Self::Jump,
            ("feed.atom", "") => Self::Feed,
            ("you", "") => Self::You,
            ("login", "") => Self::Login,
            ("login", "start") => Self::Depart,
            ("login", "callback") => Self::Arrive,
            ("logout", "") => Self::Logout,
            ("preferences", "") => Self::Preferences,
            ("run", record) => Self::Run(text(record)?),
            ("graph", record) => Self::Graph(text(record)?),
            ("raw", record) => Self::Raw(text(record)?),
            ("payload", record) => Self::Payload(text(record)?),
            ("logs", record) => Self::Logs(text(record)?),
            ("rawlog", record) => Self::RawLog(text(record)?),
            ("assets", name) => Self::Asset(text(name)?),
            ("pipeline", rest) => {
                let (namespace, name) = rest.split_once('/')?;
                Self::Pipeline {
                    of: Of::named(of),
                    namespace: text(namespace)?,
                    name: text(name)?,
                }
            }
            ("badge", rest) => {
                let (namespace, name) = rest.strip_suffix(".svg")?.split_once('/')?;
                Self::Badge {
                    of: Of::named(of),
                    namespace: text(namespace)?,
                    name: text(name)?,
                }
            }
            _ => return None,
        })
    }
}

/// Writes addresses, below the path at which a proxy may have put the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Links {
    base: String,
}

impl Links {
    /// Addresses below `base`, which is empty or begins and does not end with `/`.
    pub(crate) fn below(base: &str) -> Self {
        Self {
            base: format!("{base}/ui"),
        }
    }

    /// What every address begins with.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn overview(&self, scope: &str) -> String {
        self.asking("/", &[("ns", scope)])
    }

    /// The same with every pipeline.
    pub(crate) fn whole_overview(&self, scope: &str) -> String {
        self.asking("/", &[("ns", scope), ("all", "1")])
    }

    pub(crate) fn runs(&self, query: &str, scope: &str) -> String {
        self.asking("/runs", &[("q", query), ("ns", scope)])
    }

    pub(crate) fn page(&self, query: &str, scope: &str, token: &str) -> String {
        self.asking("/runs", &[("q", query), ("ns", scope), ("page", token)])
    }

    pub(crate) fn run(&self, record: &str) -> String {
        format!("{}/run/{}", self.base, segments(record))
    }

    pub(crate) fn raw(&self, record: &str, form: &str) -> String {
        self.asking(&format!("/raw/{}", segments(record)), &[("as", form)])
    }

    pub(crate) fn payload(&self, record: &str) -> String {
        format!("{}/payload/{}", self.base, segments(record))
    }

    /// The page of the logs of a run, with what it should show of them.
    pub(crate) fn logs(&self, record: &str, asked: &[(&str, &str)]) -> String {
        self.asking(&format!("/logs/{}", segments(record)), asked)
    }

    /// The log of a run as a file, or that of one container.
    pub(crate) fn raw_log(&self, record: &str, asked: &[(&str, &str)]) -> String {
        self.asking(&format!("/rawlog/{}", segments(record)), asked)
    }

    pub(crate) fn compare(&self, a: &str, b: &str) -> String {
        self.asking("/compare", &[("a", a), ("b", b)])
    }

    pub(crate) fn graph(&self, record: &str, part: &str) -> String {
        self.asking(&format!("/graph/{}", segments(record)), &[("of", part)])
    }

    /// The page of a pipeline whose runs are stored below `parent`.
    pub(crate) fn pipeline(&self, of: Of, parent: &str, namespace: &str, name: &str) -> String {
        self.pipeline_around(of, parent, namespace, name, "")
    }

    /// The same with this run in its middle.
    pub(crate) fn pipeline_around(
        &self,
        of: Of,
        parent: &str,
        namespace: &str,
        name: &str,
        record: &str,
    ) -> String {
        let path = format!("/pipeline/{}/{}", encoded(namespace), encoded(name));
        let parent = if parent == namespace { "" } else { parent };
        let asked = [("of", of.word()), ("in", parent), ("run", record)];
        self.asking(&path, &asked)
    }

    pub(crate) fn badge(&self, of: Of, parent: &str, namespace: &str, name: &str) -> String {
        let path = format!("/badge/{}/{}.svg", encoded(namespace), encoded(name));
        let parent = if parent == namespace { "" } else { parent };
        self.asking(&path, &[("of", of.word()), ("in", parent)])
    }

    /// Groups of the runs that `query` selects.
    pub(crate) fn stats(&self, query: &str, scope: &str, by: &str, measure: &str) -> String {
        let asked = [
            ("q", query),
            ("ns", scope),
            ("by", by),
            ("measure", measure),
        ];
        self.asking("/stats", &asked)
    }

    pub(crate) fn capture(&self, scope: &str) -> String {
        self.asking("/capture", &[("ns", scope)])
    }

    pub(crate) fn jump(&self) -> String {
        format!("{}/jump", self.base)
    }

    pub(crate) fn feed(&self, query: &str, scope: &str) -> String {
        self.asking("/feed.atom", &[("q", query), ("ns", scope)])
    }

    pub(crate) fn you(&self) -> String {
        format!("{}/you", self.base)
    }

    pub(crate) fn health(&self, query: &str, scope: &str) -> String {
        self.asking("/health", &[("q", query), ("ns", scope)])
    }

    pub(crate) fn login(&self, to: &str) -> String {
        self.asking("/login", &[("to", to)])
    }

    /// The way to the provider of the server, and then to `to`.
    pub(crate) fn depart(&self, to: &str) -> String {
        self.asking("/login/start", &[("to", to)])
    }

    /// Where the provider sends browsers.
    pub(crate) fn arrive(&self) -> String {
        format!("{}/login/callback", self.base)
    }

    pub(crate) fn logout(&self) -> String {
        format!("{}/logout", self.base)
    }

    pub(crate) fn preferences(&self) -> String {
        format!("{}/preferences", self.base)
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        format!("{}/assets/{name}", self.base)
    }

    fn asking(&self, path: &str, query: &[(&str, &str)]) -> String {
        format!("{}{path}{}", self.base, parameters(query))
    }
}

/// What stands in an address after its path; values that are empty are left out.
pub(crate) fn parameters(query: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let given = query.iter().filter(|(_, value)| !value.is_empty());
    for (at, (key, value)) in given.enumerate() {
        text.push(if at == 0 { '?' } else { '&' });
        text.push_str(key);
        text.push('=');
        text.push_str(&encoded(value));
    }
    text
}

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

fn segments(name: &str) -> String {
    let parts: Vec<_> = name.split('/').map(encoded).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_that_is_written_is_read_back() {
        let links = Links::below("/base");
        let odd = "shop/results/é?#%2F\"<b>/records/x&y=z";
        for (link, route) in [
            (links.overview("a b"), Route::Overview),
            (links.runs("failed took>10m", "shop"), Route::Runs),
            (links.run(odd), Route::Run(odd.to_owned())),
            (links.raw(odd, "yaml"), Route::Raw(odd.to_owned())),
            (links.payload(odd), Route::Payload(odd.to_owned())),
            (
                links.logs(odd, &[("step", "a&b")]),
                Route::Logs(odd.to_owned()),
            ),
            (links.raw_log(odd, &[]), Route::RawLog(odd.to_owned())),
            (links.compare(odd, ""), Route::Compare),
            (links.graph(odd, "n/1"), Route::Graph(odd.to_owned())),
            (
                links.pipeline(Of::Cron, "other", "shop", "a/b?c"),
                Route::Pipeline {
                    of: Of::Cron,
                    namespace: "shop".to_owned(),
                    name: "a/b?c".to_owned(),
                },
            ),
            (
                links.badge(Of::Pipeline, "", "shop", "a/b.svg"),
                Route::Badge {
                    of: Of::Pipeline,
                    namespace: "shop".to_owned(),
                    name: "a/b.svg".to_owned(),
                },
            ),
            (links.stats("a", "b", "label(x)", ""), Route::Stats),
            (links.health("", ""), Route::Health),
            (links.capture(""), Route::Capture),
            (links.jump(), Route::Jump),
            (links.feed("failed", ""), Route::Feed),
            (links.you(), Route::You),
            (links.login("/ui/runs"), Route::Login),
            (links.depart("/ui/runs"), Route::Depart),
            (links.arrive(), Route::Arrive),
            (links.logout(), Route::Logout),
            (links.preferences(), Route::Preferences),
            (links.asset("a.css"), Route::Asset("a.css".to_owned())),
        ] {
            let path = link.strip_prefix("/base/ui").unwrap();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let of = query.strip_prefix("of=").unwrap_or_default();
            let of = of.split('&').next().unwrap();
            assert_eq!(Route::parse(path, of), Some(route), "{link}");
            assert!(!link.contains(['"', '<', ' ']), "{link}");
        }
    }

    #[test]
    fn what_no_page_has_is_no_route() {
        for path in [
            "/nothing",
            "/run/",
            "/runs/more",
            "/pipeline/a",
            "/run/%ff",
            "/badge/a/b",
            "/login/other",
        ] {
            assert_eq!(Route::parse(path, ""), None, "{path}");
        }
    }
}
