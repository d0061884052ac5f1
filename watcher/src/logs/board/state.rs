//! The memory itself, and what follows from each piece of news.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use hindsight_proto::v1::LogContainer;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::{
    ledger::Uid,
    logs::{
        pod::{Container, Pod},
        queues::Queues,
        run::Facts,
        source::{Access, Key, Sight, Source},
    },
    spool::Spool,
};

/// How many starts of one container are looked at: most of those of one that fails in a loop are lost.
const STARTS: i32 = 10;

/// How often a pod that went is looked at until its run is known; about once a second.
const UNKNOWN: u32 = 120;

/// What does not change.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) follows: bool,
    pub(super) deadline: SignedDuration,
    pub(super) settle: Duration,
    pub(super) spool: Option<Arc<Spool>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) is_on: bool,
    /// Runs whose logs are not all stored.
    pub(super) open: HashMap<Uid, Run>,
    /// Runs in the cluster whose logs are stored.
    done: HashMap<Uid, Done>,
    pods: HashMap<Box<str>, PodEntry>,
    /// Labels whose pods are all known.
    listed: HashSet<&'static str>,
    pub(super) unasked: VecDeque<Uid>,
    pub(super) sources: HashMap<u64, Arc<Source>>,
    pub(super) queues: Queues,
    /// Sources that a reader has, or that are in `later`.
    pub(super) taken: HashSet<u64>,
    /// Sources that are not read before a time.
    pub(super) later: BTreeSet<(Instant, u64)>,
    /// Namespaces whose logs the cluster denies, and until when none of them is asked for.
    pub(super) denied: HashMap<Box<str>, Instant>,
    next_id: u64,
}

/// A run whose log is not stored yet.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) facts: Option<Facts>,
    /// Since when it is known that it ended.
    ended: Option<Instant>,
    pods: HashSet<Box<str>>,
    pub(super) stored: Stored,
    /// Sources that are not over.
    pub(super) reading: HashSet<u64>,
    /// Sources that were begun, or are sealed.
    begun: HashSet<Key>,
    pub(super) is_waited_for: bool,
    /// It was waited for as long as was agreed.
    pub(super) is_expired: bool,
    /// It is not in the cluster any more.
    is_gone: bool,
}

/// A run whose logs are stored, as far as its pods are known. A watch of pods may be late.
#[derive(Debug)]
struct Done {
    facts: Facts,
    ended: Instant,
    begun: HashSet<Key>,
}

/// What the server holds of the log of a run.
#[derive(Debug, Default)]
pub(super) enum Stored {
    #[default]
    Unasked,
    Asked,
    Known(HashMap<Key, LogContainer>),
}

#[derive(Debug)]
struct PodEntry {
    run: Uid,
    label: &'static str,
    list: u32,
    name: Box<str>,
    containers: Vec<Container>,
    is_gone: bool,
    /// How often it was looked at since it went while its run was not known.
    unknown: u32,
}

