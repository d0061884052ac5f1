//! What pages send: a token, the end of a session, how pages look.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::{HeaderValue, header, request::Parts};

use super::callers::peer;
use super::reply::{see, set_cookie};
use super::{Inner, Reply};
use crate::api::{Kind, Refusal, metadata_with};
use crate::ask::{Ask, CHOSEN_ZONE, THEME, Theme, zone};
use crate::fault::Fault;
use crate::form::Form;
use crate::origin::{is_same, safe_return};
use crate::pages::{self, Attempt};
use crate::route::Route;

/// How long browsers keep how pages look, in seconds.
const YEAR: u32 = 31_536_000;

impl Inner {
    /// What pages send: a token, the end of a session, how pages look.
    pub(super) async fn change(
        &self,
        ask: &Ask,
        route: &Route,
        parts: &Parts,
        body: Body,
    ) -> Result<Reply, Fault> {
        let host = host(parts);
        if !is_same(
            &parts.headers,
            host.as_deref(),
            self.options.origin.as_deref(),
        ) {
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
                let mut keep = |name: &str, value: &str| {
                    let age = if value.is_empty() { 0 } else { YEAR };
                    let kept = format!("{name}={value}; Path={base}; SameSite=Lax; Max-Age={age}");
                    set_cookie(&mut response, &kept);
                };
                if form.has("theme") {
                    keep(THEME, Theme::named(form.get("theme")).name());
                }
                if form.has("zone") {
                    let name = form.get("zone");
                    keep(CHOSEN_ZONE, zone(name).map_or("", |_zone| name));
                }
                Ok(Reply::Ready(response))
            }
        }
    }

    async fn sign_in(
        &self,
        ask: &Ask,
        form: &Form,
        to: &str,
        parts: &Parts,
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

/// The host that a request names.
fn host(parts: &Parts) -> Option<String> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let header = parts
        .headers
        .get(header::HOST)
        .and_then(|it| it.to_str().ok());
    authority.or(header).map(str::to_owned)
}
