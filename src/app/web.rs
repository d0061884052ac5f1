//! The pages for browsers, beside the API on the one port. They are a client of the API: what they
//! call passes the gate like any other call.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header},
};
use futures::future::{BoxFuture, Either, FutureExt as _};
use hindsight_access::auth::{Authorizer, CodeFlow, Credentials};
use hindsight_runtime::clock::Clock;
use hindsight_storage as storage;
use hindsight_storage::Maintenance;
use hindsight_web::{Answered, Callers, Options, Peer, Shared, Web};
use tokio::sync::Semaphore;
use tonic::Status;
use tower_service::Service as _;

use super::{
    assembly::shared_secret, gate::Source, response_body::with_timeout, sign_in::AtIssuer,
    throttle::Known,
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

/// The pages, unless they are switched off, which call `grpc`. Callers are those of an authorizer, and may sign in at an
/// issuer.
pub(super) async fn pages(
    config: &Config,
    (authorizer, sign_in): (Arc<dyn Authorizer>, Option<Arc<CodeFlow>>),
    maintenance: &dyn Maintenance,
    grpc: Router,
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
        grpc,
        Arc::new(Identified(authorizer)),
        sign_in.map(|flow| Arc::new(AtIssuer(flow)) as _),
        Arc::clone(clock),
        options,
    )))
}

/// Memory of answers that browsers have not taken yet, in KiB: of pages, of payloads that are downloaded, of
/// logs that are sent while they are read, and of answers to those who are not known, which are short.
const PAGES_KIB: usize = 16 << 10;
const DOWNLOADS_KIB: usize = 24 << 10;
const STREAMS_KIB: usize = 16 << 10;
const STRANGERS_KIB: usize = 8 << 10;
/// What an answer takes at least, in KiB.
const LEAST_KIB: u64 = 16;
/// The largest page; what has more is a download.
const PAGE_KIB: u64 = 2 << 10;
/// What an answer of unknown length takes: it is sent while it is made.
const STREAM_KIB: u64 = 512;

/// Memory of answers that are on their way.
#[derive(Debug)]
struct Memory {
    pages: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

impl Memory {
    fn new() -> Self {
        Self {
            pages: Arc::new(Semaphore::new(PAGES_KIB)),
            downloads: Arc::new(Semaphore::new(DOWNLOADS_KIB)),
            streams: Arc::new(Semaphore::new(STREAMS_KIB)),
            strangers: Arc::new(Semaphore::new(STRANGERS_KIB)),
        }
    }

    /// The answer once there is memory for it; without any for `patience`, that the server is busy.
    async fn hold(&self, mut answer: Response<Body>, patience: Duration) -> Response<Body> {
        // It is in memory once for all, and nothing of it is copied.
        if answer.extensions().get::<Shared>().is_some() {
            return answer;
        }
        let is_known = answer.extensions().get::<Answered>().is_some();
        let length = answer.body().size_hint().upper().map(|bytes| bytes >> 10);
        let (pool, kib, wait) = match (is_known, length) {
            (false, _) => (&self.strangers, LEAST_KIB, Duration::ZERO),
            (true, Some(kib)) if kib <= PAGE_KIB => (&self.pages, kib.max(LEAST_KIB), patience),
            (true, Some(kib)) => {
                let kib = kib.min(DOWNLOADS_KIB as u64 / 2);
                (&self.downloads, kib, patience)
            }
            // It has its call open, of which there are not many, so it does not wait.
            (true, None) => (&self.streams, STREAM_KIB, Duration::ZERO),
        };
        if is_known {
            answer.extensions_mut().insert(Known);
        }
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let room = Arc::clone(pool).acquire_many_owned(kib);
        match tokio::time::timeout(wait, room).await {
            Ok(Ok(room)) => answer.map(|body| with_timeout(body, room, patience)),
            Ok(Err(_)) | Err(_) => {
                let mut busy = Response::new(Body::empty());
                *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                let second = HeaderValue::from_static("1");
                busy.headers_mut().insert(header::RETRY_AFTER, second);
                busy
            }
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
    let memory = Arc::new(Memory::new());
    Router::new().fallback(move |mut request: Request<Body>| {
        if web.takes(&request) {
            if let Some(Source(source)) = request.extensions().get().copied() {
                request.extensions_mut().insert(Peer(source));
            }
            let (web, memory) = (web.clone(), Arc::clone(&memory));
            Either::Left(async move { memory.hold(web.answer(request).await, patience).await })
        } else {
            let mut http = http.clone();
            Either::Right(async move {
                let Ok(response) = http.call(request).await;
                response
            })
        }
    })
}
