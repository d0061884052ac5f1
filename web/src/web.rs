//! Requests below `/ui`: which page they are for, who asks, and what is sent back.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use flate2::Compression;
use hindsight_proto::metadata::REQUEST_ID;
use hindsight_runtime::clock::Clock;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::transport::Channel;

use crate::api::{Api, Kind, Refusal, metadata_of, metadata_with};
use crate::ask::{Ask, THEME, Theme, ZONE, zone};
use crate::assets::{Assets, hex, packed};
use crate::fault::Fault;
use crate::form::Form;
use crate::headers::{Content, secured};
use crate::origin::{is_same, safe_return};
use crate::pages::{self, Attempt, Page, Payload};
use crate::route::{Links, Route};
use crate::session::{Sessions, cookies};
use crate::time;

/// How much of pages is made at once: a list takes one share, a page of a whole run several.
const SHARES: usize = 64;
const LIGHT: u32 = 1;
const HEAVY: u32 = 8;
/// How long a page waits for its share.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pages below this size are sent as they are.
const PACKED_FROM: usize = 1 << 10;
/// How long browsers keep how pages look, in seconds.
const YEAR: u32 = 31_536_000;
/// What stands above pages of a server that other machines reach without authentication.
const OPEN: &str = "Authentication is off: everyone who reaches this server may read and delete everything.";

/// The address from which a request came.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What the pages are told about their server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path at which a proxy has put the server: empty, or beginning and not ending with `/`.
    pub base: String,
    /// The origin at which browsers reach the server, such as `https://results.example`, if that
    /// is configured.
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
        let replied = self.reply(&ask, route, &parts, body).await;
        let page = match replied {
            Ok(Reply::Ready(response)) => return response,
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
        parts: &axum::http::request::Parts,
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

    /// What pages send: a token, the end of a session, how pages look.
    async fn change(
        &self,
        ask: &Ask,
        route: &Route,
        parts: &axum::http::request::Parts,
        body: Body,
    ) -> Result<Reply, Fault> {
        let host = host(parts);
        if !is_same(&parts.headers, host.as_deref(), self.options.origin.as_deref()) {
            return Err(Fault::Foreign);
        }
        let form = Form::read(body).await.ok_or(Fault::Form)?;
        let base = self.links.base();
        let to = safe_return(form.get("to"), base);
        match route {
            Route::Login => self.sign_in(ask, &form, &to, parts).await,
            Route::Logout => {
                let mut response = see(&self.links.overview(""));
                set_cookie(&mut response, &self.sessions.end());
                let clear = HeaderValue::from_static("\"cache\"");
                response.headers_mut().insert("clear-site-data", clear);
                Ok(Reply::Ready(response))
            }
            _ => {
                let mut response = see(&to);
                let theme = Theme::named(form.get("theme")).name();
                let kept = format!("{THEME}={theme}; Path={base}; SameSite=Lax; Max-Age={YEAR}");
                set_cookie(&mut response, &kept);
                Ok(Reply::Ready(response))
            }
        }
    }

    async fn sign_in(
        &self,
        ask: &Ask,
        form: &Form,
        to: &str,
        parts: &axum::http::request::Parts,
    ) -> Result<Reply, Fault> {
        let may = self.may_sign_in(parts);
        let again = |attempt: &Attempt| Ok(Reply::Page(pages::login(ask, to, attempt, may)));
        if !may || !self.options.asks_who {
            return again(&Attempt::First);
        }
        let token = form.get("token");
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        let Some(cookie) = self.sessions.begin(token, ask.clock.now) else {
            return again(&Attempt::Unusable);
        };
        let id = HeaderValue::from_str(&ask.id).ok();
        let metadata = id.and_then(|id| metadata_with(token, &id));
        let Some(metadata) = metadata else {
            return again(&Attempt::Unusable);
        };
        let _share = self.share(LIGHT).await?;
        match Api::new(&self.channel, metadata).knows_caller().await {
            Ok(()) => {
                let mut response = see(to);
                set_cookie(&mut response, &cookie);
                Ok(Reply::Ready(response))
            }
            Err(refusal) if refusal.kind == Kind::Unauthenticated => again(&Attempt::Unknown),
            Err(refusal) => again(&Attempt::Other(refusal.message)),
        }
    }

    /// Whether a token may be sent over this connection: it is encrypted, or never leaves the
    /// machine.
    fn may_sign_in(&self, parts: &axum::http::request::Parts) -> bool {
        let peer = parts.extensions.get::<Peer>();
        let is_near = peer.is_some_and(|Peer(peer)| peer.to_canonical().is_loopback());
        let named = host(parts);
        let named = named.as_deref().map(|host| match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        });
        let is_own = named.is_some_and(|name| {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            let parsed = address.parse::<IpAddr>();
            name == "localhost" || parsed.is_ok_and(|address| address.is_loopback())
        });
        self.options.secure || (is_near && is_own)
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

/// The host that a request names.
fn host(parts: &axum::http::request::Parts) -> Option<String> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let header = parts.headers.get(header::HOST).and_then(|it| it.to_str().ok());
    authority.or(header).map(str::to_owned)
}

fn see(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn set_cookie(response: &mut Response<Body>, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT_ENCODING);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| {
        accept.split(',').any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim() == "gzip" && !weight.replace(' ', "").starts_with("q=0")
        })
    })
}

/// A page as it is sent: compressed, and not again if the browser has it.
fn sent(page: Page, headers: &HeaderMap) -> Response<Body> {
    let Page { status, html } = page;
    let tag = format!("W/\"{}\"", hex(&Sha256::digest(&html)[..12]));
    let known = headers.get(header::IF_NONE_MATCH);
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, "text/html; charset=utf-8")
        .header(header::ETAG, &tag)
        .header(header::VARY, "accept-encoding, cookie");
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let body = if is_known && status == StatusCode::OK {
        response = response.status(StatusCode::NOT_MODIFIED);
        Body::empty()
    } else {
        response = response.status(status);
        if html.len() >= PACKED_FROM && takes_gzip(headers) {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            Body::from(packed(html.as_bytes(), Compression::fast()))
        } else {
            Body::from(html)
        }
    };
    response.body(body).unwrap_or_default()
}

/// A stored payload, byte for byte, as a file.
fn download(payload: Payload) -> Response<Body> {
    let name = format!("attachment; filename=\"{}\"", payload.file);
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_DISPOSITION, name)
        .extension(Content::Payload)
        .body(Body::from(payload.bytes));
    response.unwrap_or_default()
}
