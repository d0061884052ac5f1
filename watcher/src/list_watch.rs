//! LIST, then WATCH from the version of the list, for as long as that works: what client-go calls a
//! reflector, without a store.
//!
//! Every request has a deadline, so that a connection that died silently is noticed. A page or a
//! watch that fails is asked for again from where it stopped; a list begins anew only when the API
//! server has forgotten where that was. A watch that ends at once has failed, too. Pages grow and
//! shrink with the objects in them.

mod failure;

use std::{collections::VecDeque, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Api, Resource,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::time::{Instant, timeout_at};

use crate::{config::Tuning, object::Object};

pub(crate) use failure::{Failure, Phase, read};

/// Objects of the first page, whose size nobody knows yet.
const FIRST_PAGE: u32 = 10;
/// By how much a page may be larger than the one before it.
const GROWTH: u32 = 4;
/// A page has about this part of what may be held.
const PAGES: usize = 64;
/// Smaller pages gain nothing.
const LEAST_PAGE_BYTES: usize = 1 << 20;
/// How much longer than it asked for a watch is waited for.
const MARGIN: Duration = Duration::from_secs(5);
/// A watch that ends earlier, and without an event, has failed.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A watch over which nothing comes works once it has lasted for so long.
const SETTLES: Duration = Duration::from_secs(3);

/// What there is, and what happens to it.
#[derive(Debug)]
pub(crate) enum Event {
    Init,
    /// The object is in the list.
    InitApply(Object),
    /// That was the whole list.
    InitDone,
    /// A watch is open. It may end at once.
    Open,
    /// A watch has lasted for some time, in which nothing came.
    Settled,
    /// The object was made or changed.
    Apply(Object),
    /// The object was deleted, or fits the selector no longer.
    Delete(Object),
    /// Nothing happened up to now.
    Bookmark,
}

impl Event {
    /// Whether what failed before works again. That a list or a watch begins does not say so.
    pub(crate) fn is_success(&self) -> bool {
        !matches!(self, Self::Init | Self::Open)
    }
}

/// How long the requests may take, and how large pages are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    page_size: u32,
    page_bytes: usize,
    list_deadline: Duration,
    watch_deadline: Duration,
    watch_lasts: Duration,
}

impl From<&Tuning> for Limits {
    fn from(tuning: &Tuning) -> Self {
        Self {
            page_size: tuning.page_size,
            page_bytes: (tuning.hold_bytes / PAGES).max(LEAST_PAGE_BYTES),
            list_deadline: tuning.list_deadline,
            watch_deadline: tuning.watch_deadline,
            watch_lasts: tuning.watch_lasts,
        }
    }
}

impl Limits {
    /// With another time after which a watch is begun anew.
    pub(crate) fn watch_lasts(self, watch_lasts: Duration) -> Self {
        Self {
            watch_lasts,
            ..self
        }
    }

    /// How many objects to ask for after a page of `asked`, which had so many of so many bytes.
    fn next_page(&self, asked: u32, objects: usize, bytes: usize) -> u32 {
        let Some(each) = bytes.checked_div(objects) else {
            return asked;
        };
        let fit = u32::try_from(self.page_bytes / each.max(1)).unwrap_or(u32::MAX);
        fit.min(asked.saturating_mul(GROWTH))
            .min(self.page_size)
            .max(1)
    }
}

/// Lists and watches the objects of one kind.
pub(crate) struct ListWatch {
    api: Api<Object>,
    labels: Option<String>,
    fields: Option<String>,
    limits: Limits,
    page: u32,
    state: State,
}

enum State {
    Unlisted,
    /// What is left of a page, and the token of the one after it.
    Page {
        left: VecDeque<Object>,
        next: Option<String>,
    },
    /// What is left of the last page, and the version of the list.
    LastPage {
        left: VecDeque<Object>,
        version: String,
    },
    /// All that happened up to this version was told.
    Listed {
        version: String,
    },
    Watching {
        version: String,
        events: BoxStream<'static, kube::Result<WatchEvent<Object>>>,
        until: Instant,
        /// When it began, if nothing has come over it and it has not settled.
        quiet_since: Option<Instant>,
    },
}

