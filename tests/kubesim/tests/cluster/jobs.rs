//! Jobs that the simulated cluster runs.

use std::time::Duration;

use jiff::SignedDuration;
use kubesim::{Jobs, Settings, Sim};
use serde_json::{Value, json};

fn job(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}},
    })
}

fn status(sim: &Sim, name: &str) -> Value {
    sim.get("batch", "jobs", "default", name).unwrap()["status"].clone()
}

fn condition(sim: &Sim, name: &str) -> Option<String> {
    let status = status(sim, name);
    let last = status["conditions"].as_array()?.last()?;
    Some(last["type"].as_str()?.to_owned())
}

#[tokio::test]
async fn jobs_start_and_end_as_their_annotations_say() {
    let sim = Sim::new();
    sim.create(job("before", &json!({}))).unwrap();
    let runner = sim.run_jobs(Jobs::default());
    sim.create(job("good", &json!({"kubesim.dev/runs-for": "20"})))
        .unwrap();
    sim.create(job("bad", &json!({"kubesim.dev/outcome": "fail"})))
        .unwrap();
    sim.create(job("long", &json!({"kubesim.dev/outcome": "run"})))
        .unwrap();
    let ended = |sim: &Sim| {
        ["before", "good", "bad"]
            .iter()
            .all(|name| condition(sim, name).is_some())
    };
    tokio::time::timeout(Duration::from_secs(20), sim.until(ended))
        .await
        .unwrap();
    sim.until(|sim| status(sim, "long")["active"] == 1).await;
    assert_eq!(condition(&sim, "before").as_deref(), Some("Complete"));
    assert_eq!(condition(&sim, "bad").as_deref(), Some("Failed"));
    assert!(status(&sim, "bad")["completionTime"].is_null());
    let good = status(&sim, "good");
    assert!(
        good["startTime"].is_string()
            && good["completionTime"].is_string()
            && good["active"].is_null()
    );

    drop(runner);
    tokio::task::yield_now().await;
    sim.create(job("after", &json!({}))).unwrap();
    tokio::task::yield_now().await;
    assert!(status(&sim, "after").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_once_although_events_are_compacted_meanwhile() {
    let (sim, clock) = crate::manual(Settings::default());
    let pass = async |seconds| {
        let time = SignedDuration::from_secs(seconds);
        tokio::time::sleep(time.unsigned_abs()).await;
        clock.advance(time);
    };
    let _runner = sim.run_jobs(Jobs::default());
    sim.create(job("a", &json!({"kubesim.dev/runs-for": "10000"})))
        .unwrap();
    pass(5).await;
    sim.create(job("b", &json!({}))).unwrap();
    sim.compact();
    pass(7).await;
    assert_eq!(condition(&sim, "a").as_deref(), Some("Complete"));
    let ended = status(&sim, "a");
    pass(20).await;
    assert_eq!(status(&sim, "a"), ended);
}
