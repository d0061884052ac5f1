//! CPU throttling of connections whose requests fail. They share a part of the processor time, so that
//! refused and reset requests, however many, do not delay others.
//!
//! A connection is in good standing once a request of a known caller on it was answered, and until
//! one is refused for its sender or its load, is malformed, or is reset. Until then each poll of the
//! connection and of its requests is timed, and waits while the shared part is used up.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::http::{Extensions, HeaderMap, StatusCode};
use tokio::time::{Instant, Sleep, sleep};
use tonic::{Code, Status};

use hindsight_runtime::cores::cores;

/// The shared part of each core: one in so many.
const SHARE: u64 = 8;
/// How much processor time may be used at once before the first wait.
const BURST: Duration = Duration::from_millis(10);
/// What a poll takes, as far as is known before it.
const USUAL: Duration = Duration::from_micros(100);
/// Timers are no finer.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Says of an answer that its caller is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known;

/// The processor time that all connections share that are in no good standing.
#[derive(Debug)]
pub(super) struct Throttle {
    began: Instant,
    /// When all that was used is paid back, in nanoseconds since `began`.
    paid: AtomicU64,
    cores: u64,
}

impl Throttle {
    pub(super) fn new() -> Self {
        let cores = cores() as u64;
        Self {
            began: Instant::now(),
            paid: AtomicU64::new(0),
            cores,
        }
    }

    fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// For how many nanoseconds the use of so much is paid back.
    fn price(&self, used: Duration) -> u64 {
        nanos(used).saturating_mul(SHARE) / self.cores
    }

