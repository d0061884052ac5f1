//! Asking the server what it holds of the log of a run, once for each run.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::{task::JoinSet, time::Instant};
use tracing::warn;

use super::server;
use crate::{
    ledger::Uid,
    shared::Shared,
    sink::{Severity, SinkError},
};

/// So many are asked for at once.
const AT_ONCE: usize = 4;

/// Asks for runs whenever there are some; returns when the server has no logs.
pub(super) async fn ask(shared: Arc<Shared>) {
    let mut asked: JoinSet<(Ask, Result<(), SinkError>)> = JoinSet::new();
    let mut poll = tokio::time::interval(shared.config.tuning.logs_interval);
    poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut later = Later::default();
    let mut failures = 0;
    loop {
        while asked.len() < AT_ONCE
            && let Some(next) = later.next(&shared)
        {
            asked.spawn(one(Arc::clone(&shared), next));
        }
        let answer = tokio::select! {
            _ = poll.tick() => continue,
            Some(answer) = asked.join_next() => answer,
        };
        let Ok((of, answer)) = answer else { continue };
        let Err(error) = answer else {
            failures = 0;
            if later.denied.remove(&of.parent).is_some() {
                later.release(&shared);
            }
            continue;
        };
        if server::is_missing(&error) {
            return;
        }
        let again = Instant::now() + server::wait(&shared, &error, failures + 1);
        match error.severity {
            Severity::Denied => {
                if later.denied.insert(of.parent.clone(), again).is_none() {
                    warn!(
                        "what the server holds of logs in {} may not be read, so that none are stored: {error}",
                        of.parent
                    );
                }
                later.put_off(again, of.run);
            }
            Severity::Lasting => later.put_off(again, of.run),
            Severity::Unavailable | Severity::Passing => {
                failures += 1;
                shared.logs.unanswered(of.run);
                tokio::time::sleep_until(again).await;
            }
        }
    }
}

/// A run, its log, and the parent that is asked whether the log may be read.
struct Ask {
    run: Uid,
    log: Box<str>,
    parent: Box<str>,
}

/// What is asked for later, so that a run or a parent that is refused delays no other.
#[derive(Default)]
struct Later {
    runs: BTreeMap<(Instant, u64), Uid>,
    count: u64,
    /// Parents whose logs may not be read, and until when that is not asked.
    denied: HashMap<Box<str>, Instant>,
}

impl Later {
    fn put_off(&mut self, again: Instant, run: Uid) {
        self.count += 1;
        self.runs.insert((again, self.count), run);
    }

    /// Lets all runs be asked for. Those whose parents are denied are put off again.
    fn release(&mut self, shared: &Shared) {
        for run in std::mem::take(&mut self.runs).into_values() {
            shared.logs.unanswered(run);
        }
    }

    /// The next run to ask for, unless all are put off.
    fn next(&mut self, shared: &Shared) -> Option<Ask> {
        let now = Instant::now();
        while let Some(first) = self.runs.first_entry()
            && first.key().0 <= now
        {
            shared.logs.unanswered(first.remove());
        }
        while let Some((run, log)) = shared.logs.next_unasked() {
            let (parent, _) = log.split_once("/results/").unwrap_or_default();
            match self.denied.get(parent).copied() {
                Some(until) if until > now => self.put_off(until, run),
                known => {
                    let parent: Box<str> = parent.into();
                    if known.is_some() {
                        // One run tells of all.
                        let until = now + shared.config.tuning.rare_retry;
                        self.denied.insert(parent.clone(), until);
                    }
                    return Some(Ask { run, log, parent });
                }
            }
        }
        None
    }
}

async fn one(shared: Arc<Shared>, of: Ask) -> (Ask, Result<(), SinkError>) {
    let answer = server::held(&shared, &of.log).await;
    let answer = answer.map(|containers| shared.logs.answered(&of.run, containers));
    (of, answer)
}
