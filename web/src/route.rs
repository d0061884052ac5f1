//! Addresses of pages, read and written in one place.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stands in addresses as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What an address below `/ui` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    Runs,
    Run(String),
    Raw(String),
    Payload(String),
    Compare,
    Pipeline { namespace: String, name: String },
    Health,
    Login,
    Logout,
    Preferences,
    Asset(String),
}

impl Route {
    /// The route of a path after `/ui`, still encoded; none if no page has it.
    pub(crate) fn parse(path: &str) -> Option<Self> {
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
            ("health", "") => Self::Health,
            ("login", "") => Self::Login,
            ("logout", "") => Self::Logout,
            ("preferences", "") => Self::Preferences,
            ("run", record) => Self::Run(text(record)?),
            ("raw", record) => Self::Raw(text(record)?),
            ("payload", record) => Self::Payload(text(record)?),
            ("assets", name) => Self::Asset(text(name)?),
            ("pipeline", rest) => {
                let (namespace, name) = rest.split_once('/')?;
                Self::Pipeline {
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

    pub(crate) fn compare(&self, a: &str, b: &str) -> String {
        self.asking("/compare", &[("a", a), ("b", b)])
    }

    /// The page of a pipeline whose runs are stored below `parent`.
    pub(crate) fn pipeline(&self, parent: &str, namespace: &str, name: &str) -> String {
        let path = format!("/pipeline/{}/{}", encoded(namespace), encoded(name));
        let parent = if parent == namespace { "" } else { parent };
        self.asking(&path, &[("in", parent)])
    }

    pub(crate) fn health(&self, query: &str, scope: &str) -> String {
        self.asking("/health", &[("q", query), ("ns", scope)])
    }

    pub(crate) fn login(&self, to: &str) -> String {
        self.asking("/login", &[("to", to)])
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
        let mut link = format!("{}{path}", self.base);
        let given = query.iter().filter(|(_, value)| !value.is_empty());
        for (at, (key, value)) in given.enumerate() {
            link.push(if at == 0 { '?' } else { '&' });
            link.push_str(key);
            link.push('=');
            link.push_str(&encoded(value));
        }
        link
    }
}

fn encoded(text: &str) -> String {
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
            (links.compare(odd, ""), Route::Compare),
            (
                links.pipeline("other", "shop", "a/b?c"),
                Route::Pipeline {
                    namespace: "shop".to_owned(),
                    name: "a/b?c".to_owned(),
                },
            ),
            (links.health("", ""), Route::Health),
            (links.login("/ui/runs"), Route::Login),
            (links.logout(), Route::Logout),
            (links.preferences(), Route::Preferences),
            (links.asset("a.css"), Route::Asset("a.css".to_owned())),
        ] {
            let path = link.strip_prefix("/base/ui").unwrap();
            let path = path.split('?').next().unwrap();
            assert_eq!(Route::parse(path), Some(route), "{link}");
            assert!(!link.contains(['"', '<', ' ']), "{link}");
        }
    }

    #[test]
    fn what_no_page_has_is_no_route() {
        for path in ["/nothing", "/run/", "/runs/more", "/pipeline/a", "/run/%ff"] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }
}
