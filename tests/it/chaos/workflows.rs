//! Workflows while everything goes wrong: controllers, watcher, server and database are killed, watches break, and the
//! API server errs and loses answers, while random graphs run. Each step has one Job at most, after those it depends on
//! and none once its workflow has failed, and how workflows and Jobs ended is stored.
//!
//! The short form runs with all other tests; `make chaos-workflows` plays 2,000 workflows of 20 steps.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_controller::{app::App, config::Config};
use hindsight_run::View;
use kubesim::{Crd, Fault, Jobs, Settings, Sim, SystemClock};
use serde_json::{Map, Value, json};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    blows::{Dice, Stage},
    check::object,
};
use crate::support::{Database, cluster::Cluster, database::variable, scene::Scene};

const GROUP: &str = "hindsight.dev";
const WORKFLOWS: &str = "workflows";
const NAMESPACE: &str = "ci";

fn graph(dice: &mut Dice, steps: u64) -> Value {
    let mut spec = Map::new();
    for number in 0..steps {
        let before = (0..number).filter(|_| dice.below(number + 1) < 2);
        let before: Vec<String> = before.map(|number| format!("s{number}")).collect();
        let fails = dice.below(100) == 0;
        let annotations = json!({
            "kubesim.dev/outcome": if fails { "fail" } else { "succeed" },
            "kubesim.dev/runs-for": dice.below(50).to_string(),
        });
        let step = json!({"dependencies": before, "jobTemplate": {
            "metadata": {"annotations": annotations},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
            }}},
        }});
        spec.insert(format!("s{number}"), step);
    }
    json!({"steps": spec})
}

/// What goes wrong for controllers alone.
fn strike(sim: &Sim, dice: &mut Dice) {
    let faults = sim.faults();
    let lost = |verb, resource| Fault::lost_answer().verb(verb).resource(resource);
    match dice.below(6) {
        0 => faults.drop_watches(),
        1 => faults.plan(Fault::status(500).resource("jobs").times(3)),
        2 => faults.plan(lost("create", "jobs").times(2)),
        3 => faults.plan(lost("update", WORKFLOWS).times(2)),
        4 => faults.plan(Fault::broken().resource(WORKFLOWS).times(2)),
        _ => sim.compact(),
    }
}

/// Two controllers without a lease.
struct Controllers(Vec<JoinHandle<()>>);

impl Controllers {
    async fn start(&mut self, sim: &Sim) {
        let config = Config {
            external_poll: Duration::from_millis(200),
            ..Config::default()
        };
        let app = App::bind(config, sim.client()).await.unwrap();
        let run = async { app.run(CancellationToken::new()).await.unwrap() };
        self.0.push(tokio::spawn(run));
    }

    /// Ends the older one as SIGKILL would, and starts another.
    async fn replace(&mut self, sim: &Sim) {
        let oldest = self.0.remove(0);
        oldest.abort();
        assert!(oldest.await.unwrap_err().is_cancelled());
        self.start(sim).await;
    }
}

fn is_over(workflow: &Value) -> bool {
    let conditions = workflow["status"]["conditions"].as_array();
    let is_end = |one: &Value| one["type"] == "Complete" || one["type"] == "Failed";
    conditions.is_some_and(|all| all.iter().any(is_end))
}

fn going_on(sim: &Sim) -> Vec<Value> {
    let mut all = sim.list(GROUP, WORKFLOWS);
    all.retain(|workflow| !is_over(workflow));
    all
}