impl ListWatch {
    pub(crate) fn new(api: Api<Object>, limits: Limits) -> Self {
        Self {
            api,
            labels: None,
            fields: None,
            limits,
            page: FIRST_PAGE.min(limits.page_size).max(1),
            state: State::Unlisted,
        }
    }

    /// Only objects with these labels.
    pub(crate) fn labels(mut self, selector: Option<&str>) -> Self {
        self.labels = selector.map(str::to_owned);
        self
    }

    /// Only objects with these fields.
    pub(crate) fn fields(mut self, selector: Option<&str>) -> Self {
        self.fields = selector.map(str::to_owned);
        self
    }

    /// What happens is told, as far as the API server has told.
    pub(crate) fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching { .. })
    }

    /// What comes next. It may be called again after a failure, and goes on from there. Dropping
    /// the call may lose an event.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            match &mut self.state {
                State::Unlisted => {
                    self.state = State::Page {
                        left: VecDeque::new(),
                        next: None,
                    };
                    return Ok(Event::Init);
                }
                State::Page { left, next } => {
                    if let Some(object) = left.pop_front() {
                        return Ok(Event::InitApply(object));
                    }
                    let next = next.clone();
                    self.state = self.list(next).await?;
                }
                State::LastPage { left, version } => {
                    if let Some(object) = left.pop_front() {
                        return Ok(Event::InitApply(object));
                    }
                    let version = std::mem::take(version);
                    self.state = State::Listed { version };
                    return Ok(Event::InitDone);
                }
                State::Listed { version } => {
                    let version = version.clone();
                    self.watch(version).await?;
                    return Ok(Event::Open);
                }
                State::Watching { .. } => {
                    if let Some(event) = self.event().await? {
                        return Ok(event);
                    }
                }
            }
        }
    }

    async fn list(&mut self, token: Option<String>) -> Result<State, Failure> {
        let params = ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            limit: Some(self.page),
            continue_token: token,
            ..ListParams::default()
        };
        let list = self.api.list(&params);
        let list = read(Phase::List, self.limits.list_deadline, list).await;
        let list = list.inspect_err(|failure| self.forget_if_expired(failure))?;
        let left = VecDeque::from(list.items);
        let bytes = left.iter().map(Object::size).sum();
        self.page = self.limits.next_page(self.page, left.len(), bytes);
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(match text(list.metadata.continue_) {
            Some(next) => State::Page {
                left,
                next: Some(next),
            },
            None => State::LastPage {
                left,
                version: text(list.metadata.resource_version).unwrap_or_default(),
            },
        })
    }

    async fn watch(&mut self, version: String) -> Result<(), Failure> {
        let lasts = self.limits.watch_lasts;
        let params = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: u32::try_from(lasts.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        let begin = self.api.watch(&params, &version);
        let events = read(Phase::Watch, self.limits.watch_deadline, begin).await;
        let events = events.inspect_err(|failure| self.forget_if_expired(failure))?;
        let now = Instant::now();
        self.state = State::Watching {
            version,
            events: events.boxed(),
            until: now + lasts + MARGIN,
            quiet_since: Some(now),
        };
        Ok(())
    }

    /// Reads an event; none if the watch ended, as it does from time to time.
    async fn event(&mut self) -> Result<Option<Event>, Failure> {
        let State::Watching {
            version,
            events,
            until,
            quiet_since,
        } = &mut self.state
        else {
            return Ok(None);
        };
        let settles = quiet_since.map(|began| began + SETTLES);
        let settles = settles.filter(|settles| settles < until);
        let event = match timeout_at(settles.unwrap_or(*until), events.next()).await {
            Ok(Some(Ok(event))) => event,
            Err(_elapsed) if settles.is_some() => {
                *quiet_since = None;
                return Ok(Some(Event::Settled));
            }
            // The next event can be read.
            Ok(Some(Err(error @ kube::Error::SerdeError(_)))) => {
                return Err(Failure::of(Phase::Watch, &error));
            }
            ended => {
                let is_early = quiet_since.is_some_and(|began| began.elapsed() < AT_ONCE);
                let version = std::mem::take(version);
                self.state = State::Listed { version };
                return match ended {
                    Ok(Some(Err(error))) => Err(Failure::of(Phase::Watch, &error)),
                    _ if is_early => Err(Failure::early()),
                    _ => Ok(None),
                };
            }
        };
        *quiet_since = None;
        let mut at = |newer: Option<&str>| {
            if let Some(newer) = newer.filter(|newer| !newer.is_empty()) {
                newer.clone_into(version);
            }
        };
        Ok(Some(match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                at(object.meta().resource_version.as_deref());
                Event::Apply(object)
            }
            WatchEvent::Deleted(object) => {
                at(object.meta().resource_version.as_deref());
                Event::Delete(object)
            }
            WatchEvent::Bookmark(bookmark) => {
                at(Some(&bookmark.metadata.resource_version));
                Event::Bookmark
            }
            WatchEvent::Error(status) => {
                let failure = Failure::of(Phase::Watch, &kube::Error::Api(status));
                let version = std::mem::take(version);
                self.state = State::Listed { version };
                self.forget_if_expired(&failure);
                return Err(failure);
            }
        }))
    }

    fn forget_if_expired(&mut self, failure: &Failure) {
        if failure.is_expired() {
            self.state = State::Unlisted;
        }
    }
}

