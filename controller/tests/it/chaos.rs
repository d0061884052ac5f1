//! Controllers are killed, watches break, the API server errs and loses answers, while random graphs run.
//! `HINDSIGHT_TEST_WORKFLOWS` says how many, of 20 steps each.

use std::{collections::HashMap, time::Duration};

use kubesim::Fault;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::support::{GROUP, WORKFLOWS, World, ending, step_with};

/// Chance that repeats itself.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn graph(random: &mut Random, steps: u64) -> Value {
    let mut spec = Map::new();
    for number in 0..steps {
        let before = (0..number).filter(|_| random.below(number + 1) < 2);
        let before: Vec<String> = before.map(|number| format!("s{number}")).collect();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let fails = random.below(100) == 0;
        let annotations = json!({
            "kubesim.dev/outcome": if fails { "fail" } else { "succeed" },
            "kubesim.dev/runs-for": random.below(50).to_string(),
        });
        spec.insert(format!("s{number}"), step_with(&before, &annotations));
    }
    json!({"steps": spec})
}

fn strike(world: &World, random: &mut Random) {
    let faults = world.sim.faults();
    match random.below(7) {
        0 => faults.drop_watches(),
        1 => faults.plan(Fault::status(500).resource("jobs").times(3)),
        2 => faults.plan(
            Fault::lost_answer()
                .verb("create")
                .resource("jobs")
                .times(2),
        ),
        3 => faults.plan(
            Fault::lost_answer()
                .verb("update")
                .resource(WORKFLOWS)
                .times(2),
        ),
        4 => faults.plan(Fault::broken().resource(WORKFLOWS).times(2)),
        5 => world.sim.compact(),
        _ => faults.plan(Fault::slow(Duration::from_millis(50)).times(5)),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
async fn wf_24_whatever_fails_each_step_has_one_job_after_those_it_depends_on() {
    let count = std::env::var("HINDSIGHT_TEST_WORKFLOWS");
    let (count, steps) = count.map_or((40, 8), |count| (count.parse().unwrap(), 20));
    let mut random = Random(7);
    let mut world = World::without_controller();
    world.start().await;
    world.start().await;
    for number in 0..count {
        world.create(&format!("w{number}"), &graph(&mut random, steps));
        if number % 4 == 0 {
            strike(&world, &mut random);
            sleep(Duration::from_millis(20)).await;
        }
        if number % 16 == 15 {
            world.kill().await;
            world.start().await;
        }
    }
    let names: Vec<String> = (0..count).map(|number| format!("w{number}")).collect();
    world.sim.faults().clear();
    let patience = Duration::from_secs(200 + count);
    let begin = tokio::time::Instant::now();
    // Asking after every change would take longer than all the rest.
    loop {
        let goes_on = |name: &&String| ending(&world.sim, name).is_none();
        let Some(name) = names.iter().find(goes_on) else {
            break;
        };
        let status = || world.status(name);
        assert!(begin.elapsed() < patience, "{name} goes on: {}", status());
        sleep(Duration::from_millis(200)).await;
    }
    check(&world, &names);
}

/// Each step has one Job at most, which was created after those it depends on had ended.
fn check(world: &World, names: &[String]) {
    let mut jobs: HashMap<String, Value> = HashMap::new();
    for job in world.sim.list("batch", "jobs") {
        let labels = &job["metadata"]["labels"];
        let key = format!(
            "{}/{}",
            labels["hindsight.dev/workflow"], labels["hindsight.dev/step"]
        );
        assert!(
            jobs.insert(key.clone(), job).is_none(),
            "{key} has two Jobs"
        );
    }
    let created = world
        .sim
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
    let version = |job: &Value| {
        job["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for name in names {
        let workflow = world.sim.get(GROUP, WORKFLOWS, "ci", name).unwrap();
        let status = &workflow["status"];
        let (phase, _) = ending(&world.sim, name).unwrap();
        for (step, spec) in workflow["spec"]["steps"].as_object().unwrap() {
            let job = jobs.get(&format!("\"{name}\"/\"{step}\""));
            let known = &status["statuses"][step];
            assert_eq!(
                known["reference"]["uid"].is_string(),
                job.is_some(),
                "{name}/{step}"
            );
            assert!(
                phase == "Failed" || known["complete"] == true,
                "{name}/{step}"
            );
            let Some(job) = job else {
                continue;
            };
            assert_eq!(known["reference"]["uid"], job["metadata"]["uid"]);
            for before in spec["dependencies"].as_array().into_iter().flatten() {
                let before = before.as_str().unwrap();
                assert_eq!(
                    status["statuses"][before]["complete"], true,
                    "{name}: {before} before {step}"
                );
                let end =
                    jobs[&format!("\"{name}\"/\"{before}\"")]["status"]["completionTime"].as_str();
                assert!(
                    end.unwrap() <= version(job).as_str(),
                    "{name}: {before} before {step}"
                );
            }
        }
    }
}
