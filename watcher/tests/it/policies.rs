//! Which runs go: by rules, by how many there are, by what their namespace asks for; how fast, and
//! what a dry run says.

use std::{collections::BTreeSet, time::Instant};

use hindsight_filter::Expression;
use hindsight_watcher::{
    config::Config,
    policy::{Collect, Rule, rules::VARIABLES},
};
use jiff::SignedDuration;
use kubesim::{Fault, Sim};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, World, child, collecting, pipeline_run, task_run, uid, within};

fn with(change: impl FnOnce(&mut Collect)) -> Config {
    let mut config = collecting();
    change(config.policy.collect.as_mut().unwrap());
    config
}

/// A PipelineRun that ended `minute` minutes after ten.
fn ended(name: &str, pipeline: &str, minute: u32, succeeded: bool) -> Value {
    let mut run = pipeline_run(name);
    run["metadata"]["labels"] = json!({"tekton.dev/pipeline": pipeline});
    let (status, reason) = if succeeded {
        ("True", "Succeeded")
    } else {
        ("False", "Failed")
    };
    run["status"] = json!({
        "startTime": "2026-03-01T10:00:00Z",
        "completionTime": format!("2026-03-01T10:{minute:02}:00Z"),
        "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
    });
    run
}

fn names(sim: &Sim) -> BTreeSet<String> {
    let names = |plural| {
        let all = sim.list("tekton.dev", plural).into_iter();
        all.map(|run| run["metadata"]["name"].as_str().unwrap().to_owned())
    };
    names("pipelineruns").chain(names("taskruns")).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn ask(sim: &Sim, key: &str, value: &Value) {
    let patch = json!({"metadata": {"annotations": {key: value}}});
    sim.merge("", "namespaces", "", NAMESPACE, patch, "somebody")
        .unwrap();
}

#[tokio::test]
async fn the_last_runs_of_each_pipeline_stay_until_there_are_newer_ones() {
    let mut world = World::without_watcher(with(|collect| collect.keep_last = 2));
    for (n, pipeline) in [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (1, "b")] {
        let run = ended(&format!("{pipeline}-{n}"), pipeline, n, true);
        world.sim.load(run).unwrap();
    }
    world.start().await;
    world
        .cluster(|sim| names(sim) == set(&["a-3", "a-4", "b-1"]))
        .await;
    world.sim.load(ended("a-9", "a", 9, true)).unwrap();
    world
        .cluster(|sim| names(sim) == set(&["a-4", "a-9", "b-1"]))
        .await;
    // One that was deleted by somebody else makes room.
    world
        .sim
        .delete("tekton.dev", "pipelineruns", NAMESPACE, "a-9")
        .unwrap();
    world.until(|p| p.in_cluster == 2).await;
    world.sim.load(ended("a-5", "a", 5, true)).unwrap();
    world.annotated_pipeline("a-5").await;
    assert_eq!(names(&world.sim), set(&["a-4", "a-5", "b-1"]));
}

#[tokio::test]
async fn rules_tell_outcomes_and_expressions_tell_the_rest() {
    let failures = Rule {
        outcomes: [hindsight_run::Outcome::Failure].into(),
        keep_last: Some(1),
        ..Rule::default()
    };
    let kept = Rule {
        never: true,
        selector: "keep".parse().unwrap(),
        ..Rule::default()
    };
    let when = Expression::compile("object.metadata.name != 'special'", VARIABLES).unwrap();
    let config = with(|collect| {
        collect.rules = vec![kept, failures];
        collect.when = Some(when);
    });
    let mut world = World::without_watcher(config);
    for n in 1..=3 {
        let name = format!("failed-{n}");
        world.sim.load(ended(&name, "a", n, false)).unwrap();
        let name = format!("good-{n}");
        world.sim.load(ended(&name, "a", n + 10, true)).unwrap();
    }
    world.sim.load(ended("special", "a", 20, true)).unwrap();
    let mut keep = ended("keep", "a", 1, false);
    keep["metadata"]["labels"]["keep"] = json!("");
    world.sim.load(keep).unwrap();
    world.start().await;
    world
        .cluster(|sim| names(sim) == set(&["failed-3", "keep", "special"]))
        .await;
    world.until(|p| p.waiting == 0 && p.stored == 8).await;
    assert_eq!(names(&world.sim), set(&["failed-3", "keep", "special"]));
}

#[tokio::test]
async fn a_namespace_keeps_its_runs_by_annotation_and_lets_them_go_when_it_is_taken_off() {
    for (key, value) in [
        ("hindsight.dev/pause", "true"),
        ("hindsight.dev/grace", "1000000h"),
        ("hindsight.dev/keep-last", "1"),
        ("hindsight.dev/keep-last", "many"),
    ] {
        let mut world = World::without_watcher(with(|collect| collect.namespaces = true));
        ask(&world.sim, key, &json!(value));
        world.start().await;
        world.sim.load(ended("a", "a", 1, true)).unwrap();
        world.annotated_pipeline("a").await;
        world.until(|p| p.is_listed && p.waiting == 0).await;
        assert_eq!(names(&world.sim), set(&["a"]), "{key}={value}");
        ask(&world.sim, key, &Value::Null);
        world.until(|p| p.collected == 1).await;
    }
}

#[tokio::test]
async fn a_namespace_cannot_loosen_what_the_configuration_says() {
    let config = with(|collect| {
        collect.namespaces = true;
        collect.grace = SignedDuration::from_hours(1_000_000);
    });
    let mut world = World::without_watcher(config);
    ask(&world.sim, "hindsight.dev/grace", &json!("0"));
    ask(&world.sim, "hindsight.dev/pause", &json!("false"));
    world.start().await;
    world.sim.load(ended("a", "a", 1, true)).unwrap();
    world.annotated_pipeline("a").await;
    world.until(|p| p.is_listed && p.waiting == 0).await;
    assert_eq!(world.progress().collected, 0);
}

#[tokio::test]
async fn nothing_goes_while_namespaces_cannot_be_seen() {
    let mut world = World::without_watcher(with(|collect| collect.namespaces = true));
    let forbidden = Fault::status(403).verb("list").resource("namespaces");
    world.fault(forbidden.times(1_000));
    let forbidden = Fault::status(403).verb("watch").resource("namespaces");
    world.fault(forbidden.times(1_000));
    world.start().await;
    world.sim.load(ended("a", "a", 1, true)).unwrap();
    world.annotated_pipeline("a").await;
    world.until(|p| p.is_listed && p.waiting == 0).await;
    assert_eq!(world.progress().collected, 0);
    world.sim.faults().clear();
    world.until(|p| p.collected == 1).await;
}

#[tokio::test]
async fn deletes_are_no_faster_than_was_said() {
    let mut config = collecting();
    config.deletes_per_second = Some(20.0);
    let mut world = World::without_watcher(config);
    for n in 0..11 {
        let run = ended(&format!("a-{n}"), "a", n, true);
        world.sim.load(run).unwrap();
    }
    let began = Instant::now();
    world.start().await;
    world.until(|p| p.collected == 11).await;
    // Ten pauses of a twentieth of a second.
    assert!(began.elapsed().as_millis() >= 500, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_dry_run_says_exactly_what_goes() {
    let config = || {
        with(|collect| {
            collect.keep_last = 1;
            collect.namespaces = true;
            collect.when = Some(
                Expression::compile("!object.metadata.name.startsWith('x')", VARIABLES).unwrap(),
            );
        })
    };
    let dry = Config {
        dry_run: true,
        ..config()
    };
    let mut world = World::without_watcher(dry);
    for n in 1..=3 {
        let run = ended(&format!("a-{n}"), "a", n, true);
        let parent = world.sim.load(run).unwrap();
        world.create(child(&format!("a-{n}-child"), &parent));
        world.finish("taskruns", &format!("a-{n}-child"));
    }
    world.sim.load(ended("x-1", "x", 1, true)).unwrap();
    world.sim.load(ended("x-2", "x", 2, true)).unwrap();
    world.create(task_run("running"));
    let before = names(&world.sim);
    world.start().await;
    within(
        world
            .handle()
            .until(|watcher| watcher.announced().len() == 4),
    )
    .await;
    world
        .until(|p| p.is_listed && p.waiting == 0 && p.stored == 8)
        .await;
    let mut said: BTreeSet<String> = BTreeSet::new();
    said.extend(world.handle().announced().into_iter().map(|run| run.name));
    assert_eq!(said, set(&["a-1", "a-1-child", "a-2", "a-2-child"]));
    assert_eq!(names(&world.sim), before);
    world.stop().await;
    world.config = config();
    world.start().await;
    world.until(|p| p.collected == 2 && p.in_cluster == 5).await;
    let gone: BTreeSet<String> = before.difference(&names(&world.sim)).cloned().collect();
    assert_eq!(gone, said);
}

#[tokio::test]
async fn a_run_on_hold_stays_until_it_is_let_go() {
    let world = World::new(collecting()).await;
    let mut run = task_run("build");
    run["metadata"]["annotations"] = json!({"hindsight.dev/hold": "true"});
    let created = world.sim.create(run).unwrap();
    world.finish("taskruns", "build");
    world.annotated("build").await;
    world.until(|p| p.waiting == 0 && p.stored == 1).await;
    assert_eq!(world.progress().collected, 0);
    world.annotate("build", "hindsight.dev/hold", "false");
    world.until(|p| p.collected == 1).await;
    assert_eq!(uid(&world.copy(&uid(&created))), uid(&created));
}
