//! The loop that sends to one receiver: it holds the cursor, follows the feed from there, delivers
//! what comes, and moves the cursor behind what was delivered.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use hindsight_filter::Filter;
use hindsight_filter::model::RecordName;
use hindsight_runtime::error::report;
use hindsight_storage as storage;
use hindsight_storage::{ChangedRecord, FeedPosition};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Source,
    client::Client,
    delivery::Way,
    event::Origin,
    metrics::OfReceiver,
    receivers::{Moment, Receiver},
    told::Told,
};
use crate::service::{self, RunWatch};

/// How long a server may send after it said so to the database.
const HOLD: Duration = Duration::from_secs(15);
/// How often it says so, and how long it waits where another server sends or the database is away.
const RENEW: Duration = Duration::from_secs(3);
/// How long what was delivered may stay unnoted.
const NOTE: Duration = Duration::from_secs(1);
/// How long a server that stops waits for requests that are under way.
const LAST: Duration = Duration::from_secs(5);

/// What sends to one receiver.
#[derive(Debug)]
pub(super) struct Sender {
    way: Way,
    types: Vec<Moment>,
    concurrency: usize,
    filter: Arc<Filter>,
    source: Source,
    origin: Arc<Origin>,
    /// Who holds the cursor.
    holder: String,
}

/// What was delivered, and the place after it.
struct Done {
    record: Option<RecordName>,
    place: FeedPosition,
}

/// The time for which a server holds a cursor.
struct Turn<'a> {
    sender: &'a Sender,
    /// Nothing may be sent after this.
    until: Instant,
    /// The place that the database has, and when it got it.
    noted: (FeedPosition, Instant),
    /// The place behind everything that was delivered.
    place: FeedPosition,
    /// Deliveries in the order of their changes, of at most one change of each record.
    under_way: FuturesOrdered<BoxFuture<'a, Done>>,
    busy: HashSet<RecordName>,
    /// When the changes that are under way were made.
    ages: VecDeque<Timestamp>,
    /// A change of a record of which another is under way.
    waiting: Option<Arc<ChangedRecord>>,
    told: Told,
}

/// Why a turn is over.
enum End {
    /// The server stops.
    Stopping,
    /// Another server may send now.
    Lost,
    /// The feed is to be followed from the place again.
    Again,
}

impl Sender {
    pub(super) fn new(
        receiver: Receiver,
        client: Client,
        filter: Arc<Filter>,
        source: Source,
        origin: Arc<Origin>,
        metrics: OfReceiver,
    ) -> Self {
        Self {
            way: Way {
                receiver: receiver.name,
                client,
                skip_after: receiver.skip_after,
                metrics,
                clock: Arc::clone(&source.clock),
            },
            types: receiver.types,
            concurrency: receiver.concurrency,
            filter,
            source,
            origin,
            holder: Uuid::new_v4().to_string(),
        }
    }

    /// Sends until `stopping`, whenever this server holds the cursor.
    pub(super) async fn run(self, stopping: CancellationToken) {
        let receiver = &self.way.receiver;
        while !stopping.is_cancelled() {
            let began = Instant::now();
            let held = self
                .source
                .maintenance
                .hold_cursor(receiver, &self.holder, HOLD)
                .await;
            match held {
                Ok(None) => {}
                Ok(Some(place)) => {
                    self.way.metrics.sends(true);
                    let end = Turn::new(&self, place, began + HOLD).run(&stopping).await;
                    self.way.metrics.sends(false);
                    self.way.metrics.behind(0);
                    match end {
                        End::Again => continue,
                        End::Stopping => break,
                        End::Lost => tracing::warn!(
                            receiver,
                            "the cursor of a receiver could not be kept; another server may send"
                        ),
                    }
                }
                Err(error) => {
                    let error = report(&error);
                    tracing::warn!(receiver, error, "cannot send events; retrying");
                }
            }
            tokio::select! {
                () = sleep(RENEW) => {}
                () = stopping.cancelled() => {}
            }
        }
    }
}

impl<'a> Turn<'a> {
    fn new(sender: &'a Sender, place: FeedPosition, until: Instant) -> Self {
        Self {
            sender,
            until,
            noted: (place, Instant::now()),
            place,
            under_way: FuturesOrdered::new(),
            busy: HashSet::new(),
            ages: VecDeque::new(),
            waiting: None,
            told: Told::default(),
        }
    }

