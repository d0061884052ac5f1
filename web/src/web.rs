//! Requests below `/ui`: which page they are for, who asks, and what is sent back.

mod callers;
mod change;
mod page;
mod reply;
mod sign_in;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use futures::FutureExt as _;
use hindsight_proto::metadata::REQUEST_ID;
use hindsight_runtime::clock::Clock;
use jiff::tz::TimeZone;

use crate::api::{Api, Callers, Kind, Refusal, SignIn, metadata_of, metadata_with};
use crate::ask::{Ask, CHOSEN_ZONE, Look, THEME, Theme, ZONE, zone};
use crate::assets::Assets;
use crate::fault::Fault;
use crate::form::Form;
use crate::headers::secured;
use crate::pages::{self, Page};
use crate::pending::Pendings;
use crate::route::{Links, Route};
use crate::sealed::cookies;
use crate::session::Sessions;
use crate::time;
use crate::turns::Turns;

use reply::{see, sent, takes_gzip, unasked};

/// What stands above pages of a server that other machines reach without authentication.
const OPEN: &str =
    "Authentication is off: everyone who reaches this server may read and delete everything.";

/// The address from which a request came.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What the pages are told about their server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path at which a proxy has put the server: empty, or beginning and not ending with `/`.
    pub base: String,
    /// The configured origin at which browsers reach the server, such as `https://results.example`.
    pub origin: Option<String>,
    /// Whether browsers reach the server over TLS.
    pub secure: bool,
    /// Whether this server itself ends TLS.
    pub encrypted: bool,
    /// The configured way in which callers say who they are.
    pub auth: &'static str,
    /// Whether callers are asked who they are.
    pub asks_who: bool,
    /// Whether other machines reach the server.
    pub is_remote: bool,
    /// What sessions are sealed with; the same on all replicas.
    pub secret: Vec<u8>,
}

impl Options {
    /// The configured address of the server, such as `https://results.example/history`.
    fn public(&self) -> Option<String> {
        let origin = self.origin.as_ref()?;
        Some(format!("{origin}{}", self.base))
    }
}

/// The pages of one server. Clones share their limits.
#[derive(Debug, Clone)]
pub struct Web {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    grpc: Router,
    clock: Arc<dyn Clock>,
    options: Options,
    links: Arc<Links>,
    assets: Arc<Assets>,
    sessions: Sessions,
    pendings: Pendings,
    callers: Arc<dyn Callers>,
    provider: Option<Arc<dyn SignIn>>,
    turns: Turns,
}

/// On answers to callers whom the API answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered;

/// What a handler answers.
enum Reply {
    Page(Page),
    Ready(Response<Body>),
}

impl Web {
    /// Pages that call the services that `grpc` routes calls to, for callers whom `callers` knows, and who sign in
    /// at `provider` if there is one. A provider needs the configured origin.
    #[must_use]
    pub fn new(
        grpc: Router,
        callers: Arc<dyn Callers>,
        provider: Option<Arc<dyn SignIn>>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Self {
        let inner = Inner {
            grpc,
            clock,
            links: Arc::new(Links::below(&options.base)),
            assets: Arc::new(Assets::new()),
            sessions: Sessions::new(&options.secret, options.secure),
            pendings: Pendings::new(&options.secret, options.secure),
            callers,
            provider,
            turns: Turns::new(),
            options,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Whether a request is for these pages: those below `/ui`, with or without the path that a
    /// proxy may have taken away, and browsers that ask for `/`.
    #[must_use]
    pub fn takes(&self, request: &Request<Body>) -> bool {
        let path = self.inner.inside(request.uri());
        let is_below = path == "/ui" || path.starts_with("/ui/");
        is_below || (is_root(path) && wants_html(request.headers()))
    }

    /// Answers a request of a browser.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        let response = self.inner.answer(request).boxed().await;
        let response = secured(response, self.inner.options.secure);
        match is_head {
            true => response.map(|_body| Body::empty()),
            false => response,
        }
    }
}

fn is_root(path: &str) -> bool {
    matches!(path, "" | "/")
}

fn wants_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

impl Inner {
    /// The path of an address without that of a proxy.
    fn inside<'a>(&self, uri: &'a Uri) -> &'a str {
        let path = uri.path();
        match path.strip_prefix(self.options.base.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            _ => path,
        }
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let path = self.inside(request.uri()).to_owned();
        let Some(path) = path.strip_prefix("/ui").filter(|rest| !rest.is_empty()) else {
            return see(&self.links.overview(""));
        };
        let asked = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
        let route = Route::parse(path, asked.get("of"));
        if let Some(Route::Asset(name)) = &route
            && let Some(file) = self.assets.answer(name, takes_gzip(request.headers()))
        {
            return file;
        }
        let mut ask = self.ask(&request, asked);
        let (parts, body) = request.into_parts();
        let is_open = matches!(route, Some(Route::Login | Route::Depart | Route::Arrive));
        let is_part = matches!(route, Some(Route::Badge { .. } | Route::Feed));
        let replied = self.reply(&mut ask, route, &parts, body).await;
        let page = match replied {
            Ok(Reply::Ready(response)) => return response,
            Ok(Reply::Page(page)) if !is_open => {
                let mut response = sent(page, &parts.headers);
                response.extensions_mut().insert(Answered);
                return response;
            }
            Ok(Reply::Page(page)) => page,
            Err(Fault::Refused(Refusal {
                kind: Kind::Unauthenticated,
                ..
            })) if is_part => return unasked(),
            Err(Fault::Refused(Refusal {
                kind: Kind::Unauthenticated,
                ..
            })) if !ask.has_header => return self.to_login(&ask, &parts.headers),
            Err(fault) => pages::error(&ask, &fault),
        };
        sent(page, &parts.headers)
    }