impl State {
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            open: HashMap::new(),
            done: HashMap::new(),
            pods: HashMap::new(),
            listed: HashSet::new(),
            unasked: VecDeque::new(),
            sources: HashMap::new(),
            queues: Queues::default(),
            taken: HashSet::new(),
            later: BTreeSet::new(),
            denied: HashMap::new(),
            next_id: 0,
        }
    }

    /// Nothing is known about the server, and nothing is being read.
    pub(super) fn reset(&mut self, ground: &Ground) -> Vec<Uid> {
        for source in self.sources.values() {
            source.outbox.close();
        }
        self.sources.clear();
        self.queues = Queues::default();
        self.taken.clear();
        self.later.clear();
        self.denied.clear();
        self.unasked.clear();
        self.listed.clear();
        for pod in self.pods.values_mut() {
            pod.list = u32::MAX;
        }
        let mut woken = Vec::new();
        let uids: Vec<Uid> = self.open.keys().cloned().collect();
        for uid in uids {
            if let Some(run) = self.open.get_mut(&uid) {
                run.stored = Stored::Unasked;
                run.reading.clear();
                run.begun.clear();
                if run.is_waited_for && !self.is_on {
                    woken.push(uid.clone());
                }
            }
            self.refresh(&uid, ground);
        }
        woken
    }

    pub(super) fn saw_run(&mut self, uid: &Uid, facts: Facts, now: Instant, ground: &Ground) {
        if self.done.contains_key(uid) {
            // It may go on after its end, when it is tried again.
            if facts.ended.is_some() {
                return;
            }
            self.done.remove(uid);
        }
        let run = self.open.entry(uid.clone()).or_default();
        run.ended = facts.ended.map(|_| run.ended.unwrap_or(now));
        let is_leaving = facts.is_leaving;
        run.facts = Some(facts);
        if is_leaving {
            for id in run.reading.clone() {
                self.show(id, ground, |sight| sight.is_leaving = true);
            }
        }
        self.refresh(uid, ground);
    }

    pub(super) fn forget(&mut self, uid: &Uid, at: Timestamp, now: Instant) {
        self.done.remove(uid);
        if let Some(run) = self.open.get_mut(uid) {
            run.is_gone = true;
            run.ended.get_or_insert(now);
            if let Some(facts) = &mut run.facts {
                facts.ended.get_or_insert(at);
            }
        }
    }

    pub(super) fn saw_pod(
        &mut self,
        pod: &Pod,
        run: &Uid,
        label: &'static str,
        list: u32,
        ground: &Ground,
    ) {
        let name: Box<str> = pod.metadata.name.as_str().into();
        let containers: Vec<Container> = pod.containers().collect();
        if let Some(done) = self.done.remove(run) {
            let is_begun = |container: &Container| {
                let key = (
                    name.clone(),
                    container.name.as_str().into(),
                    container.restart,
                );
                done.begun.contains(&key)
            };
            if containers.iter().all(is_begun) {
                self.done.insert(run.clone(), done);
                return;
            }
            let again = Run {
                facts: Some(done.facts),
                ended: Some(done.ended),
                ..Run::default()
            };
            self.open.insert(run.clone(), again);
        }
        let uid: Box<str> = pod.metadata.uid.as_str().into();
        if let Some(before) = self.pods.get(&uid)
            && before.run != *run
        {
            let other = before.run.clone();
            self.leave(&other, &uid);
        }
        let entry = PodEntry {
            run: run.clone(),
            label,
            list,
            name,
            containers,
            is_gone: false,
            unknown: 0,
        };
        self.pods.insert(uid.clone(), entry);
        let entry = self.open.entry(run.clone()).or_default();
        entry.pods.insert(uid);
        self.refresh(run, ground);
    }

    pub(super) fn pod_left(&mut self, uid: &str, ground: &Ground) {
        let Some(entry) = self.pods.get_mut(uid) else {
            return;
        };
        entry.is_gone = true;
        let run = entry.run.clone();
        self.refresh(&run, ground);
    }

    /// Forgets that a run has a pod.
    fn leave(&mut self, uid: &Uid, pod: &str) {
        self.pods.remove(pod);
        if let Some(run) = self.open.get_mut(uid) {
            run.pods.remove(pod);
            if run.pods.is_empty() && run.facts.is_none() {
                self.open.remove(uid);
            }
        }
    }

    pub(super) fn listed(&mut self, label: &'static str, list: u32, ground: &Ground) {
        let missing = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.label == label && pod.list != list && !pod.is_gone);
        let missing: Vec<Box<str>> = missing.map(|(uid, _)| uid.clone()).collect();
        for uid in missing {
            self.pod_left(&uid, ground);
        }
        self.listed.insert(label);
    }

    /// Begins the sources of a run that may begin, and shows what is known to those that have begun.
    pub(super) fn refresh(&mut self, uid: &Uid, ground: &Ground) {
        let Some(run) = self.open.get_mut(uid).filter(|_| self.is_on) else {
            return;
        };
        let Some(facts) = &run.facts else { return };
        let is_leaving = facts.is_leaving;
        if matches!(run.stored, Stored::Unasked) && (!run.pods.is_empty() || run.ended.is_some()) {
            run.stored = Stored::Asked;
            // Pods may go, and what is read of them waits for the answer.
            match run.pods.is_empty() {
                true => self.unasked.push_back(uid.clone()),
                false => self.unasked.push_front(uid.clone()),
            }
        }
        if !matches!(run.stored, Stored::Known(_)) {
            return;
        }
        let mut sights = Vec::new();
        for pod in run.pods.iter().filter_map(|pod| self.pods.get(pod)) {
            for container in &pod.containers {
                let first = (container.restart - STARTS).max(0);
                for restart in first..=container.restart {
                    let key = (pod.name.clone(), container.name.as_str().into(), restart);
                    let sight = Sight {
                        is_gone: pod.is_gone,
                        is_leaving,
                        ..seen(container, restart)
                    };
                    sights.push((key, sight));
                }
            }
        }
        let known: HashMap<Key, u64> = run
            .reading
            .iter()
            .filter_map(|id| Some((self.sources.get(id)?.key.clone(), *id)))
            .collect();
        for (key, sight) in sights {
            match known.get(&key) {
                Some(id) => self.show(*id, ground, |old| *old = sight),
                None => self.begin(uid, key, sight, ground),
            }
        }
    }

    /// Something else is known about a container. If it waits, it may wait for something else now.
    fn show(&mut self, id: u64, ground: &Ground, change: impl FnOnce(&mut Sight)) {
        let Some(source) = self.sources.get(&id) else {
            return;
        };
        source.show(change);
        let sight = source.seen();
        if !self.taken.contains(&id) {
            self.queues.put(id, sight, ground.follows);
        }
    }

    /// Begins a source, unless it was begun or sealed before.
    fn begin(&mut self, uid: &Uid, key: Key, sight: Sight, ground: &Ground) {
        let Some(run) = self.open.get_mut(uid) else {
            return;
        };
        let (Some(facts), Stored::Known(known)) = (&run.facts, &run.stored) else {
            return;
        };
        if !run.begun.insert(key.clone()) {
            return;
        }
        let held = known.get(&key);
        if held.is_some_and(|held| held.sealed) {
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let names = (facts.log.clone(), facts.namespace.clone());
        let spool = ground.spool.clone();
        let source = Source::new(id, uid.clone(), names, key, held, sight, spool);
        run.reading.insert(id);
        self.sources.insert(id, source.into());
        self.queues.put(id, sight, ground.follows);
    }

    /// Whether the log of a run is all stored; then it is over, and woken if it waited.
    pub(super) fn settle(&mut self, uid: &Uid, now: Instant, ground: &Ground) -> Option<Uid> {
        let run = self.open.get(uid)?;
        let facts = run.facts.as_ref()?;
        let ended = run.ended?;
        let Stored::Known(known) = &run.stored else {
            return None;
        };
        let is_listed = self.listed.contains(facts.label);
        if !run.reading.is_empty() || !is_listed || now < ended + ground.settle {
            return None;
        }
        // What no pod shows: of pods that went while nobody watched.
        let unsealed = known.iter().filter(|(_, held)| !held.sealed);
        let unsealed = unsealed.map(|(key, _)| key.clone());
        let named = facts.named.iter();
        let named = named.filter(|(pod, container)| {
            let mut begun = run.begun.iter().chain(known.keys());
            !begun.any(|(p, c, _)| p == pod && c == container)
        });
        let named = named.map(|(pod, container)| (pod.clone(), container.clone(), 0));
        let missing: Vec<Key> = unsealed
            .chain(named)
            .filter(|key| !run.begun.contains(key))
            .collect();
        let sight = Sight {
            access: Access::Current,
            started: None,
            has_ended: true,
            is_gone: false,
            is_leaving: false,
        };
        for key in missing {
            self.begin(uid, key, sight, ground);
        }
        if !self.open.get(uid)?.reading.is_empty() {
            return None;
        }
        let run = self.open.remove(uid)?;
        for pod in &run.pods {
            self.pods.remove(pod);
        }
        let is_waited_for = run.is_waited_for;
        if let Some(facts) = run.facts.filter(|_| !run.is_gone) {
            let done = Done {
                facts,
                ended,
                begun: run.begun,
            };
            self.done.insert(uid.clone(), done);
        }
        is_waited_for.then(|| uid.clone())
    }

    /// Forgets pods that went and whose runs are still not known: they are of none that is watched.
    fn drop_unknown(&mut self) {
        let mut unknown = Vec::new();
        for (uid, pod) in self.pods.iter_mut().filter(|(_, pod)| pod.is_gone) {
            let run = self.open.get(&pod.run);
            if run.is_none_or(|run| run.facts.is_none()) {
                pod.unknown += 1;
                if pod.unknown > UNKNOWN {
                    unknown.push((pod.run.clone(), uid.clone()));
                }
            }
        }
        for (run, pod) in unknown {
            self.leave(&run, &pod);
        }
    }

    /// Sources that may be read again wait for a reader.
    fn retry(&mut self, now: Instant, ground: &Ground) {
        while let Some((at, id)) = self.later.first().copied()
            && at <= now
        {
            self.later.pop_first();
            if self.taken.remove(&id)
                && let Some(source) = self.sources.get(&id)
            {
                self.queues.put(id, source.seen(), ground.follows);
            }
        }
    }

    pub(super) fn tick(&mut self, now: Instant, ground: &Ground) -> Vec<Uid> {
        self.retry(now, ground);
        let mut woken = Vec::new();
        let mut ended = Vec::new();
        for (uid, run) in &mut self.open {
            let Some(end) = run.ended.filter(|_| run.facts.is_some()) else {
                continue;
            };
            ended.push(uid.clone());
            let waited = SignedDuration::try_from(now.saturating_duration_since(end));
            let is_late = waited.is_ok_and(|waited| waited >= ground.deadline);
            if is_late && !run.is_expired {
                run.is_expired = true;
                woken.extend(run.is_waited_for.then(|| uid.clone()));
            }
        }
        // Of those that went, nobody asks any more.
        self.open.retain(|_, run| {
            let is_over = run.is_gone && run.is_expired && run.reading.is_empty();
            for pod in run.pods.iter().filter(|_| is_over) {
                self.pods.remove(pod);
            }
            !is_over
        });
        self.drop_unknown();
        for uid in ended {
            self.refresh(&uid, ground);
            woken.extend(self.settle(&uid, now, ground));
        }
        woken
    }
}

/// What is known of a start of a container by its newest one.
fn seen(container: &Container, restart: i32) -> Sight {
    let is_newest = restart == container.restart;
    Sight {
        access: match container.restart - restart {
            0 => Access::Current,
            1 if container.has_previous => Access::Previous,
            _ => Access::Replaced,
        },
        started: container.started.filter(|_| is_newest),
        has_ended: !is_newest || container.end.is_some(),
        is_gone: false,
        is_leaving: false,
    }
}
