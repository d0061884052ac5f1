//! What pages send: a token, the end of a session, how pages look.

use axum::body::Body;
use axum::http::request::Parts;

use super::reply::{see, set_cookie};
use super::sign_in::host;
use super::{Inner, Reply};
use crate::ask::{Ask, CHOSEN_ZONE, THEME, Theme, zone};
use crate::fault::Fault;
use crate::form::Form;
use crate::origin::{is_same, safe_return};
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
            Route::Logout => Ok(Reply::Ready(self.sign_out(ask, &parts.headers).await)),
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
}
