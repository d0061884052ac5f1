//! Reading one start of one container to its end, however often that is interrupted.

mod stream;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    hole::{Hole, mark},
    server, wake,
};
use crate::{
    cluster::{ClusterError, LogOf},
    config::Logs,
    logs::{Access, Overlap, Sight, Source, Splitter, Written},
    shared::Shared,
    sink::{Severity, SinkError},
};
use stream::{Read, Reading, spool};

/// How long after its log the end of a container may become known.
const END: Duration = Duration::from_secs(5);

/// Reads a container until its log is sealed.
pub(super) async fn read(shared: Arc<Shared>, source: Arc<Source>) {
    let mut reader = Reader {
        shared: &shared,
        source: &source,
        sight: source.sight(),
        failures: 0,
    };
    loop {
        match reader.attempt().await {
            Next::Again(wait) => sleep(wait).await,
            Next::Later(at) => return shared.logs.later(&source, at),
            Next::Seal => {
                source.outbox.end();
                spool(&source).await;
                shared.logs.has_lines(&source);
                if source.outbox.flushed().await != Written::Failed || !reader.adapt().await {
                    return;
                }
            }
            Next::Adapt => {
                if !reader.adapt().await {
                    return;
                }
            }
            Next::Over => return,
        }
    }
}

struct Reader<'s> {
    shared: &'s Shared,
    source: &'s Arc<Source>,
    sight: watch::Receiver<Sight>,
    failures: u32,
}

/// What comes after an attempt.
enum Next {
    /// It is not at its end; another attempt goes on from where it is.
    Again(Duration),
    /// It is refused until a time; others are read meanwhile.
    Later(Instant),
    /// It was read to its end, and nothing follows.
    Seal,
    /// The server holds something else than was assumed.
    Adapt,
    /// The source is sealed or given up.
    Over,
}

