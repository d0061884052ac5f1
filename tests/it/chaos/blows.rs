//! What goes wrong.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hindsight_proto::v1alpha2 as pb;
use hindsight_runtime::clock::{Clock as _, SystemClock};
use kubesim::{Fault, Sim};
use tokio::{task::block_in_place, time::sleep};

use crate::support::{
    cluster::Cluster,
    s3::Bucket,
    scene::{Process, Scene},
};

/// Random enough, and the same every time.
#[derive(Debug)]
pub struct Dice {
    state: u64,
    deck: Vec<Blow>,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        let deck = Vec::new();
        Self { state: seed, deck }
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % n
    }

    /// At least 0 and less than 1.
    pub fn share(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }

    /// Each blow comes once before one comes again.
    fn draw(&mut self) -> Blow {
        if self.deck.is_empty() {
            self.deck = ALL.to_vec();
        }
        let n = self.below(self.deck.len() as u64);
        self.deck.swap_remove(usize::try_from(n).unwrap())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    Server,
    Watcher,
    Database,
    Everything,
    Expired,
    Errors,
    Slow,
    Stale,
    Bucket,
}

const ALL: [Blow; 9] = [
    Blow::Server,
    Blow::Watcher,
    Blow::Database,
    Blow::Everything,
    Blow::Expired,
    Blow::Errors,
    Blow::Slow,
    Blow::Stale,
    Blow::Bucket,
];

/// What came when, in microseconds; printed as how often each came.
#[derive(Default)]
pub struct Blows(pub Vec<(i64, Blow)>);

impl fmt::Debug for Blows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts = BTreeMap::<Blow, usize>::new();
        for (_, blow) in &self.0 {
            *counts.entry(*blow).or_default() += 1;
        }
        counts.fmt(f)
    }
}

/// When watchers were started in the place of killed ones, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Starts(Arc<Mutex<Vec<i64>>>);

impl Starts {
    fn now(&self) {
        let now = SystemClock.now().as_microsecond();
        self.0.lock().unwrap().push(now);
    }

    /// When the watcher that ran at a time was killed, if it was.
    pub fn end_of(&self, at: i64) -> Option<i64> {
        let starts = self.0.lock().unwrap();
        starts.iter().copied().find(|start| *start > at)
    }
}

/// The cluster, and what goes on beside it.
#[derive(Debug)]
pub struct Stage {
    pub sim: Sim,
    pub scene: Scene,
    pub blows: Blows,
    /// Where large things lie, if not in the database.
    pub bucket: Option<Bucket>,
    /// When a watcher was started again.
    pub starts: Starts,
    server: Process,
    watcher: Process,
}

impl Stage {
    pub fn new(sim: Sim, scene: Scene) -> Self {
        Self {
            server: scene.server(),
            watcher: scene.watcher(),
            blows: Blows::default(),
            bucket: None,
            starts: Starts::default(),
            sim,
            scene,
        }
    }

    /// Does something bad. What was killed is started again at once.
    pub fn strike(&mut self, dice: &mut Dice, cluster: Option<&Cluster>) {
        let mut blow = dice.draw();
        let is_missing = match blow {
            Blow::Database => cluster.is_none(),
            Blow::Bucket => self.bucket.is_none(),
            _ => false,
        };
        if is_missing {
            blow = Blow::Server;
        }
        // It was away from one blow to the next.
        if let Some(bucket) = &self.bucket {
            bucket.come_back();
        }
        let now = SystemClock.now().as_microsecond();
        self.blows.0.push((now, blow));
        match blow {
            Blow::Server => self.server.kill(),
            Blow::Watcher => self.watcher.kill(),
            Blow::Database | Blow::Everything => {
                if let Some(cluster) = cluster {
                    cluster.kill();
                }
                if blow == Blow::Everything {
                    self.server.kill();
                    self.watcher.kill();
                }
                self.supervise();
                if let Some(cluster) = cluster {
                    // The simulated cluster goes on meanwhile.
                    block_in_place(|| cluster.restart());
                }
            }
            Blow::Expired => {
                self.sim.compact();
                self.sim.faults().drop_watches();
                self.sim.faults().drop_logs();
            }
            Blow::Errors => {
                let faults = self.sim.faults();
                for (verb, code) in [("patch", 500), ("delete", 503), ("get", 500), ("list", 500)] {
                    faults.plan(Fault::status(code).verb(verb).times(5));
                }
                for verb in ["patch", "delete"] {
                    faults.plan(Fault::lost_answer().verb(verb).times(5));
                }
                faults.plan(Fault::status(410).verb("watch").times(3));
            }
            Blow::Slow => {
                self.sim
                    .faults()
                    .latency(Duration::from_millis(dice.below(20)));
                self.sim.faults().drop_watches();
            }
            Blow::Stale => {
                // Some reads are answered as of now from here on, and a list takes its time.
                let (faults, now) = (self.sim.faults(), self.sim.version());
                faults.plan(Fault::slow(Duration::from_millis(500)).verb("list"));
                faults.plan(Fault::stale(now).verb("list").times(3));
                faults.plan(Fault::stale(now).verb("get").times(50));
            }
            Blow::Bucket => {
                if let Some(bucket) = &self.bucket {
                    bucket.go_away();
                }
            }
        }
        self.supervise();
    }

    /// Nothing more goes wrong.
    pub fn calm_down(&mut self) {
        self.sim.faults().clear();
        if let Some(bucket) = &self.bucket {
            bucket.come_back();
        }
        self.supervise();
    }

    /// Starts again what has ended, as Kubernetes does: a server cannot start without its database.
    pub fn supervise(&mut self) {
        if self.server.is_over() {
            self.server = self.scene.server();
        }
        if self.watcher.is_over() {
            self.starts.now();
            self.watcher = self.scene.watcher();
        }
    }

    /// What is stored, once that is at least so much, or the patience is over.
    pub async fn stored(&mut self, wanted: usize, patience: Duration) -> Vec<pb::Record> {
        let end = Instant::now() + patience;
        loop {
            self.supervise();
            let is_last = Instant::now() >= end;
            match self.scene.records().await {
                Ok(records) if records.len() >= wanted || is_last => return records,
                Err(status) if is_last => panic!("{status}\n{}", self.scene.log()),
                _ => sleep(Duration::from_millis(200)).await,
            }
        }
    }
}