async fn play(db: String, cluster: Option<&Cluster>) {
    let (count, steps, pause) = match variable("HINDSIGHT_TEST_WORKFLOWS") {
        None => (40, 8, Duration::from_millis(800)),
        // With each blow tens of thousands of Jobs are listed anew.
        Some(count) => (count.parse().unwrap(), 20, Duration::from_secs(15)),
    };
    let settings = Settings {
        calls: 4_000_000,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    sim.install(Crd::hindsight_workflow());
    sim.namespace(NAMESPACE);
    let _runner = sim.run_jobs(Jobs::default());
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let told = [
        "--job-selector=hindsight.dev/workflow-uid",
        "--writes-per-second=100000",
        "--recheck=1s",
    ];
    let mut stage = Stage::new(sim.clone(), Scene::new(db, &listening, &told));
    let mut controllers = Controllers(Vec::new());
    controllers.start(&sim).await;
    controllers.start(&sim).await;
    let mut dice = Dice::new(7);
    let patience = Duration::from_secs(200 + count);
    let began = Instant::now();
    let (mut next_fault, mut next_blow) = (began, began + pause);
    let mut number = 0;
    // Until nearly all have ended.
    while number < count || going_on(&sim).len() as u64 > count / 20 {
        for _ in 0..4 {
            if number < count {
                sim.create(json!({
                    "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
                    "metadata": {"name": format!("w{number}"), "namespace": NAMESPACE},
                    "spec": graph(&mut dice, steps),
                }))
                .unwrap();
                number += 1;
            }
        }
        if Instant::now() >= next_fault {
            strike(&sim, &mut dice);
            next_fault = Instant::now() + pause / 20;
        }
        if Instant::now() >= next_blow {
            // One that starts reads all Jobs first.
            if number < count || dice.below(4) == 0 {
                controllers.replace(&sim).await;
            }
            stage.strike(&mut dice, cluster);
            next_blow = Instant::now() + pause.mul_f64(0.5 + dice.share());
            let (left, time) = (going_on(&sim).len(), began.elapsed().as_secs());
            eprintln!("{time} s: {left} of {number} go on");
        }
        let wait = if number < count { 20 } else { 200 };
        sleep(Duration::from_millis(wait)).await;
        assert!(began.elapsed() < patience, "{:?}", going_on(&sim).first());
    }
    stage.calm_down();
    while let Some(workflow) = going_on(&sim).first() {
        stage.supervise();
        assert!(began.elapsed() < patience, "it goes on: {workflow:#}");
        sleep(Duration::from_millis(200)).await;
    }
    no_job_goes_on(&sim, began + patience).await;
    let uids = check(&sim);
    is_stored(&mut stage, &uids, patience).await;
    eprintln!(
        "{count} workflows, {} Jobs, {:?}, {:.1} s",
        uids.len() as u64 - count,
        stage.blows,
        began.elapsed().as_secs_f64()
    );
    controllers.0.iter().for_each(JoinHandle::abort);
}

async fn no_job_goes_on(sim: &Sim, until: Instant) {
    let goes_on = |job: &Value| !View::new(job).finish().done;
    while sim.list("batch", "jobs").iter().any(goes_on) {
        assert!(Instant::now() < until, "Jobs go on");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Each step has one Job at most, which was created after those it depends on had ended, and before the workflow had failed,
/// by times that are in whole seconds. One in a hundred may be of a claim that was given up as its workflow failed (ADR 0054,
/// point 6). Gives the UIDs of workflows and Jobs.
fn check(sim: &Sim) -> BTreeSet<String> {
    let mut uids = BTreeSet::new();
    let mut is_new =
        |object: &Value| uids.insert(object["metadata"]["uid"].as_str().unwrap().to_owned());
    let mut jobs: HashMap<String, Value> = HashMap::new();
    for job in sim.list("batch", "jobs") {
        let labels = &job["metadata"]["labels"];
        let key = format!(
            "{}/{}",
            labels["hindsight.dev/workflow"], labels["hindsight.dev/step"]
        );
        assert!(is_new(&job));
        assert!(
            jobs.insert(key.clone(), job).is_none(),
            "{key} has two Jobs"
        );
    }
    let created = sim
        .calls()
        .verb("create")
        .resource("jobs")
        .status(201)
        .count();
    assert!(
        created <= jobs.len(),
        "{created} creates of {} Jobs",
        jobs.len()
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut late = Vec::new();
    for workflow in sim.list(GROUP, WORKFLOWS) {
        assert!(is_new(&workflow));
        let (name, status) = (&workflow["metadata"]["name"], &workflow["status"]);
        let has_failed = status["phase"] == "Failed";
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut failed = conditions.filter(|one| one["type"] == "Failed");
        let failed = failed.next().map(|one| text(&one["lastTransitionTime"]));
        for (step, spec) in workflow["spec"]["steps"].as_object().unwrap() {
            let job = jobs.get(&format!("{name}/\"{step}\""));
            let known = &status["statuses"][step];
            let is_known = known["reference"]["uid"].is_string();
            assert!(!is_known || job.is_some(), "{name}/{step}");
            assert!(has_failed || known["complete"] == true, "{name}/{step}");
            if job.is_some() && !is_known {
                late.push(format!("{name}/{step}"));
                assert!(has_failed, "{late:?} has a Job that it does not know");
                continue;
            }
            let Some(job) = job else {
                continue;
            };
            assert_eq!(known["reference"]["uid"], job["metadata"]["uid"]);
            let created = text(&job["metadata"]["creationTimestamp"]);
            assert!(
                failed.as_ref().is_none_or(|failed| created <= *failed),
                "{name}/{step} was created at {created}, after it failed at {failed:?}"
            );
            for before in spec["dependencies"].as_array().into_iter().flatten() {
                let before = before.as_str().unwrap();
                assert_eq!(
                    status["statuses"][before]["complete"], true,
                    "{name}: {before} before {step}"
                );
                let end = &jobs[&format!("{name}/\"{before}\"")]["status"]["completionTime"];
                assert!(text(end) <= created, "{name}: {before} before {step}");
            }
        }
    }
    assert!(late.len() * 100 <= jobs.len(), "late Jobs: {late:?}");
    uids
}

/// Each of these is stored once, with its end.
async fn is_stored(stage: &mut Stage, uids: &BTreeSet<String>, patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let records = stage.stored(uids.len(), patience).await;
        let objects: Vec<Value> = records.iter().map(object).collect();
        let ended = objects
            .iter()
            .filter(|object| View::new(object).finish().done);
        let stored: BTreeSet<String> = ended
            .map(|object| View::new(object).uid().unwrap().to_owned())
            .collect();
        if stored == *uids {
            assert_eq!(records.len(), uids.len(), "nothing is doubled");
            return;
        }
        let missing: Vec<&String> = uids.difference(&stored).take(3).collect();
        assert!(
            Instant::now() < end,
            "{} of {} ends are stored; {missing:?} are not\n{}",
            stored.len(),
            uids.len(),
            stage.scene.log()
        );
        sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_24_whatever_fails_each_step_has_one_job_after_those_it_depends_on_and_ends_are_stored()
{
    let database = Database::sqlite();
    play(database.url(), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_24_whatever_fails_each_step_has_one_job_with_its_end_in_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    play(cluster.url(), Some(&cluster)).await;
}
