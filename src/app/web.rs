//! The pages for browsers, beside the API on the one port. They are a client of the API: what they
//! call passes the gate like any other call.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    http::{HeaderMap, Request, Response, StatusCode},
};
use futures::future::{BoxFuture, Either, FutureExt as _};
use hindsight_access::auth::{Authorizer, CodeFlow, Credentials};
use hindsight_runtime::clock::Clock;
use hindsight_storage as storage;
use hindsight_storage::Maintenance;
use hindsight_web::{Answered, Callers, Options, Peer, Web};
use tokio::sync::Semaphore;
use tonic::Status;
use tower_service::Service as _;

use super::{
    assembly::shared_secret, gate::Source, in_process::InProcessTransport,
    response_body::with_timeout, sign_in::AtIssuer, throttle::Known,
};
use crate::config::{Auth, Config, Ui};
use crate::grpc;

/// Under which name the database keeps the secret of sessions.
const SESSION_SECRET: &str = "web_session_key";

/// Knows callers of pages as the gate knows those of calls.
#[derive(Debug)]
struct Identified(Arc<dyn Authorizer>);

impl Callers for Identified {
    fn identify<'a>(
        &'a self,
        metadata: &'a HeaderMap,
        source: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<String, Status>> {
        async move {
            let credentials = Credentials {
                source,
                ..grpc::credentials(metadata)
            };
            let caller = self.0.identify(&credentials).await;
            let caller = caller.map_err(|error| grpc::refusal("a page", &error))?;
            Ok(caller.name.clone())
        }
        .boxed()
    }
}

/// The pages, unless they are switched off. Callers are those of an authorizer, and may sign in at an issuer.
pub(super) async fn pages(
    config: &Config,
    (authorizer, sign_in): (Arc<dyn Authorizer>, Option<Arc<CodeFlow>>),
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
        encrypted: config.tls_cert.is_some(),
        auth: config.auth.name(),
        asks_who: config.auth != Auth::Off,
        is_remote: !config.listen.ip().is_loopback(),
        secret: shared_secret(maintenance, SESSION_SECRET).await?,
    };
    Ok(Some(Web::new(
        in_process.channel(),
        Arc::new(Identified(authorizer)),
        sign_in.map(|flow| Arc::new(AtIssuer(flow)) as _),
        Arc::clone(clock),
        options,
    )))
}

/// Memory of answers that browsers have not taken yet, in KiB.
const MEMORY_KIB: usize = 64 << 10;
/// What an answer takes at least, in KiB.
const LEAST_KIB: u64 = 16;

/// The answer once there is memory for it; without any for `patience`, that the server is busy.
async fn bounded(
    mut answer: Response<Body>,
    memory: &Arc<Semaphore>,
    patience: Duration,
) -> Response<Body> {
    if answer.extensions().get::<Answered>().is_some() {
        answer.extensions_mut().insert(Known);
    }
    let bytes = answer.body().size_hint().upper().unwrap_or(u64::MAX);
    let kib = (bytes >> 10).clamp(LEAST_KIB, MEMORY_KIB as u64 / 2);
    let kib = u32::try_from(kib).unwrap_or(u32::MAX);
    let room = Arc::clone(memory).acquire_many_owned(kib);
    match tokio::time::timeout(patience, room).await {
        Ok(Ok(room)) => answer.map(|body| with_timeout(body, room, patience)),
        Ok(Err(_)) | Err(_) => {
            let mut busy = Response::new(Body::empty());
            *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            busy
        }
    }
}

/// What `http` answers, and the pages. The
/// counters of the API do not have them, so what is on its way to browsers has its own memory, and an
/// answer of which nothing is taken for `patience` ends.
pub(super) fn beside(http: Router, web: Option<Web>, patience: Duration) -> Router {
    let Some(web) = web else {
        return http;
    };
    let memory = Arc::new(Semaphore::new(MEMORY_KIB));
    Router::new().fallback(move |mut request: Request<Body>| {
        if web.takes(&request) {
            if let Some(Source(source)) = request.extensions().get().copied() {
                request.extensions_mut().insert(Peer(source));
            }
            let (web, memory) = (web.clone(), Arc::clone(&memory));
            Either::Left(async move { bounded(web.answer(request).await, &memory, patience).await })
        } else {
            let mut http = http.clone();
            Either::Right(async move {
                let Ok(response) = http.call(request).await;
                response
            })
        }
    })
}
