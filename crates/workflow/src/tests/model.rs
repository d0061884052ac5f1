//! Random histories of one workflow: two controllers with caches of any age work on it in any order and die
//! between any two steps, while Jobs run and end, time passes, and users edit and delete.
//!
//! After every step it is asserted that a step is claimed only after its dependencies were complete and never
//! after a failure, when only Jobs that have ended are recorded; that a step has no more Jobs than were deleted
//! by others, and one; and that completeness, start and end do not change. When nothing happens any more, the
//! workflow has ended and none of its Jobs goes on. With one controller at a time no Job is created after the
//! end either.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{UID, job, object};
use crate::{End, FINALIZER, Job, JobSeen, Next, Pass, Workflow, job_name};

/// Histories in an ordinary run; `HINDSIGHT_TEST_HISTORIES` says another number.
const HISTORIES: u64 = 10_000;

/// Chance that repeats itself.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What one controller has in memory.
#[derive(Default)]
struct Replica {
    workflow: Option<Workflow>,
    jobs: Vec<Job>,
    pass: Option<(Pass, u64)>,
    /// The version of the workflow that the pass, or the cache, has.
    version: u64,
}

struct World {
    now: Timestamp,
    /// The workflow in the cluster and its version.
    workflow: Option<Workflow>,
    version: u64,
    jobs: BTreeMap<String, Job>,
    uids: u64,
    replicas: [Replica; 2],
    /// Whether one controller works at a time.
    is_leased: bool,
    leader: usize,
    created: BTreeMap<String, u32>,
    deleted: BTreeMap<String, u32>,
    ended: bool,
    failures: u64,
}

impl World {
    fn new(random: &mut Random) -> Self {
        let count = 1 + random.below(5);
        let mut steps = serde_json::Map::new();
        for step in 0..count {
            let before = (0..step).filter(|_| random.one_in(2));
            let before: Vec<String> = before.map(|step| format!("s{step}")).collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            steps.insert(format!("s{step}"), job(&before));
        }
        let mut spec = json!({"steps": steps});
        if random.one_in(3) {
            spec["activeDeadlineSeconds"] = json!(1 + random.below(30));
        }
        Self {
            now: "2026-03-01T10:00:00Z".parse().unwrap(),
            workflow: Some(Workflow::read(&object(&spec)).unwrap()),
            version: 1,
            jobs: BTreeMap::new(),
            uids: 0,
            replicas: Default::default(),
            is_leased: random.one_in(2),
            leader: 0,
            created: BTreeMap::new(),
            deleted: BTreeMap::new(),
            ended: false,
            failures: 1 + random.below(20),
        }
    }

    fn happen(&mut self, random: &mut Random) {
        let at = match self.is_leased {
            true => self.leader,
            false => random.below(2) as usize,
        };
        match random.below(40) {
            0..20 => self.work(at, random),
            20..23 => self.replicas[at].notice(self.workflow.clone(), self.version),
            23..26 => self.replicas[at].jobs = self.jobs.values().cloned().collect(),
            26 => {
                self.replicas[at] = Replica::default();
                self.leader = 1 - self.leader;
            }
            27 => self.replicas[at].pass = None,
            28..34 => self.run_job(random),
            34..37 => self.now += SignedDuration::from_secs(random.below(4) as i64),
            37 if random.one_in(10) => self.delete_job(random),
            38 if random.one_in(20) => self.delete_workflow(),
            39 if random.one_in(4) => self.edit(random),
            _ => {}
        }
    }

    /// A Job ends.
    fn run_job(&mut self, random: &mut Random) {
        let Some(name) = self.any_job(random) else {
            return;
        };
        let fails = random.one_in(self.failures);
        let job = self.jobs.get_mut(&name).unwrap();
        if job.end.is_none() {
            job.version.push('+');
            job.end = Some(match fails {
                true => End::Failed("it was to".to_owned()),
                false => End::Complete,
            });
        }
    }

    /// Somebody else deletes a Job.
    fn delete_job(&mut self, random: &mut Random) {
        if let Some(name) = self.any_job(random) {
            let job = self.jobs.remove(&name).unwrap();
            *self.deleted.entry(job.step.unwrap()).or_default() += 1;
        }
    }

    fn any_job(&self, random: &mut Random) -> Option<String> {
        let count = self.jobs.len() as u64;
        let at = (count > 0).then(|| random.below(count))?;
        self.jobs.keys().nth(at as usize).cloned()
    }

    fn delete_workflow(&mut self) {
        let Some(workflow) = &mut self.workflow else {
            return;
        };
        if workflow.finalizers.is_empty() {
            self.workflow = None;
        } else {
            workflow.is_deleting = true;
            self.version += 1;
        }
    }

