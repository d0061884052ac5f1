//! Which page an address has, and what it costs to make.

use axum::body::Body;
use axum::http::{Method, request::Parts};

use super::reply::{begun, download, streamed};
use super::{Inner, Reply};
use crate::ask::Ask;
use crate::fault::Fault;
use crate::origin::safe_return;
use crate::pages::{self, Attempt, Made};
use crate::route::Route;

/// Shares of a list, and of a page that reads a whole run.
const LIGHT: u32 = 1;
const HEAVY: u32 = 8;

impl Inner {
    pub(super) async fn reply(
        &self,
        ask: &mut Ask,
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
        if route == Route::Login {
            let to = safe_return(ask.query.get("to"), self.links.base());
            let page = pages::login(ask, &to, &Attempt::First, self.may_sign_in(parts));
            return Ok(Reply::Page(page));
        }
        if matches!(route, Route::Depart | Route::Arrive) {
            // What these addresses carry counts once, so forms of their pages lead elsewhere.
            ask.here = self.links.login("");
        }
        match route {
            Route::Depart => return self.depart(ask, parts).await,
            Route::Arrive => return self.arrive(ask, parts).await,
            _ => {}
        }
        ask.caller = self.identify(ask.api.metadata(), parts).await?;
        let turn = self.turns.page(&ask.caller, shares(&route)).await?;
        let page = match &route {
            Route::Overview => pages::overview(ask).await?,
            Route::Runs => pages::runs(ask).await?,
            Route::Pipeline {
                of,
                namespace,
                name,
            } => pages::pipeline(ask, *of, namespace, name).await?,
            Route::Stats => pages::stats(ask).await?,
            Route::Health => pages::health(ask).await?,
            Route::Capture => pages::capture(ask).await?,
            Route::Run(record) => match pages::run(ask, record, may_begin(parts)).await? {
                Made::Whole(page) => page,
                Made::Begun(page) => {
                    return Ok(Reply::Ready(begun(page, ask, turn, &parts.headers)));
                }
            },
            Route::Graph(record) => pages::graph(ask, record).await?,
            Route::Raw(record) => pages::raw(ask, record).await?,
            Route::Compare => pages::compare(ask).await?,
            Route::You => pages::you(ask),
            Route::Jump => match pages::jump(ask).await? {
                Ok(page) => page,
                Err(link) => return Ok(Reply::Ready(super::see(&link))),
            },
            Route::Badge {
                of,
                namespace,
                name,
            } => pages::badge(ask, *of, namespace, name).await?,
            Route::Feed => pages::feed(ask).await?,
            Route::Payload(record) => {
                return Ok(Reply::Ready(download(pages::payload(ask, record).await?)));
            }
            Route::Logs(record) => pages::logs(ask, record).await?,
            Route::RawLog(record) => {
                return Ok(Reply::Ready(streamed(pages::raw_log(ask, record).await?)));
            }
            Route::Login
            | Route::Depart
            | Route::Arrive
            | Route::Logout
            | Route::Preferences
            | Route::Asset(_) => {
                return Err(Fault::NoPage);
            }
        };
        Ok(Reply::Page(page))
    }
}

/// Whether an answer may begin before all of it is known: a browser opens a page that it does not have.
fn may_begin(parts: &Parts) -> bool {
    let (is_part, has_it) = ("hx-request", "if-none-match");
    let has = |name| parts.headers.contains_key(name);
    parts.method == Method::GET && !has(is_part) && !has(has_it)
}

fn shares(route: &Route) -> u32 {
    match route {
        Route::Run(_)
        | Route::Graph(_)
        | Route::Raw(_)
        | Route::Compare
        | Route::Payload(_)
        | Route::Logs(_)
        | Route::RawLog(_)
        | Route::Stats => HEAVY,
        _ => LIGHT,
    }
}