    async fn run(mut self, stopping: &CancellationToken) -> End {
        let mut feed = match self.follow().await {
            Ok(feed) => feed,
            Err(error) => {
                let (receiver, error) = (&self.sender.way.receiver, report(&error));
                tracing::warn!(receiver, error, "cannot follow changes of runs; retrying");
                return End::Lost;
            }
        };
        let mut renew = interval(RENEW);
        renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ends: Option<Instant> = None;
        loop {
            let is_free = self.waiting.is_none()
                && self.under_way.len() < self.sender.concurrency
                && ends.is_none();
            let is_idle = self.under_way.is_empty();
            if Instant::now() >= self.until {
                return End::Lost;
            }
            if ends.is_some_and(|at| is_idle || at <= Instant::now()) {
                return self.give_back().await;
            }
            if feed.is_none() && is_idle {
                return if self.note().await {
                    End::Again
                } else {
                    End::Lost
                };
            }
            tokio::select! {
                biased;
                () = stopping.cancelled(), if ends.is_none() => ends = Some(Instant::now() + LAST),
                () = until(ends), if ends.is_some() => {}
                _ = renew.tick() => {
                    if let Some(feed) = &mut feed
                        && is_idle
                    {
                        self.place = self.place.max(feed.position());
                    }
                    self.measure();
                    if !self.note().await {
                        return End::Lost;
                    }
                }
                Some(done) = self.under_way.next() => {
                    self.done(done);
                    if self.noted.1.elapsed() >= NOTE && !self.note().await {
                        return End::Lost;
                    }
                }
                change = next(&mut feed), if is_free && feed.is_some() => match change {
                    Ok(change) => self.take(change),
                    // What was read before is delivered first.
                    Err(service::Error::Store(storage::Error::Expired)) => feed = None,
                    Err(error) => {
                        let (receiver, error) = (&self.sender.way.receiver, report(&error));
                        tracing::warn!(receiver, error, "cannot read changes of runs; retrying");
                        sleep(NOTE).await;
                    }
                },
            }
        }
    }

    /// The feed from the place on. If changes after it were removed, there is none, and an event says so.
    async fn follow(&mut self) -> Result<Option<RunWatch>, service::Error> {
        let sender = self.sender;
        let filter = Arc::clone(&sender.filter);
        let followed = sender.source.service.follow_runs(filter, self.place).await;
        match followed {
            Err(service::Error::Store(storage::Error::Expired)) => {}
            followed => return followed.map(Some),
        }
        let begin = sender.source.store.feed_begin().await?;
        let receiver = &sender.way.receiver;
        sender.way.metrics.gap();
        tracing::error!(
            receiver,
            "changes of runs were removed before their events were sent; the receiver is told of it, \
             and gets those that are left"
        );
        let now = sender.source.clock.now();
        let event = sender.origin.interrupted(receiver, self.place, now);
        let said = async move {
            sender.way.deliver(&event).await;
            Done {
                record: None,
                place: begin,
            }
        };
        self.ages.push_back(now);
        self.under_way.push_back(said.boxed());
        Ok(None)
    }

    /// Begins to deliver what a change tells, unless another change of its record is under way.
    fn take(&mut self, change: Arc<ChangedRecord>) {
        let record = change.columns.record.name.clone();
        if !self.busy.insert(record.clone()) {
            self.waiting = Some(change);
            return;
        }
        let sender = self.sender;
        let mut events = sender.origin.events(&change.columns, &sender.types);
        events.retain(|event| self.told.insert(&event.id));
        let place = change.position;
        self.ages.push_back(change.columns.record.update_time);
        let delivery = async move {
            for event in &events {
                sender.way.deliver(event).await;
            }
            Done {
                record: Some(record),
                place,
            }
        };
        self.under_way.push_back(delivery.boxed());
    }

    /// Notes that the change which was under way for longest is delivered.
    fn done(&mut self, done: Done) {
        self.ages.pop_front();
        self.place = done.place;
        if let Some(record) = done.record {
            self.busy.remove(&record);
        }
        if let Some(waiting) = self.waiting.take() {
            self.take(waiting);
        }
    }

    fn measure(&self) {
        let now = self.sender.source.clock.now();
        let age = self
            .ages
            .front()
            .map_or(0, |at| now.duration_since(*at).as_secs());
        self.sender.way.metrics.behind(age.max(0));
    }

    /// Writes the place down and holds the cursor for longer; false if it may be another server's.
    async fn note(&mut self) -> bool {
        let began = Instant::now();
        match self.advance(HOLD).await {
            Some(true) => {
                self.until = began + HOLD;
                self.noted = (self.place, began);
                true
            }
            Some(false) => false,
            // It is tried again while the cursor is held.
            None => Instant::now() + RENEW < self.until,
        }
    }

    /// Moves the cursor; none if the database did not do it in time.
    async fn advance(&mut self, time: Duration) -> Option<bool> {
        let sender = self.sender;
        let maintenance = &sender.source.maintenance;
        let receiver = &sender.way.receiver;
        let advanced = maintenance.advance_cursor(receiver, &sender.holder, self.place, time);
        match timeout_at(self.until, advanced).await {
            Ok(Ok(advanced)) => Some(advanced),
            Ok(Err(error)) => {
                let error = report(&error);
                tracing::warn!(receiver, error, "cannot note which events were delivered");
                None
            }
            Err(_elapsed) => None,
        }
    }

    /// Lets another server send from the place on.
    async fn give_back(mut self) -> End {
        self.advance(Duration::ZERO).await;
        End::Stopping
    }
}

/// The next change.
async fn next(feed: &mut Option<RunWatch>) -> Result<Arc<ChangedRecord>, service::Error> {
    match feed {
        Some(feed) => feed.next().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
