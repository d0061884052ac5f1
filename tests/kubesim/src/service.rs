//! The server itself: from an HTTP request to its answer, with access checked before, faults in between
//! and a record after.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::stream;
use http::{Request, request::Parts};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use crate::{
    answers::{Answer, SimBody, refused},
    faults::{Effect, Ending},
    limits::check_body,
    rbac::User,
    requests::Asked,
    route::{Query, Route, verb},
    shared::Shared,
};

/// The simulated API server as a service; an error stands for a broken connection.
#[derive(Debug, Clone)]
pub struct SimService {
    shared: Arc<Shared>,
    /// Whose requests these are, where their credentials do not say.
    user: Option<User>,
}

impl SimService {
    pub(crate) fn new(shared: Arc<Shared>, user: Option<User>) -> Self {
        Self { shared, user }
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When the connection breaks instead, by a planned fault or an outage.
    pub async fn answer<B>(&self, request: Request<B>) -> io::Result<Answer>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(io::Error::other(error.to_string())),
        };
        answer(&self.shared, self.user.as_ref(), &parts, &body).await
    }
}

impl<B> tower::Service<Request<B>> for SimService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

async fn answer(
    shared: &Arc<Shared>,
    user: Option<&User>,
    parts: &Parts,
    body: &[u8],
) -> io::Result<Answer> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path();
    let route = Route::parse(path);
    let verb = match verb(&route, &parts.method, query.flag("watch")) {
        Ok(verb) => verb,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    let mut call = route.call(path, verb, shared.clock.now());
    let delay = shared.faults.delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    if shared.faults.is_down() {
        shared.calls.record(call);
        return Err(broken("the server is down"));
    }
    let allowed = shared.sender(user, &parts.headers).and_then(|user| {
        call.user.clone_from(&user.name);
        shared.check(&user, &route.attributes(&call, &query))?;
        check_body(body)?;
        Ok(user)
    });
    let user = match allowed {
        Ok(user) => user,
        Err(refusal) => {
            call.status = Some(refusal.code);
            shared.calls.record(call);
            return Ok(refused(&refusal));
        }
    };
    let fate = shared.faults.meet(&call);
    match fate {
        Some(Effect::Wait(delay)) => tokio::time::sleep(delay).await,
        Some(Effect::Hang) => {
            shared.calls.record(call);
            return std::future::pending().await;
        }
        _ => {}
    }
    let asked = Asked {
        shared,
        parts,
        query: &query,
        body,
        user: &user,
        stale: match fate {
            Some(Effect::Stale(version)) => Some(version),
            _ => None,
        },
    };
    let answer = match fate {
        Some(Effect::Break) => Err(broken("the connection was reset")),
        Some(Effect::Answer(refusal)) => Ok(refused(&refusal)),
        Some(Effect::LoseAnswer) => {
            asked.run(&route, &call);
            Err(broken("the connection was reset before the answer"))
        }
        Some(Effect::Part(bytes, ending)) => Ok(asked
            .run(&route, &call)
            .map(|body| part(body, bytes, ending))),
        _ => Ok(asked.run(&route, &call)),
    };
    call.status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
    shared.calls.record(call);
    answer
}

/// The first bytes of a body, and what comes then instead of the others.
fn part(body: SimBody, bytes: usize, ending: Ending) -> SimBody {
    let frames = stream::unfold((body, bytes), move |(mut body, left)| async move {
        if left == 0 {
            return match ending {
                Ending::Silence => std::future::pending().await,
                Ending::End => None,
                Ending::Break => {
                    let why = "the connection was reset within the answer";
                    Some((Err(broken(why)), (body, 0)))
                }
            };
        }
        let frame = match body.frame().await? {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => return Some((Err(error), (body, 0))),
        };
        let some = frame.slice(..frame.len().min(left));
        let left = left - some.len();
        Some((Ok(Frame::data(some)), (body, left)))
    });
    StreamBody::new(frames).boxed_unsync()
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}
