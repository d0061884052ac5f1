//! What goes wrong on purpose: delays, wrong and outdated answers, broken connections, lost watches,
//! an outage. It breaks requests, never the state.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{calls::Call, refusal::Refusal};

/// How the requests a fault meets end.
#[derive(Debug, Clone)]
enum Effect {
    /// Refused before anything happens.
    Answer(Refusal),
    /// The connection breaks before anything happens.
    Break,
    /// The request takes effect, but the connection breaks before the answer.
    LoseAnswer,
    /// Nothing happens for a while, then what was asked for.
    Wait(Duration),
    /// It is read from how things were at this version.
    Stale(u64),
    /// No answer comes, and the connection stays open.
    Hang,
    /// The answer ends after so many bytes.
    Part(usize, Ending),
}

/// What comes after a part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing, on a connection that stays open.
    Silence,
    /// The end of the connection.
    Break,
}

/// A fault for the next requests that match it.
#[derive(Debug, Clone)]
pub struct Fault {
    effect: Effect,
    verb: Option<String>,
    group: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    /// For ever without a number.
    left: Option<u32>,
}

impl Fault {
    /// Answers with `code` instead of doing anything: 429 and 503 come with `Retry-After: 1`.
    pub fn status(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden by a simulated fault"),
            404 => (
                "NotFound",
                "the server could not find the requested resource",
            ),
            409 => (
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            410 => ("Expired", "too old resource version"),
            429 => (
                "TooManyRequests",
                "too many requests, please try again later",
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => ("Timeout", "the request did not complete in time"),
            _ => (
                "InternalError",
                "an error on the server has prevented the request from succeeding",
            ),
        };
        let mut refusal = Refusal::new(code, reason, message);
        refusal.retry_after = matches!(code, 429 | 503).then_some(1);
        Self::new(Effect::Answer(refusal))
    }

    /// Refuses with an answer of the test's own, such as that of a quota.
    pub fn refusal(refusal: Refusal) -> Self {
        Self::new(Effect::Answer(refusal))
    }

    /// Refuses as an admission webhook does that does not like the object.
    pub fn denied_by_webhook(webhook: &str, why: &str) -> Self {
        let message = format!("admission webhook \"{webhook}\" denied the request: {why}");
        Self::refusal(Refusal::new(400, "", message))
    }

    /// Refuses as the server does when an admission webhook that must be asked does not answer.
    pub fn webhook_unreachable(webhook: &str) -> Self {
        let message = format!(
            "Internal error occurred: failed calling webhook \"{webhook}\": failed to call webhook: Post \"https://{webhook}.svc:443/\": context deadline exceeded"
        );
        Self::refusal(Refusal::new(500, "InternalError", message))
    }

    /// Refuses as the server does when the webhook that converts a kind between its versions fails.
    pub fn conversion_failed(api_version: &str, kind: &str) -> Self {
        let message = format!(
            "conversion webhook for {api_version}, Kind={kind} failed: Post \"https://converter.svc:443/\": connect: connection refused"
        );
        Self::refusal(Refusal::new(500, "", message))
    }

    /// Takes the request and never answers, as a half-open connection does.
    pub fn silent() -> Self {
        Self::new(Effect::Hang)
    }

    /// Answers with the first `bytes` bytes; then nothing comes, on a connection that stays open.
    pub fn stalled_after(bytes: usize) -> Self {
        Self::new(Effect::Part(bytes, Ending::Silence))
    }

    /// Answers with the first `bytes` bytes; then the connection breaks.
    pub fn broken_after(bytes: usize) -> Self {
        Self::new(Effect::Part(bytes, Ending::Break))
    }

    /// Breaks the connection before the request takes effect.
    pub fn broken() -> Self {
        Self::new(Effect::Break)
    }

    /// Lets the request take effect, then breaks the connection instead of answering.
    pub fn lost_answer() -> Self {
        Self::new(Effect::LoseAnswer)
    }

    /// Lets the request wait before anything happens, while others go on.
    pub fn slow(delay: Duration) -> Self {
        Self::new(Effect::Wait(delay))
    }

    /// Answers a `get` or `list` from how things were at `version`, as a server does whose view
    /// lags behind; from the oldest state that is remembered, if that one is forgotten. Other
    /// requests are as ever.
    pub fn stale(version: u64) -> Self {
        Self::new(Effect::Stale(version))
    }

    /// Only for requests of this verb.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Only for requests on this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only for requests on this API group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only for requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only for requests of this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Only for requests on objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// For the next `count` matching requests; one without this.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.left = Some(count);
        self
    }

    /// For every matching request, until `Faults::clear`.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.left = None;
        self
    }

    /// Seconds in the `Retry-After` header of the answer.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer(refusal) = &mut self.effect {
            refusal.retry_after = Some(seconds);
        }
        self
    }

    fn new(effect: Effect) -> Self {
        Self {
            effect,
            verb: None,
            group: None,
            resource: None,
            namespace: None,
            name: None,
            user: None,
            left: Some(1),
        }
    }

    fn meets(&self, call: &Call) -> bool {
        let fits = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.left != Some(0)
            && fits(&self.verb, call.verb)
            && fits(&self.group, &call.group)
            && fits(&self.resource, &call.resource)
            && fits(&self.namespace, &call.namespace)
            && fits(&self.name, &call.name)
            && fits(&self.user, &call.user)
    }
}