    /// Takes the time of a usual poll, and answers how long to wait until its turn. Each has a turn of
    /// its own, so that those that wait are not woken together.
    fn reserve(&self) -> Duration {
        let (now, price) = (self.now(), self.price(USUAL));
        let reserved = |paid: u64| Some(paid.max(now).saturating_add(price));
        let before = self
            .paid
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserved)
            .expect("it is always reserved");
        Duration::from_nanos(before.saturating_sub(now + self.price(BURST)))
    }

    /// A poll for which time was reserved took so long.
    fn settle(&self, used: Duration) {
        let (used, reserved) = (self.price(used), self.price(USUAL));
        if used > reserved {
            self.paid.fetch_add(used - reserved, Ordering::Relaxed);
        } else {
            self.paid.fetch_sub(reserved - used, Ordering::Relaxed);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The standing of one connection. Clones are of the same connection.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    is_good: Arc<AtomicBool>,
    throttle: Arc<Throttle>,
}

impl Standing {
    /// That of a connection of which nothing is known yet.
    pub(super) fn new(throttle: &Arc<Throttle>) -> Self {
        Self {
            is_good: Arc::default(),
            throttle: Arc::clone(throttle),
        }
    }

    /// `work` of the connection, which waits where the standing is not good.
    pub(super) fn metered<F: Future>(&self, work: F) -> Metered<F> {
        Metered {
            work: Box::pin(work),
            standing: self.clone(),
            waiting: None,
        }
    }

    /// A request that is taken; it counts as reset unless it is told how it was answered.
    pub(super) fn request(&self) -> Request {
        Request(Some(self.clone()))
    }
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Request(Option<Standing>);

impl Request {
    /// The request was answered like this. Whether the standing is good then.
    pub(super) fn answered(
        mut self,
        status: StatusCode,
        head: &HeaderMap,
        marks: &Extensions,
    ) -> bool {
        let is_good = marks.get::<Known>().is_some() && is_accepted(status, head);
        if let Some(standing) = self.0.take() {
            standing.is_good.store(is_good, Ordering::Relaxed);
        }
        is_good
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(standing) = &self.0 {
            standing.is_good.store(false, Ordering::Relaxed);
        }
    }
}

/// Whether a request is answered, or refused for what it asks. Not if it is malformed, or its sender is
/// not known or asks too much.
fn is_accepted(status: StatusCode, head: &HeaderMap) -> bool {
    let of_grpc = Status::from_header_map(head).map_or(Code::Ok, |status| status.code());
    let is_refused = matches!(
        of_grpc,
        Code::Unauthenticated | Code::ResourceExhausted | Code::InvalidArgument | Code::Internal
    );
    let is_bad = matches!(status.as_u16(), 400 | 401 | 413 | 414 | 429 | 431);
    !is_refused && !is_bad
}

/// Work whose polls are timed and wait.
pub(super) struct Metered<F> {
    work: Pin<Box<F>>,
    standing: Standing,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Metered<F> {
    pub(super) fn work(&mut self) -> Pin<&mut F> {
        self.work.as_mut()
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.standing.is_good.load(Ordering::Relaxed) {
            return this.work.as_mut().poll(cx);
        }
        let throttle = &this.standing.throttle;
        if this.waiting.is_none() {
            let wait = throttle.reserve();
            if wait >= LEAST_WAIT {
                this.waiting = Some(Box::pin(sleep(wait)));
            }
        }
        if let Some(waiting) = &mut this.waiting {
            ready!(waiting.as_mut().poll(cx));
            this.waiting = None;
        }
        let began = Instant::now();
        let polled = this.work.as_mut().poll(cx);
        throttle.settle(began.elapsed());
        polled
    }
}

/// Work that is given up before its turn gives its time back: otherwise requests that are reset while
/// they wait would put off everybody else for longer than they could ever have taken.
impl<F> Drop for Metered<F> {
    fn drop(&mut self) {
        if self.waiting.is_some() {
            self.standing.throttle.settle(Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use axum::http::HeaderValue;

    use super::*;

    fn head(code: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            "grpc-status".parse().unwrap(),
            HeaderValue::from_static(code),
        )])
    }

    fn is_good(standing: &Standing) -> bool {
        standing.is_good.load(Ordering::Relaxed)
    }

    #[test]
    fn standing_is_that_of_the_last_request() {
        let standing = Standing::new(&Arc::new(Throttle::new()));
        let (mut known, nobody) = (Extensions::new(), Extensions::new());
        known.insert(Known);
        assert!(!is_good(&standing));
        let (ok, none) = (StatusCode::OK, HeaderMap::new());
        for (status, head, marks, expected) in [
            (ok, &none, &nobody, false),
            (ok, &none, &known, true),
            (ok, &head("5"), &known, true),
            (ok, &head("16"), &known, false),
            (StatusCode::NOT_FOUND, &none, &known, true),
            (StatusCode::TOO_MANY_REQUESTS, &none, &known, false),
            (ok, &head("0"), &known, true),
            (ok, &head("8"), &known, false),
            (StatusCode::UNAUTHORIZED, &none, &nobody, false),
        ] {
            standing.request().answered(status, head, marks);
            assert_eq!(is_good(&standing), expected, "{status} {head:?}");
        }
        standing.request().answered(ok, &none, &known);
        drop(standing.request());
        assert!(!is_good(&standing), "it was reset");
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_no_standing_wait_once_their_time_is_used_up() {
        let throttle = Arc::new(Throttle::new());
        let (bad, good) = (Standing::new(&throttle), Standing::new(&throttle));
        let mut known = Extensions::new();
        known.insert(Known);
        good.request()
            .answered(StatusCode::OK, &HeaderMap::new(), &known);
        throttle.settle(BURST * 2);
        let owed = throttle.reserve();
        assert!(owed > BURST / 2, "{owed:?}");
        throttle.settle(Duration::ZERO);
        let began = Instant::now();
        let mut now = Context::from_waker(Waker::noop());
        let mut soon = good.metered(async {});
        assert!(Pin::new(&mut soon).poll(&mut now).is_ready());
        let (mut first, mut second) = (bad.metered(async {}), bad.metered(async {}));
        assert!(Pin::new(&mut first).poll(&mut now).is_pending());
        assert!(Pin::new(&mut second).poll(&mut now).is_pending());
        first.await;
        let after_first = began.elapsed();
        assert!(after_first >= owed, "{after_first:?}");
        second.await;
        throttle.reserve();
        throttle.settle(BURST * 2);
        let (one, next) = (throttle.reserve(), throttle.reserve());
        assert_eq!(
            next.as_nanos() - one.as_nanos(),
            throttle.price(USUAL).into()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_given_up_before_its_turn_puts_off_nobody() {
        let throttle = Arc::new(Throttle::new());
        let bad = Standing::new(&throttle);
        throttle.settle(BURST * 2);
        let before = throttle.paid.load(Ordering::Relaxed);
        let mut now = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            let mut reset = bad.metered(std::future::pending::<()>());
            assert!(Pin::new(&mut reset).poll(&mut now).is_pending());
        }
        assert_eq!(throttle.paid.load(Ordering::Relaxed), before);
    }
}