    /// Who asks, and how pages should look.
    fn ask(&self, request: &Request<Body>, query: Form) -> Ask {
        let headers = request.headers();
        let now = self.clock.now();
        let given = headers.get_all(header::COOKIE).iter();
        let cookies = cookies(given.map(HeaderValue::as_bytes));
        let cookie = |name| cookies.iter().find(|(key, _)| key == name);
        let kept = |name| cookie(name).map_or("", |(_, value)| value.as_str());
        let chosen = zone(kept(CHOSEN_ZONE)).map(|_zone| kept(CHOSEN_ZONE).to_owned());
        let asked = [query.get("tz"), kept(CHOSEN_ZONE), kept(ZONE)];
        let named = asked.into_iter().find_map(|name| Some((name, zone(name)?)));
        let (zone, zone_name) = match named {
            Some((name, zone)) => (zone, name.to_owned()),
            None => (TimeZone::UTC, "UTC".to_owned()),
        };
        let id = headers.get(REQUEST_ID).cloned();
        let id = id.unwrap_or_else(|| HeaderValue::from_static("unknown"));
        // A header that names the caller comes from a proxy, which decides.
        let has_header = headers.contains_key(header::AUTHORIZATION);
        let session = match has_header {
            true => None,
            false => self.sessions.open(&cookies),
        };
        let is_provided = session.as_ref().is_some_and(|it| it.is_provided);
        let session = session.filter(|session| now < session.ends);
        let session = session.and_then(|session| {
            let metadata = metadata_with(&session.token, &id)?;
            Some((metadata, session.ends))
        });
        let (session, ends) = session.unzip();
        let metadata = session.unwrap_or_else(|| metadata_of(headers, &id));
        let (asks_who, is_remote) = (self.options.asks_who, self.options.is_remote);
        let target = request.uri().path_and_query();
        let inside = self.inside(request.uri());
        let target = target.map_or(inside, |target| target.as_str());
        let base = &self.options.base;
        let here = match target.starts_with(self.links.base()) {
            true => target.to_owned(),
            false => format!("{base}{target}"),
        };
        Ask {
            api: Api::new(&self.grpc, metadata),
            links: Arc::clone(&self.links),
            assets: Arc::clone(&self.assets),
            clock: time::Clock { now, zone },
            look: Look {
                zone: zone_name,
                chosen,
                theme: Theme::named(kept(THEME)),
            },
            caller: String::new(),
            auth: self.options.auth,
            public: self.options.public(),
            here,
            id: id.to_str().unwrap_or_default().to_owned(),
            ends,
            is_provided,
            provider: self.provider.as_ref().map(|it| it.host().to_owned()),
            has_header,
            asks_who,
            notice: if is_remote && !asks_who { OPEN } else { "" },
            query,
        }
    }

    /// The way to the page on which callers sign in, and back.
    fn to_login(&self, ask: &Ask, headers: &HeaderMap) -> Response<Body> {
        // A session that is over goes on without a question if that at the provider does.
        let is_over = ask.is_provided && !ask.signed_in() && self.provider.is_some();
        let login = match is_over {
            true => self.links.depart(&ask.here),
            false => self.links.login(&ask.here),
        };
        if !headers.contains_key("hx-request") {
            return see(&login);
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        if let Ok(login) = HeaderValue::from_str(&login) {
            response.headers_mut().insert("hx-redirect", login);
        }
        response
    }
}