/// What running watches and players must notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) down: bool,
    /// Counts orders to drop watches.
    pub(crate) drops: u64,
    /// Counts orders to send bookmarks.
    pub(crate) bookmarks: u64,
    /// Send nothing on open watches.
    pub(crate) frozen: bool,
}

/// The fate of a request.
#[derive(Debug)]
pub(crate) enum Fate {
    Normal,
    Answer(Refusal),
    Break,
    LoseAnswer,
    Wait(Duration),
    Stale(u64),
    Hang,
    Part(usize, Ending),
}

/// The faults of one simulated server.
#[derive(Debug)]
pub struct Faults {
    planned: Mutex<Planned>,
    signals: watch::Sender<Signals>,
}

#[derive(Debug, Default)]
struct Planned {
    latency: Duration,
    faults: Vec<Fault>,
    limit: Option<Limit>,
}

/// How many requests are answered in a second.
#[derive(Debug, Clone, Copy)]
struct Limit {
    a_second: u32,
    second: i64,
    answered: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            planned: Mutex::default(),
            signals: watch::Sender::new(Signals::default()),
        }
    }
}

impl Faults {
    /// Delays every answer from now on.
    pub fn latency(&self, delay: Duration) {
        self.lock().latency = delay;
    }

    /// Plans a fault; of several that match a request, the one planned first counts.
    pub fn plan(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Refuses what is more than this many requests in a second of the cluster's clock: 429 with
    /// `Retry-After: 1`, as a server that is busy.
    pub fn limit(&self, a_second: u32) {
        self.lock().limit = Some(Limit {
            a_second,
            second: 0,
            answered: 0,
        });
    }

    /// Forgets planned faults, the limit and the latency; an outage stays.
    pub fn clear(&self) {
        *self.lock() = Planned::default();
    }

    /// How many requests planned faults still wait for, lasting ones aside.
    pub fn pending(&self) -> u32 {
        let planned = self.lock();
        planned.faults.iter().filter_map(|fault| fault.left).sum()
    }

    /// Breaks every open watch.
    pub fn drop_watches(&self) {
        self.signals.send_modify(|signals| signals.drops += 1);
    }

    /// Lets every open watch fall silent, as behind a connection that is half open: nothing comes,
    /// not even its end.
    pub fn freeze_watches(&self) {
        self.signals.send_modify(|signals| signals.frozen = true);
    }

    /// Lets silent watches go on.
    pub fn thaw_watches(&self) {
        self.signals.send_modify(|signals| signals.frozen = false);
    }

    /// Sends a bookmark on every open watch that allows them.
    pub fn send_bookmarks(&self) {
        self.signals.send_modify(|signals| signals.bookmarks += 1);
    }

    /// Breaks every open watch, and every connection that makes a request, until `up`.
    pub fn down(&self) {
        self.signals.send_modify(|signals| signals.down = true);
    }

    /// Ends the outage; the state is as it was.
    pub fn up(&self) {
        self.signals.send_modify(|signals| signals.down = false);
    }

    /// Whether there is an outage.
    pub fn is_down(&self) -> bool {
        self.signals.borrow().down
    }

    pub(crate) fn signals(&self) -> watch::Receiver<Signals> {
        self.signals.subscribe()
    }

    pub(crate) fn delay(&self) -> Duration {
        self.lock().latency
    }

    /// Decides about a request, and uses up the fault it meets.
    pub(crate) fn meet(&self, call: &Call) -> Fate {
        let mut planned = self.lock();
        if let Some(limit) = &mut planned.limit {
            let second = call.at.as_second();
            if limit.second != second {
                (limit.second, limit.answered) = (second, 0);
            }
            limit.answered += 1;
            if limit.answered > limit.a_second {
                return Fate::Answer(busy());
            }
        }
        let Some(fault) = planned.faults.iter_mut().find(|fault| fault.meets(call)) else {
            return Fate::Normal;
        };
        fault.left = fault.left.map(|left| left - 1);
        let fate = match &fault.effect {
            Effect::Answer(refusal) => Fate::Answer(refusal.clone()),
            Effect::Break => Fate::Break,
            Effect::LoseAnswer => Fate::LoseAnswer,
            Effect::Wait(delay) => Fate::Wait(*delay),
            Effect::Stale(version) => Fate::Stale(*version),
            Effect::Hang => Fate::Hang,
            Effect::Part(bytes, ending) => Fate::Part(*bytes, *ending),
        };
        planned.faults.retain(|fault| fault.left != Some(0));
        fate
    }

    fn lock(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What priority and fairness answers.
fn busy() -> Refusal {
    let message = "Too many requests, please try again later.";
    let mut refusal = Refusal::new(429, "TooManyRequests", message);
    refusal.retry_after = Some(1);
    refusal
}
