//! `hindsight-watcher release`: finalizers come off before the watcher is uninstalled.

use std::path::Path;

use kubesim::{Crd, Sim};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, done, process::program, task_run};

const OWN: &str = "hindsight.dev/stored";
const SHARED: &str = "results.tekton.dev/taskrun";
const OTHER: &str = "chains.tekton.dev/taskrun";

/// A cluster with runs that have finalizers.
fn cluster() -> Sim {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.install(Crd::argo_workflow());
    for (namespace, finalizers) in [
        ("ci", json!([OWN, OTHER])),
        ("cd", json!([OWN])),
        ("qa", json!([])),
    ] {
        sim.namespace(namespace);
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": "etl", "namespace": namespace, "finalizers": finalizers},
        });
        sim.load(workflow).unwrap();
    }
    let mut run = task_run("build");
    run["metadata"]["finalizers"] = json!([SHARED]);
    run["status"] = done();
    sim.load(run).unwrap();
    sim
}

fn finalizers(sim: &Sim, group: &str, plural: &str, namespace: &str, name: &str) -> Vec<Value> {
    let run = sim.get(group, plural, namespace, name).unwrap();
    let all = run["metadata"]["finalizers"].as_array();
    all.cloned().unwrap_or_default()
}

/// The exit code, the lines of the output in order, and the notes.
async fn release(kubeconfig: &Path, args: &[&str]) -> (Option<i32>, Vec<String>, String) {
    let mut command = program();
    command
        .arg("release")
        .args(args)
        .arg("--kubeconfig")
        .arg(kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let mut lines: Vec<String> = text(output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    (output.status.code(), lines, text(output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_come_off_in_all_namespaces_and_those_of_others_stay() {
    let sim = cluster();
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = listening.kubeconfig();
    let before = sim.version();
    let (code, lines, _) = release(kubeconfig, &["--dry-run", "--tekton"]).await;
    assert_eq!((code, lines.len()), (Some(1), 3));
    assert_eq!(sim.version(), before, "a dry run changes nothing");

    let (code, lines, notes) = release(kubeconfig, &[]).await;
    let released = [
        "Workflow cd/etl hindsight.dev/stored",
        "Workflow ci/etl hindsight.dev/stored",
    ];
    assert_eq!(
        (code, lines),
        (Some(1), released.map(str::to_owned).to_vec()),
        "{notes}"
    );
    assert!(notes.contains("--tekton"), "{notes}");
    let left = finalizers(&sim, "argoproj.io", "workflows", "ci", "etl");
    assert_eq!(left, [json!(OTHER)]);
    assert_eq!(
        finalizers(&sim, "tekton.dev", "taskruns", NAMESPACE, "build"),
        [json!(SHARED)]
    );

    // What waits for nothing else goes.
    sim.delete("tekton.dev", "taskruns", NAMESPACE, "build")
        .unwrap();
    assert_eq!(sim.count("tekton.dev", "taskruns"), 1);
    let (code, lines, notes) = release(kubeconfig, &["--tekton"]).await;
    let released = vec![format!("TaskRun {NAMESPACE}/build {SHARED}")];
    assert_eq!((code, lines), (Some(0), released), "{notes}");
    assert_eq!(sim.count("tekton.dev", "taskruns"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_taken_off_or_looked_at_is_said_and_is_the_exit_code() {
    let sim = cluster();
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let forbidden = |verb: &str| kubesim::Fault::status(403).verb(verb).times(u32::MAX);
    sim.faults().plan(forbidden("patch"));
    sim.faults()
        .plan(forbidden("list").resource("pipelineruns"));
    // A busy moment is passed over.
    sim.faults()
        .plan(kubesim::Fault::status(503).retry_after(0));
    let (code, lines, notes) = release(listening.kubeconfig(), &["--tekton"]).await;
    assert_eq!((code, lines.len()), (Some(1), 0), "{notes}");
    assert!(
        notes.contains("Workflow cd/etl keeps its finalizer"),
        "{notes}"
    );
    assert!(
        notes.contains("pipelineruns.tekton.dev cannot be listed"),
        "{notes}"
    );
    assert!(
        notes.contains("0 runs released, 3 failed, 1 kinds not listed"),
        "{notes}"
    );
    let (code, _, notes) = release(Path::new("/nowhere"), &["--writes-per-second=fast"]).await;
    assert_eq!(code, Some(2), "{notes}");
}
