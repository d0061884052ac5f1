//! How callers begin and end a session: by a token that they paste, or at a provider.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, header, request::Parts};
use jiff::Timestamp;

use super::callers::peer;
use super::reply::{see, sent, set_cookie};
use super::{Inner, Reply};
use crate::api::{Kind, Refusal, Returned, SignIn, metadata_with};
use crate::ask::Ask;
use crate::fault::Fault;
use crate::form::Form;
use crate::origin::safe_return;
use crate::pages::{self, Attempt};
use crate::pending::MAX_PAGE;
use crate::sealed::cookies;
use crate::session::By;

impl Inner {
    /// Takes a token that was pasted.
    pub(super) async fn sign_in(
        &self,
        ask: &Ask,
        form: &Form,
        to: &str,
        parts: &Parts,
    ) -> Result<Reply, Fault> {
        let may = self.may_sign_in(parts);
        if !may || !self.options.asks_who {
            let page = pages::login(ask, to, &Attempt::First, may);
            return Ok(Reply::Page(page));
        }
        let token = form.get("token");
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        self.enter(ask, token, By::Paste, to, parts).await
    }

    /// Begins a session with a token, if the server knows it, on the page `to`.
    async fn enter(
        &self,
        ask: &Ask,
        token: &str,
        by: By,
        to: &str,
        parts: &Parts,
    ) -> Result<Reply, Fault> {
        let again = |attempt: &Attempt| Ok(Reply::Page(pages::login(ask, to, attempt, true)));
        let id = HeaderValue::from_str(&ask.id).ok();
        let metadata = id.and_then(|id| metadata_with(token, &id));
        let cookie = self.sessions.begin(token, by, ask.clock.now);
        let (Some(cookie), Some(metadata)) = (cookie, metadata) else {
            return again(&match by {
                By::Paste => Attempt::Unusable,
                By::Provider { .. } => Attempt::Large(token.len()),
            });
        };
        match self.identify(&metadata, parts).await {
            Ok(_caller) => {
                let mut response = see(to);
                set_cookie(&mut response, &cookie);
                Ok(Reply::Ready(response))
            }
            Err(Fault::Refused(Refusal {
                kind: Kind::Unauthenticated,
                ..
            })) => again(&Attempt::Unknown),
            Err(Fault::Refused(refusal)) => again(&Attempt::Other(refusal.message)),
            Err(fault) => Err(fault),
        }
    }

    /// The provider, for requests that follow a link to it or from it.
    fn provider(&self, parts: &Parts) -> Result<&Arc<dyn SignIn>, Fault> {
        let provider = self.provider.as_ref().ok_or(Fault::NoPage)?;
        match parts.method == Method::GET {
            true => Ok(provider),
            false => Err(Fault::Method),
        }
    }

    /// The address of a page as the provider names it.
    fn public(&self, path: &str) -> String {
        let origin = self.options.origin.as_deref().unwrap_or_default();
        format!("{origin}{path}")
    }

    /// Sends a browser to the provider.
    pub(super) async fn depart(&self, ask: &Ask, parts: &Parts) -> Result<Reply, Fault> {
        let provider = self.provider(parts)?;
        let base = self.links.base();
        let mut to = safe_return(ask.query.get("to"), base);
        if to.len() > MAX_PAGE {
            to = self.links.overview("");
        }
        let may = self.may_sign_in(parts);
        if !may {
            let page = pages::login(ask, &to, &Attempt::First, may);
            return Ok(Reply::Page(page));
        }
        match provider.begin(&self.public(&self.links.arrive())).await {
            Ok(begun) => {
                let mut response = see(&begun.location);
                if let Some(cookie) = self.pendings.begin(&begun, &to, ask.clock.now) {
                    set_cookie(&mut response, &cookie);
                }
                Ok(Reply::Ready(response))
            }
            Err(status) => Ok(failed(ask, &to, status.into())),
        }
    }

