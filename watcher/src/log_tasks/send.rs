//! Sending what readers have read: one call at a time, with lines of all sources.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::{Instant, sleep_until};
use tracing::{debug, error, warn};

use super::{
    hole::{Hole, cut},
    server, wake,
};
use crate::{
    logs::{Batch, Source},
    shared::Shared,
    sink::{Severity, SinkError},
};

/// A call has about so many bytes.
pub(super) const CALL: usize = 1 << 20;

type Parcel = (Arc<Source>, Batch);

/// Sends whenever there is something; returns when the server has no logs.
pub(super) async fn send(shared: Arc<Shared>) {
    let mut sender = Sender {
        shared: &shared,
        later: BTreeMap::new(),
        failures: 0,
        is_denied: false,
    };
    loop {
        sender.wait().await;
        if sender.round().await.is_err() {
            return;
        }
    }
}

/// Sends what is left at the end, for as long as that works.
pub(super) async fn rest(shared: &Shared) {
    loop {
        let parcels = gather(shared);
        if parcels.is_empty() || !shared.server.gate.is_open() {
            return;
        }
        let messages = messages(&parcels);
        let answer = server::call(shared, shared.server.sink.append_log(messages)).await;
        if answer.is_err() {
            return;
        }
        stored(shared, parcels);
    }
}

struct Sender<'s> {
    shared: &'s Shared,
    /// What is tried again, and when.
    later: BTreeMap<(Instant, u64), Parcel>,
    failures: u32,
    is_denied: bool,
}

/// The server has no logs.
struct Missing;

impl Sender<'_> {
    /// Waits until there is something to send, and then a little, so that more is sent at once, unless a
    /// reader waits for that.
    async fn wait(&self) {
        let again = self.later.keys().next().map(|(at, _)| *at);
        let begin = async {
            match again {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.logs.to_send.notified() => {}
            () = begin => {}
        }
        tokio::select! {
            () = tokio::time::sleep(self.shared.config.tuning.logs_interval) => {}
            () = self.shared.logs.full.notified() => {}
        }
    }

    /// Sends what there is now.
    async fn round(&mut self) -> Result<(), Missing> {
        let now = Instant::now();
        while let Some(first) = self.later.first_entry()
            && first.key().0 <= now
        {
            let parcel = first.remove();
            self.one(parcel).await?;
        }
        loop {
            let parcels = gather(self.shared);
            let oldest = parcels.iter().filter_map(|(_, batch)| batch.since).min();
            let behind = oldest.map_or(0.0, |since| since.elapsed().as_secs_f64());
            self.shared.metrics.logs.behind.set(behind);
            let size: usize = parcels.iter().map(|(_, batch)| batch.size()).sum();
            if !parcels.is_empty() {
                self.together(parcels).await?;
            }
            // What comes next waits for more.
            if size < CALL {
                return Ok(());
            }
        }
    }

    /// Sends lines of many sources; of each alone where the server refuses some of them.
    async fn together(&mut self, parcels: Vec<Parcel>) -> Result<(), Missing> {
        let sink = &self.shared.server.sink;
        let answer = loop {
            let messages = messages(&parcels);
            match server::call(self.shared, sink.append_log(messages)).await {
                // The next call waits until the server is available again.
                Err(error) if error.severity == Severity::Unavailable => {}
                answer => break answer,
            }
        };
        match answer {
            Ok(_) => {
                (self.failures, self.is_denied) = (0, false);
                stored(self.shared, parcels);
                Ok(())
            }
            Err(error) if server::is_missing(&error) => Err(Missing),
            Err(error) if parcels.len() == 1 => {
                for (source, batch) in parcels {
                    self.refused(source, batch, &error);
                }
                Ok(())
            }
            Err(_) => {
                for parcel in parcels {
                    self.one(parcel).await?;
                }
                Ok(())
            }
        }
    }

    /// Sends lines of one source.
    async fn one(&mut self, parcel: Parcel) -> Result<(), Missing> {
        Box::pin(self.together(vec![parcel])).await
    }

    /// The server refuses the lines of a source.
    fn refused(&mut self, source: Arc<Source>, batch: Batch, error: &SinkError) {
        let (pod, container, _) = &source.key;
        match error.severity {
            // Another watcher may have written, or the server lost some: its reader finds out.
            _ if error.code == "FAILED_PRECONDITION" => {
                debug!(
                    "log of {container} in {pod} is not as it was; going on after what is stored: {error}"
                );
                source.outbox.fail(batch.lines);
            }
            _ if server::is_over_quota(error) => {
                debug!("log of {container} in {pod} ends here: {error}");
                cut(self.shared, &source, Hole::Quota, batch.lines.first_line);
            }
            Severity::Lasting => {
                error!("log of {container} in {pod} is refused and given up: {error}");
                let woken = self.shared.logs.over(&source, Instant::now());
                wake(self.shared, woken);
            }
            Severity::Denied | Severity::Passing | Severity::Unavailable => {
                self.failures = self.failures.saturating_add(1);
                let is_denied = error.severity == Severity::Denied;
                if is_denied && !std::mem::replace(&mut self.is_denied, true) {
                    let log = &source.log;
                    warn!("logs may not be stored, as that of {log}; trying again: {error}");
                }
                let at = Instant::now() + server::wait(self.shared, error, self.failures);
                self.later.insert((at, source.id), (source, batch));
            }
        }
    }
}

/// What waits, as much as one call has.
fn gather(shared: &Shared) -> Vec<Parcel> {
    let mut parcels = Vec::new();
    let mut size = 0;
    while size < CALL
        && let Some(source) = shared.logs.next_dirty()
    {
        if let Some(batch) = source.outbox.take() {
            size += batch.size();
            parcels.push((source, batch));
        }
    }
    parcels
}

fn messages(parcels: &[Parcel]) -> Vec<hindsight_proto::v1::AppendLogRequest> {
    let messages = parcels.iter();
    messages
        .map(|(source, batch)| source.message(batch))
        .collect()
}

/// The server has it.
fn stored(shared: &Shared, parcels: Vec<Parcel>) {
    for (source, batch) in parcels {
        let metrics = &shared.metrics.logs;
        metrics.lines.inc_by(batch.lines.times.len() as u64);
        metrics.bytes.inc_by(batch.lines.text.len() as u64);
        if source.outbox.stored(batch.seal) {
            shared.logs.has_lines(&source);
        }
        if batch.seal {
            let woken = shared.logs.over(&source, Instant::now());
            wake(shared, woken);
        }
    }
}
