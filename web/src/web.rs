//! Requests below `/ui`: which page they are for, who asks, and what is sent back.

mod change;
mod reply;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, request::Parts,
};
use hindsight_proto::metadata::REQUEST_ID;
use hindsight_runtime::clock::Clock;
use jiff::tz::TimeZone;
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::transport::Channel;

use crate::api::{Api, Kind, Refusal, metadata_of, metadata_with};
use crate::ask::{Ask, THEME, Theme, ZONE, zone};
use crate::assets::Assets;
use crate::fault::Fault;
use crate::form::Form;
use crate::headers::secured;
use crate::origin::safe_return;
use crate::pages::{self, Attempt, Page};
use crate::route::{Links, Route};
use crate::session::{Sessions, cookies};
use crate::time;

use reply::{download, see, sent, takes_gzip};

/// How much of pages is made at once: a list takes one share, a page of a whole run several.
const SHARES: usize = 64;
const LIGHT: u32 = 1;
const HEAVY: u32 = 8;
/// How long a page waits for its share.
const PATIENCE: Duration = Duration::from_secs(5);
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
    /// Whether callers are asked who they are.
    pub asks_who: bool,
    /// Whether other machines reach the server.
    pub is_remote: bool,
    /// What sessions are sealed with; the same on all replicas.
    pub secret: Vec<u8>,
}

/// The pages of one server. Clones share their limits.
#[derive(Debug, Clone)]
pub struct Web {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    channel: Channel,
    clock: Arc<dyn Clock>,
    options: Options,
    links: Arc<Links>,
    assets: Arc<Assets>,
    sessions: Sessions,
    shares: Semaphore,
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
    /// Pages that call the services behind `channel`.
    #[must_use]
    pub fn new(channel: Channel, clock: Arc<dyn Clock>, options: Options) -> Self {
        let inner = Inner {
            channel,
            clock,
            links: Arc::new(Links::below(&options.base)),
            assets: Arc::new(Assets::new()),
            sessions: Sessions::new(&options.secret, options.secure),
            shares: Semaphore::new(SHARES),
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
        let response = self.inner.answer(request).await;
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
        let route = Route::parse(path);
        if let Some(Route::Asset(name)) = &route
            && let Some(file) = self.assets.answer(name, takes_gzip(request.headers()))
        {
            return file;
        }
        let ask = self.ask(&request);
        let (parts, body) = request.into_parts();
        let is_open = matches!(route, Some(Route::Login));
        let replied = self.reply(&ask, route, &parts, body).await;
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
            })) if !ask.has_header => return self.to_login(&ask, &parts.headers),
            Err(fault) => pages::error(&ask, &fault),
        };
        sent(page, &parts.headers)
    }

    /// Who asks, and how pages should look.
    fn ask(&self, request: &Request<Body>) -> Ask {
        let headers = request.headers();
        let now = self.clock.now();
        let given = headers.get_all(header::COOKIE).iter();
        let cookies = cookies(given.map(HeaderValue::as_bytes));
        let cookie = |name| cookies.iter().find(|(key, _)| key == name);
        let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
        let asked = [query.get("tz"), cookie(ZONE).map_or("", |(_, name)| name)];
        let named = asked.into_iter().find_map(|name| Some((name, zone(name)?)));
        let (zone, zone_name) = match named {
            Some((name, zone)) => (zone, name.to_owned()),
            None => (TimeZone::UTC, "UTC".to_owned()),
        };
        let id = headers.get(REQUEST_ID).cloned();
        let id = id.unwrap_or_else(|| HeaderValue::from_static("unknown"));
        // A header that names the caller comes from a proxy, which decides.
        let has_header = headers.contains_key(header::AUTHORIZATION);
        let token = match has_header {
            true => None,
            false => self.sessions.token(&cookies, now),
        };
        let session = token.and_then(|token| metadata_with(&token, &id));
        let signed_in = session.is_some();
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
            api: Api::new(&self.channel, metadata),
            links: Arc::clone(&self.links),
            assets: Arc::clone(&self.assets),
            clock: time::Clock { now, zone },
            zone: zone_name,
            theme: Theme::named(cookie(THEME).map_or("", |(_, name)| name)),
            here,
            id: id.to_str().unwrap_or_default().to_owned(),
            signed_in,
            has_header,
            asks_who,
            notice: if is_remote && !asks_who { OPEN } else { "" },
            query,
        }
    }

    async fn reply(
        &self,
        ask: &Ask,
        route: Option<Route>,
        parts: &Parts,
        body: Body,
    ) -> Result<Reply, Fault> {
        let route = route.ok_or(Fault::NoPage)?;
        let is_read = matches!(parts.method, Method::GET | Method::HEAD);
        let changes = matches!(route, Route::Login | Route::Logout | Route::Preferences);
        if parts.method == Method::POST && changes {
            return self.change(ask, &route, parts, body).await;
        }
        if !is_read || matches!(route, Route::Logout | Route::Preferences) {
            return Err(Fault::Method);
        }
        let page = match &route {
            Route::Overview => {
                let _share = self.share(LIGHT).await?;
                pages::overview(ask).await?
            }
            Route::Runs => {
                let _share = self.share(LIGHT).await?;
                pages::runs(ask).await?
            }
            Route::Pipeline { namespace, name } => {
                let _share = self.share(LIGHT).await?;
                pages::pipeline(ask, namespace, name).await?
            }
            Route::Health => {
                let _share = self.share(LIGHT).await?;
                pages::health(ask).await?
            }
            Route::Run(record) => {
                let _share = self.share(HEAVY).await?;
                pages::run(ask, record).await?
            }
            Route::Raw(record) => {
                let _share = self.share(HEAVY).await?;
                pages::raw(ask, record).await?
            }
            Route::Compare => {
                let _share = self.share(HEAVY).await?;
                pages::compare(ask).await?
            }
            Route::Payload(record) => {
                let _share = self.share(HEAVY).await?;
                return Ok(Reply::Ready(download(pages::payload(ask, record).await?)));
            }
            Route::Login => {
                let to = safe_return(ask.query.get("to"), self.links.base());
                pages::login(ask, &to, &Attempt::First, self.may_sign_in(parts))
            }
            Route::Logout | Route::Preferences | Route::Asset(_) => return Err(Fault::NoPage),
        };
        Ok(Reply::Page(page))
    }

    /// The way to the page on which callers sign in, and back.
    fn to_login(&self, ask: &Ask, headers: &HeaderMap) -> Response<Body> {
        let login = self.links.login(&ask.here);
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

    async fn share(&self, size: u32) -> Result<SemaphorePermit<'_>, Fault> {
        let share = self.shares.acquire_many(size);
        match tokio::time::timeout(PATIENCE, share).await {
            Ok(Ok(share)) => Ok(share),
            Ok(Err(_)) | Err(_) => Err(Fault::Busy),
        }
    }
}