    /// A user changes the spec: a step more, or a step that depends on another one.
    fn edit(&mut self, random: &mut Random) {
        let Some(workflow) = &mut self.workflow else {
            return;
        };
        if workflow.status.is_finished() || workflow.is_deleting {
            return;
        }
        let spec = workflow.spec.as_mut().unwrap();
        let name = format!("s{}", spec.steps.len());
        if spec.steps.len() < 8 {
            let mut step = spec.steps["s0"].clone();
            step.dependencies = vec!["s0".to_owned()];
            if random.one_in(10) {
                step.dependencies = vec!["unknown".to_owned()];
            }
            spec.steps.insert(name, step);
            self.version += 1;
        }
    }

    /// A controller does one thing, as the real one does.
    fn work(&mut self, at: usize, random: &mut Random) {
        let replica = &mut self.replicas[at];
        let (mut pass, version) = match replica.pass.take() {
            Some(pass) => pass,
            None => {
                let Some(workflow) = replica.workflow.clone() else {
                    return;
                };
                (Pass::new(workflow, replica.jobs.clone()), replica.version)
            }
        };
        let next = pass.next(self.now);
        // The answer of the API server is lost, or the controller dies after it was asked.
        let is_lost = random.one_in(15);
        let Some(version) = self.execute(&mut pass, version, next) else {
            return;
        };
        if !is_lost {
            self.replicas[at].pass = Some((pass, version));
        }
    }

    /// Returns the version that the pass has, or `None` when the pass is over.
    fn execute(&mut self, pass: &mut Pass, version: u64, next: Next) -> Option<u64> {
        match next {
            Next::Rest(_) => return None,
            Next::Reread => {
                pass.has(self.workflow.clone()?);
                return Some(self.version);
            }
            Next::Look { jobs, targets } => {
                assert!(targets.is_empty());
                for name in jobs {
                    let found = self.jobs.get(&name).cloned();
                    pass.saw_job(&name, found.map_or(JobSeen::Gone, JobSeen::There));
                }
            }
            Next::List => pass.listed(self.jobs.values().cloned()),
            Next::Protect => {
                return self.write(pass, version, |workflow| {
                    workflow.finalizers.push(FINALIZER.to_owned());
                });
            }
            Next::Write { status, .. } => {
                self.judge(&status);
                return self.write(pass, version, |workflow| workflow.status = status);
            }
            Next::Release(_) => {
                let written = self.write(pass, version, |workflow| workflow.finalizers.clear());
                if self
                    .workflow
                    .as_ref()
                    .is_some_and(|workflow| workflow.is_deleting && workflow.finalizers.is_empty())
                {
                    self.workflow = None;
                }
                return written;
            }
            Next::Create(steps) => {
                let workflow = pass.workflow().clone();
                for step in steps {
                    let seen = self.create(&workflow, &step);
                    pass.saw_job(&job_name(&workflow, &step), JobSeen::There(seen));
                }
            }
            Next::Delete(jobs) => {
                for job in jobs {
                    let found = self.jobs.get(&job.name);
                    if found
                        .is_some_and(|found| found.uid == job.uid && found.version == job.version)
                    {
                        let job = self.jobs.remove(&job.name).unwrap();
                        *self.deleted.entry(job.step.unwrap()).or_default() += 1;
                    } else if found.is_some() {
                        return None;
                    }
                    pass.deleted(&job.uid);
                }
            }
        }
        Some(version)
    }

    fn write(
        &mut self,
        pass: &mut Pass,
        version: u64,
        change: impl FnOnce(&mut Workflow),
    ) -> Option<u64> {
        let workflow = self.workflow.as_mut().filter(|_| self.version == version)?;
        change(workflow);
        self.version += 1;
        pass.has(workflow.clone());
        Some(self.version)
    }

    fn create(&mut self, workflow: &Workflow, step: &str) -> Job {
        let name = job_name(workflow, step);
        if let Some(there) = self.jobs.get(&name) {
            return there.clone();
        }
        assert!(
            !(self.ended && self.is_leased),
            "a Job is created after the end"
        );
        self.uids += 1;
        *self.created.entry(step.to_owned()).or_default() += 1;
        let deleted = self.deleted.get(step).copied().unwrap_or_default();
        assert!(self.created[step] <= 1 + deleted, "{step} has several Jobs");
        let job = Job {
            name: name.clone(),
            uid: format!("job-{}", self.uids),
            version: "1".to_owned(),
            owner: Some(UID.to_owned()),
            step: Some(step.to_owned()),
            is_deleting: false,
            end: None,
        };
        self.jobs.insert(name, job.clone());
        job
    }

