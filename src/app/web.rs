//! The pages for browsers, beside the API on the one port. They are a client of the API: what they
//! call passes the gate like any other call.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use futures::future::Either;
use hindsight_runtime::clock::Clock;
use hindsight_storage as storage;
use hindsight_storage::Maintenance;
use hindsight_web::{Options, Peer, Web};
use tower_service::Service as _;

use super::{assembly::shared_secret, gate::Source, in_process::InProcessTransport};
use crate::config::{Auth, Config, Ui};

/// Under which name the database keeps the secret of sessions.
const SESSION_SECRET: &str = "web_session_key";

/// The pages, unless they are switched off.
pub(super) async fn pages(
    config: &Config,
    maintenance: &dyn Maintenance,
    in_process: &InProcessTransport,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Web>, storage::Error> {
    if config.ui == Ui::Off {
        return Ok(None);
    }
    let public = config.public_url.as_ref();
    let options = Options {
        base: public.map(|url| url.path().to_owned()).unwrap_or_default(),
        origin: public.map(|url| url.origin().to_owned()),
        secure: match public {
            Some(public) => public.is_https(),
            None => config.tls_cert.is_some(),
        },
        asks_who: config.auth != Auth::Off,
        is_remote: !config.listen.ip().is_loopback(),
        secret: shared_secret(maintenance, SESSION_SECRET).await?,
    };
    Ok(Some(Web::new(
        in_process.channel(),
        Arc::clone(clock),
        options,
    )))
}

/// What `http` answers, and the pages.
pub(super) fn beside(http: Router, web: Option<Web>) -> Router {
    let Some(web) = web else {
        return http;
    };
    Router::new().fallback(move |mut request: Request<Body>| {
        if web.takes(&request) {
            if let Some(Source(source)) = request.extensions().get().copied() {
                request.extensions_mut().insert(Peer(source));
            }
            let web = web.clone();
            Either::Left(async move { web.answer(request).await })
        } else {
            let mut http = http.clone();
            Either::Right(async move {
                let Ok(response) = http.call(request).await;
                response
            })
        }
    })
}