    /// Takes the answer of the provider from a browser that was sent there.
    pub(super) async fn arrive(&self, ask: &Ask, parts: &Parts) -> Result<Reply, Fault> {
        let provider = self.provider(parts)?;
        let start = self.links.overview("");
        if !self.may_sign_in(parts) {
            let page = pages::login(ask, &start, &Attempt::First, false);
            return Ok(Reply::Page(page));
        }
        let given = parts.headers.get_all(header::COOKIE).iter();
        let cookies = cookies(given.map(HeaderValue::as_bytes));
        let Some(pending) = self.pendings.open(&cookies, ask.clock.now) else {
            let page = pages::login(ask, &start, &Attempt::NotBegun, true);
            return Ok(Reply::Page(page));
        };
        if ask.query.get("state") != pending.state {
            let page = pages::login(ask, &start, &Attempt::OtherState, true);
            return Ok(Reply::Page(page));
        }
        let to = safe_return(&pending.to, self.links.base());
        let answer = Returned {
            code: ask.query.get("code"),
            issuer: ask.query.get("iss"),
            error: ask.query.get("error"),
            description: ask.query.get("error_description"),
        };
        let secrets = (pending.nonce.as_str(), pending.verifier.as_str());
        let back = self.public(&self.links.arrive());
        let reply = match provider.finish(secrets, &back, answer).await {
            Ok((token, until)) => self.provided(ask, &token, until, &to, parts).await?,
            Err(status) => failed(ask, &to, status.into()),
        };
        // Whatever came of it, the secrets count once.
        let mut response = match reply {
            Reply::Ready(response) => response,
            Reply::Page(page) => sent(page, &parts.headers),
        };
        set_cookie(&mut response, &self.pendings.end());
        Ok(Reply::Ready(response))
    }

    async fn provided(
        &self,
        ask: &Ask,
        token: &str,
        until: Timestamp,
        to: &str,
        parts: &Parts,
    ) -> Result<Reply, Fault> {
        let by = By::Provider { until };
        self.enter(ask, token, by, to, parts).await
    }

    /// Ends the session of a browser, and then that at the provider if it began there.
    pub(super) async fn sign_out(&self, ask: &Ask, headers: &HeaderMap) -> Response<Body> {
        let back = self.public(&self.links.login(""));
        let elsewhere = match &self.provider {
            Some(provider) if ask.is_provided => provider.sign_out(&back).await,
            _ => None,
        };
        let mut response = match elsewhere {
            None => see(&self.links.overview("")),
            Some(link) => {
                // Forms may not be redirected to other origins, pages may.
                let mut response = sent(pages::signed_out(ask, &link), headers);
                if let Ok(refresh) = HeaderValue::from_str(&format!("0; url={link}")) {
                    response.headers_mut().insert("refresh", refresh);
                }
                response
            }
        };
        set_cookie(&mut response, &self.sessions.end());
        let clear = HeaderValue::from_static("\"cache\"");
        response.headers_mut().insert("clear-site-data", clear);
        response
    }

    /// Whether a token may be sent over this connection: it is encrypted, it comes through the proxy
    /// that browsers reach over TLS, or it does not leave this machine.
    pub(super) fn may_sign_in(&self, parts: &Parts) -> bool {
        let named = host(parts);
        let is_near = peer(parts).is_some_and(|peer| peer.to_canonical().is_loopback());
        let bare = named.as_deref().map(|host| match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        });
        let is_own = bare.is_some_and(|name| {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            let parsed = address.parse::<IpAddr>();
            name == "localhost" || parsed.is_ok_and(|address| address.is_loopback())
        });
        let is_near = is_near && is_own;
        let forwarded = parts.headers.get("x-forwarded-proto");
        let may = match forwarded.map(HeaderValue::as_bytes) {
            Some(protocol) if protocol.eq_ignore_ascii_case(b"https") => {
                self.options.secure || is_near
            }
            // The browser is elsewhere, whatever host the proxy asks for.
            Some(_) => false,
            None => self.options.secure && self.is_public(named.as_deref()) || is_near,
        };
        self.options.encrypted || may
    }

    /// Whether this is the host of `public_url`.
    fn is_public(&self, named: Option<&str>) -> bool {
        let origin = self.options.origin.as_deref();
        let public = origin.and_then(|origin| origin.split_once("://"));
        public.zip(named).is_some_and(|((_, host), named)| {
            let named = named.strip_suffix(":443").unwrap_or(named);
            let host = host.strip_suffix(":443").unwrap_or(host);
            named.eq_ignore_ascii_case(host)
        })
    }
}

/// The page to sign in again, after a provider refused or did not answer.
fn failed(ask: &Ask, to: &str, refusal: Refusal) -> Reply {
    let attempt = match refusal.kind {
        Kind::Unavailable => Attempt::Unavailable(refusal.message),
        _ => Attempt::Other(refusal.message),
    };
    Reply::Page(pages::login(ask, to, &attempt, true))
}

/// The host that a request names.
pub(super) fn host(parts: &Parts) -> Option<String> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let header = parts
        .headers
        .get(header::HOST)
        .and_then(|it| it.to_str().ok());
    authority.or(header).map(str::to_owned)
}