    /// A status that is about to be written, if its version still is the newest.
    fn judge(&self, new: &crate::Status) {
        let Some(workflow) = &self.workflow else {
            return;
        };
        let old = &workflow.status;
        let fits = new.start_time.is_some()
            && old
                .start_time
                .is_none_or(|start| new.start_time == Some(start));
        if !fits {
            // It is written of another version and refused.
            return;
        }
        if let Some(end) = new.completion_time {
            assert!(new.is_finished() && new.start_time.is_some_and(|start| start <= end));
        }
    }

    /// What holds whenever a status was written.
    fn check(&mut self, before: &crate::Status) {
        let Some(workflow) = &self.workflow else {
            self.ended = true;
            return;
        };
        let (old, new) = (before, &workflow.status);
        for (step, status) in &old.statuses {
            assert!(
                !status.complete || new.is_complete(step),
                "{step} was complete"
            );
        }
        if old.start_time.is_some() {
            assert_eq!(old.start_time, new.start_time);
        }
        if old.is_finished() {
            assert_eq!(old, new);
        }
        let Ok(spec) = &workflow.spec else {
            return;
        };
        let added = new
            .statuses
            .iter()
            .filter(|(step, _)| !old.statuses.contains_key(*step));
        for (step, status) in added {
            let uid = &status.reference.uid;
            let job = self.jobs.values().find(|job| job.uid == *uid);
            let has_ended = match job {
                Some(job) => job.end.is_some(),
                None => !uid.is_empty() && self.deleted.contains_key(step),
            };
            assert!(
                has_ended || old.failure().is_none(),
                "claimed after a failure"
            );
            for dependency in &spec.steps[step].dependencies {
                assert!(new.is_complete(dependency), "{step} before {dependency}");
            }
        }
        self.ended |= new.is_finished() || workflow.is_deleting && workflow.finalizers.is_empty();
    }

    /// One controller goes on until there is nothing to do, with news of everything.
    fn settle(&mut self, random: &mut Random) {
        self.replicas = Default::default();
        self.failures = u64::MAX;
        for _ in 0..400 {
            let before = self
                .workflow
                .as_ref()
                .map(|workflow| workflow.status.clone());
            self.replicas[0].notice(self.workflow.clone(), self.version);
            self.replicas[0].jobs = self.jobs.values().cloned().collect();
            for _ in 0..12 {
                self.work(0, random);
                if let Some(before) = &before {
                    self.check(before);
                }
                if self.replicas[0].pass.is_none() {
                    break;
                }
            }
            self.replicas[0].pass = None;
            self.run_job(random);
            let is_over = self
                .workflow
                .as_ref()
                .is_none_or(|workflow| workflow.status.is_finished() && !workflow.is_protected());
            if is_over && self.jobs.values().all(|job| job.end.is_some()) {
                break;
            }
        }
        let goes_on: Vec<&Job> = self.jobs.values().filter(|job| job.end.is_none()).collect();
        match &self.workflow {
            // The garbage collector has what a replica created late.
            None => {}
            Some(workflow) => {
                assert!(workflow.status.is_finished(), "{workflow:?}");
                assert!(goes_on.is_empty(), "{goes_on:?}");
                assert!(!workflow.is_protected());
            }
        }
    }
}

impl Replica {
    fn notice(&mut self, workflow: Option<Workflow>, version: u64) {
        self.workflow = workflow;
        self.version = version;
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn wf_24_no_history_gives_a_step_a_second_job() {
    let histories = std::env::var("HINDSIGHT_TEST_HISTORIES");
    let histories = histories.map_or(HISTORIES, |count| count.parse().unwrap());
    let (mut complete, mut failed, mut gone) = (0, 0, 0);
    for seed in 0..histories {
        let told = std::panic::catch_unwind(|| {
            let mut random = Random(seed);
            let mut world = World::new(&mut random);
            for _ in 0..150 {
                let before = world
                    .workflow
                    .as_ref()
                    .map(|workflow| workflow.status.clone());
                world.happen(&mut random);
                if let Some(before) = before {
                    world.check(&before);
                }
            }
            world.settle(&mut random);
            world.workflow.map(|workflow| workflow.status.is_failed())
        });
        match told {
            Ok(Some(true)) => failed += 1,
            Ok(Some(false)) => complete += 1,
            Ok(None) => gone += 1,
            Err(_) => panic!("history {seed} fails"),
        }
    }
    // Every end is among them.
    assert!(
        complete > 100 && failed > 100 && gone > 10,
        "{complete} {failed} {gone}"
    );
}