#[cfg(test)]
mod tests {
    use hindsight_run::Kind;
    use kubesim::{Crd, Fault, Sim};

    use super::*;
    use crate::cluster::Cluster;

    fn limits(page_bytes: usize) -> Limits {
        Limits {
            page_bytes,
            ..Limits::from(&Tuning::default())
        }
    }

    #[test]
    fn a_page_has_as_many_objects_as_fit_and_grows_step_by_step() {
        let of = limits(4 << 20);
        // Small objects: four times as many, up to the configured number.
        assert_eq!(of.next_page(10, 10, 10 << 10), 40);
        assert_eq!(of.next_page(160, 160, 160 << 10), 250);
        // Objects of a megabyte: as many as fit, whatever was asked for.
        assert_eq!(of.next_page(250, 250, 250 << 20), 4);
        assert_eq!(of.next_page(4, 4, 4 << 20), 4);
        // One at a time, however large it is; nothing is learned from an empty page.
        assert_eq!(of.next_page(10, 10, 100 << 20), 1);
        assert_eq!(of.next_page(40, 0, 0), 40);
    }

    /// TaskRuns that are watched, and there are none.
    async fn watched(sim: &Sim) -> ListWatch {
        sim.install_all(Crd::tekton());
        let kind = Kind::named("tekton.dev", "TaskRun").unwrap();
        let api = Cluster::new(sim.client(), None).watched(kind);
        let mut watched = ListWatch::new(api, Limits::from(&Tuning::default()));
        assert!(matches!(watched.next().await, Ok(Event::Init)));
        assert!(matches!(watched.next().await, Ok(Event::InitDone)));
        watched
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_works_once_it_has_lasted_or_something_has_come() {
        let sim = Sim::new();
        sim.namespace("ci");
        let mut watched = watched(&sim).await;
        assert!(matches!(watched.next().await, Ok(Event::Open)));
        let began = Instant::now();
        assert!(matches!(watched.next().await, Ok(Event::Settled)));
        assert_eq!(began.elapsed(), SETTLES);
        sim.faults().drop_watches();
        assert!(matches!(watched.next().await, Ok(Event::Open)));
        let run = serde_json::json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": "build", "namespace": "ci"}});
        sim.create(run).unwrap();
        assert!(matches!(watched.next().await, Ok(Event::Apply(_))));
        sim.faults().drop_watches();
        assert!(matches!(watched.next().await, Ok(Event::Open)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_has_failed() {
        let sim = Sim::new();
        let mut watched = watched(&sim).await;
        for broken in [Fault::ended_after(0), Fault::broken_after(0)] {
            sim.faults().plan(broken.verb("watch"));
            assert!(matches!(watched.next().await, Ok(Event::Open)));
            assert_eq!(watched.next().await.unwrap_err().phase, Phase::Watch);
        }
        assert!(matches!(watched.next().await, Ok(Event::Open)));
        assert!(matches!(watched.next().await, Ok(Event::Settled)));
    }

    #[test]
    fn a_page_never_asks_for_more_than_was_configured() {
        let of = Limits {
            page_size: 7,
            ..limits(4 << 20)
        };
        assert_eq!(of.next_page(7, 7, 70), 7);
    }
}
