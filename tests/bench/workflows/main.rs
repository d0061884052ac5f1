//! Many workflows at once on one controller: a simulated API server with Jobs that run, and the controller as a
//! process of its own. How many steps start in a second, what memory it takes at most, and how often it writes the
//! status of a workflow for each step. Beside it the least that a client can do for a step against the same server:
//! it creates a Job and writes a status twice.
//!
//! `make bench-workflows` runs it; `WORKFLOWS=50` is its short form. `target/bench/workflows.jsonl` gets a line of
//! figures, once all workflows are complete and each step has had one Job. With `STRICT=1` it fails where a bound is
//! passed.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a benchmark that meets the unexpected stops"
)]

#[path = "../system.rs"]
mod system;

use std::{
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use hindsight_workflow::{GROUP, KIND, PLURAL, VERSION};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use kubesim::{Crd, Jobs, Listening, Settings, Sim, SystemClock};
use serde_json::{Map, Value, json};

const NAMESPACE: &str = "ci";
const STEPS: usize = 20;
/// Steps of the plain client, and how many it is at once with.
const PLAIN: usize = 2_000;
const AT_ONCE: usize = 16;
/// Bounds of 1,000 workflows of 20 steps.
const LEAST_STARTS: f64 = 200.0;
const MOST_MIB: u64 = 150;
const MOST_STATUS_WRITES: f64 = 2.0;
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_mins(20);
/// How often it is looked how many are complete.
const POLL: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> ExitCode {
    let count = std::env::var("WORKFLOWS").map_or(1000, |text| text.parse().unwrap());
    let settings = Settings {
        history: 1_000_000,
        calls: 1_000_000,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    sim.install(Crd::namespaced(GROUP, VERSION, KIND, PLURAL));
    sim.namespace(NAMESPACE);
    let _runner = sim.run_jobs(Jobs {
        start_after: Duration::ZERO,
        run_for: Duration::ZERO,
    });
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let plain = plain(&sim, &listening).await;
    for number in 0..count {
        create(&sim, &format!("w{number}"), &graph());
    }
    let before = Seen::of(&sim);
    let began = Instant::now();
    let controller = start(&listening);
    while complete(&sim) < count {
        assert!(
            began.elapsed() < PATIENCE,
            "{} are complete",
            complete(&sim)
        );
        tokio::time::sleep(POLL).await;
    }
    let took = began.elapsed();
    let seen = Seen::of(&sim);
    let steps = count * STEPS;
    assert_eq!(seen.jobs - before.jobs, steps, "each step has one Job");
    let id = controller.id();
    let peak = system::memory_kib(id, "VmHWM:") / 1024;
    let cpu = system::used(id, false).as_secs_f64();
    system::stop(controller).await;
    let per_step = |number: f64| number / number_of(steps);
    let starts = number_of(steps) / took.as_secs_f64();
    let status_writes = per_step(number_of(seen.status_writes - before.status_writes));
    let line = json!({
        "workflows": count, "steps": steps, "seconds": took.as_secs_f64(),
        "step_starts_per_s": starts, "plain_starts_per_s": plain, "ratio": starts / plain,
        "peak_mib": peak, "cpu_ms_per_step": per_step(cpu * 1e3),
        "status_writes_per_step": status_writes,
    });
    println!("{line}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    std::fs::create_dir_all(folder.join("bench")).unwrap();
    std::fs::write(folder.join("bench/workflows.jsonl"), format!("{line}\n")).unwrap();
    let is_within =
        starts >= LEAST_STARTS && peak <= MOST_MIB && status_writes <= MOST_STATUS_WRITES;
    match is_within || std::env::var_os("STRICT").is_none() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn number_of(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// What the server was asked so far.
struct Seen {
    jobs: usize,
    status_writes: usize,
}

impl Seen {
    fn of(sim: &Sim) -> Self {
        let is_write = |verb: &str| verb == "update" || verb == "patch";
        let writes = sim.calls().resource(PLURAL);
        let writes = writes.filter(|call| is_write(call.verb) && call.subresource == "status");
        Self {
            jobs: sim
                .calls()
                .verb("create")
                .resource("jobs")
                .status(201)
                .count(),
            status_writes: writes.count(),
        }
    }
}

/// Steps of which each waits for the one that has half its number, so that they fan out.
fn graph() -> Value {
    let mut steps = Map::new();
    for number in 0..STEPS {
        let mut step = json!({"jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example/tool:1", "args": ["run"]}],
        }}}}});
        if number > 0 {
            step["dependencies"] = json!([format!("s{}", (number - 1) / 2)]);
        }
        steps.insert(format!("s{number}"), step);
    }
    json!({ "steps": steps })
}

fn create(sim: &Sim, name: &str, spec: &Value) {
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    });
    sim.create(object).unwrap();
}

/// How many workflows are complete.
fn complete(sim: &Sim) -> usize {
    let is = |workflow: &Value| {
        let conditions = workflow["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Complete"))
    };
    sim.list(GROUP, PLURAL).iter().filter(|one| is(one)).count()
}

fn start(cluster: &Listening) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hindsight-workflow"))
        .env_clear()
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args(["--metrics-listen", "127.0.0.1:0", "--log-format", "json"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// How many steps a second a client carries out that does no more than it has to.
async fn plain(sim: &Sim, cluster: &Listening) -> f64 {
    let client = cluster.client().unwrap();
    let api = |group: &str, version: &str, kind: &str, plural: &str| {
        let kind = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &kind)
    };
    let (workflows, jobs) = (
        api(GROUP, VERSION, KIND, PLURAL),
        api("batch", "v1", "Job", "jobs"),
    );
    let graph = graph();
    for number in 0..PLAIN / STEPS {
        create(sim, &format!("plain{number}"), &graph);
    }
    let began = Instant::now();
    let steps = stream::iter(0..PLAIN).for_each_concurrent(AT_ONCE, |number| {
        let (workflows, jobs, graph) = (&workflows, &jobs, &graph);
        async move {
            let name = format!("plain{}", number / STEPS);
            let step = format!("s{}", number % STEPS);
            let note = async |text: &str| {
                let patch = json!({"status": {"statuses": {&step: {"startTime": text}}}});
                let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
                workflows
                    .patch_status(&name, &params, &patch)
                    .await
                    .unwrap();
            };
            note("2026-01-01T00:00:00Z").await;
            let mut job = graph["steps"][&step]["jobTemplate"].clone();
            job["apiVersion"] = json!("batch/v1");
            job["kind"] = json!("Job");
            job["metadata"] = json!({"name": format!("{name}-{step}"), "namespace": NAMESPACE});
            let job = serde_json::from_value(job).unwrap();
            jobs.create(&PostParams::default(), &job).await.unwrap();
            note("2026-01-01T00:00:01Z").await;
        }
    });
    steps.await;
    let rate = number_of(PLAIN) / began.elapsed().as_secs_f64();
    for number in 0..PLAIN / STEPS {
        let name = format!("plain{number}");
        sim.delete(GROUP, PLURAL, NAMESPACE, &name).unwrap();
    }
    rate
}