impl Reader<'_> {
    async fn attempt(&mut self) -> Next {
        let (overlap, since) = match self.overlap().await {
            Ok(found) => found,
            Err(next) => return next,
        };
        let sight = *self.sight.borrow_and_update();
        if sight.is_gone {
            return self.end(Hole::PodDeleted, "");
        }
        let previous = match sight.access {
            Access::Current => false,
            Access::Previous => true,
            Access::Replaced => return self.end(Hole::Replaced, ""),
        };
        let follow = self.shared.config.logs == Logs::Follow && !sight.has_ended;
        let (pod, container, _) = &self.source.key;
        let of = LogOf {
            namespace: &self.source.namespace,
            pod,
            container,
            previous,
            follow,
            since,
        };
        let opened = self.shared.cluster.api.log(&of).await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) => return self.not_opened(&error).await,
        };
        let namespace = &self.source.namespace;
        if self.shared.logs.allowed(namespace) {
            info!("logs in {namespace} are read again");
        }
        debug!("the log of {container} in {pod} is open, since {since:?}");
        let reading = Reading {
            shared: self.shared,
            source: self.source,
            overlap,
            splitter: Splitter::default(),
            follow,
            is_full: false,
        };
        let (read, mut reading) = reading.run(stream, &mut self.sight).await;
        match read {
            Read::Whole if sight.has_ended => self.complete(&mut reading),
            Read::Whole => self.at_end(&mut reading).await,
            Read::Left => self.end(Hole::RunDeleted, ""),
            Read::Full => Next::Seal,
            Read::Written(Written::Failed) => Next::Adapt,
            Read::Written(_) => Next::Over,
            Read::Broken { any } => {
                self.failures = if any { 1 } else { self.failures + 1 };
                Next::Again(self.shared.config.tuning.retry.after(self.failures))
            }
        }
    }

    /// What is stored of what the API is asked for, and since when that is.
    async fn overlap(&mut self) -> Result<(Overlap, Option<Timestamp>), Next> {
        let outbox = &self.source.outbox;
        if outbox.last_time().is_none() {
            return Ok((Overlap::new(&[], false), None));
        }
        match outbox.flushed().await {
            Written::Stored => {}
            Written::Failed => return Err(Next::Adapt),
            Written::Over => return Err(Next::Over),
        }
        let second = outbox.last_time().unwrap_or_default().div_euclid(1_000_000);
        let since = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        let (log, name) = (&self.source.log, self.source.name());
        let first = Some(since.as_microsecond());
        match server::overlap(self.shared, (log, &name), first).await {
            Ok(overlap) => Ok((overlap, Some(since))),
            Err(error) => {
                self.failures += 1;
                let wait = server::wait(self.shared, &error, self.failures);
                Err(match error.severity {
                    Severity::Denied => Next::Later(Instant::now() + wait),
                    _ => Next::Again(wait),
                })
            }
        }
    }

    /// The API has no log to read.
    async fn not_opened(&mut self, error: &ClusterError) -> Next {
        self.failures = self.failures.saturating_add(1);
        let tuning = &self.shared.config.tuning;
        match error {
            ClusterError::Moved => self.end(Hole::PodDeleted, ""),
            ClusterError::Refused { code: 400, message } => match () {
                () if message.contains("is waiting to start") => {
                    // What changes about the container may be heard before or after.
                    let changed = timeout(END, self.sight.changed()).await;
                    let wait = tuning.retry.after(self.failures);
                    Next::Again(changed.map_or(wait, |_| tuning.retry.first))
                }
                () if message.contains("previous terminated") => self.end(Hole::Replaced, ""),
                () => self.end(Hole::Unreadable, message),
            },
            ClusterError::Refused { code, .. } => {
                let at = Instant::now() + tuning.rare_retry;
                let namespace = &self.source.namespace;
                if *code == 403 && self.shared.logs.denied(namespace, at) {
                    warn!("logs in {namespace} are not read; allow get of pods/log: {error}");
                }
                Next::Later(at)
            }
            ClusterError::Passing { retry_after, .. } => {
                let wait = tuning.retry.after(self.failures);
                Next::Again(wait.max(retry_after.unwrap_or_default()))
            }
        }
    }

    /// The stream ended. Whether the container did is told by its pod.
    async fn at_end(&mut self, reading: &mut Reading<'_>) -> Next {
        let is_known = |sight: &Sight| sight.has_ended || sight.is_gone || sight.is_leaving;
        let known = timeout(END, self.sight.wait_for(is_known)).await;
        let sight = match known.map(|known| known.map(|sight| *sight)) {
            Ok(Ok(sight)) => sight,
            Ok(Err(_closed)) => return Next::Over,
            Err(_elapsed) => return Next::Again(self.shared.config.tuning.retry.first),
        };
        match () {
            () if sight.has_ended && reading.follow => self.complete(reading),
            // It was not ended when it was read.
            () if sight.has_ended && !sight.is_gone => Next::Again(Duration::ZERO),
            () if sight.is_gone => {
                reading.finish();
                self.end(Hole::PodDeleted, "")
            }
            () => {
                reading.finish();
                self.end(Hole::RunDeleted, "")
            }
        }
    }

    /// Everything was read.
    fn complete(&self, reading: &mut Reading<'_>) -> Next {
        reading.finish();
        if !reading.overlap.is_found() {
            mark(self.shared, self.source, Hole::Rotated, "");
        }
        Next::Seal
    }

    /// Nothing more can be read.
    fn end(&self, hole: Hole, more: &str) -> Next {
        let (pod, container, _) = &self.source.key;
        debug!("the log of {container} in {pod} is not whole: {hole:?}");
        mark(self.shared, self.source, hole, more);
        Next::Seal
    }

    /// Goes on with what the server holds. Whether there is something to go on with.
    async fn adapt(&mut self) -> bool {
        loop {
            match self.resume().await {
                Ok(goes_on) => return goes_on,
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    sleep(server::wait(self.shared, &error, self.failures)).await;
                }
            }
        }
    }

    /// The pod may be gone, so that what was read waits on, unless the server has it.
    async fn resume(&self) -> Result<bool, SinkError> {
        let (log, name) = (&self.source.log, self.source.name());
        let held = server::held(self.shared, log).await?;
        let held = held.iter().find(|held| held.source.as_ref() == Some(&name));
        if held.is_some_and(|held| held.sealed) {
            let woken = self.shared.logs.over(self.source, Instant::now());
            wake(self.shared, woken);
            return Ok(false);
        }
        let first = self.source.outbox.first_time();
        let first = first.filter(|_| held.is_some());
        let mut overlap = server::overlap(self.shared, (log, &name), first).await?;
        self.source.go_on(held, |time| overlap.is_stored(time));
        self.shared.logs.has_lines(self.source);
        Ok(true)
    }
}
