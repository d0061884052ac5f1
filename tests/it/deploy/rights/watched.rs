//! What a watcher asks of a cluster that grants it no more than the manifests do.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Command, Stdio},
};

use hindsight_access::auth::token_hash;
use kubesim::{Crd, Fault, KUBE_SYSTEM_UID, Sim};
use serde_json::{Value, json};

use super::{PATIENCE, Right, asked, granted, of_cluster};
use crate::{
    deploy::{all, arguments, container, environment, pods},
    support::{Database, TestServer, process::watcher},
};

/// A finished run of every kind, and one of each kind that lasts.
const RUNS: [&str; 10] = [
    include_str!("../../../../watcher/testdata/kinds/taskrun/succeeded.yaml"),
    include_str!("../../../../watcher/testdata/kinds/pipelinerun/succeeded.yaml"),
    include_str!("../../../../watcher/testdata/kinds/customrun/cancelled.yaml"),
    include_str!("../../../../watcher/testdata/kinds/argo-workflow/succeeded.yaml"),
    include_str!("../../../../watcher/testdata/kinds/hindsight-workflow/complete.yaml"),
    include_str!("../../../../watcher/testdata/kinds/run/succeeded.yaml"),
    include_str!("../../../../watcher/testdata/kinds/rayjob/succeeded.yaml"),
    include_str!("../../../../watcher/testdata/kinds/raycluster/ready.yaml"),
    include_str!("../../../../watcher/testdata/kinds/kfp-pipeline/plain.yaml"),
    include_str!("../../../../watcher/testdata/kinds/kfp-pipelineversion/alone.yaml"),
];

/// What lasts is read anew only when it could not be stored at once.
const AFTER_FAILURES: [(&str, &str); 3] = [
    ("ray.io", "rayclusters"),
    ("pipelines.kubeflow.org", "pipelines"),
    ("pipelines.kubeflow.org", "pipelineversions"),
];

/// The rights to what lasts that are used only when something fails.
pub(in crate::deploy) fn rare() -> [Right; 3] {
    AFTER_FAILURES.map(|(group, plural)| (group.into(), plural.into(), "get".into()))
}

/// Where nothing may be stored, so that a run there is told of by an event.
const CLOSED: &str = "closed";

/// How often the delete of a run is refused though the roles allow it.
const REFUSALS: u32 = 3;

/// What the watcher of this test is known by at the server.
const TOKEN: &str = "of-the-watcher";

pub(in crate::deploy) fn cluster() -> Sim {
    let sim = Sim::new();
    let mut kinds = Crd::tekton().to_vec();
    kinds.extend([Crd::argo_workflow(), Crd::hindsight_workflow()]);
    kinds.push(Crd::tekton_run());
    kinds.extend(Crd::ray().into_iter().chain(Crd::kubeflow()));
    sim.install_all(kinds);
    sim.namespace("ci").namespace("hindsight").namespace(CLOSED);
    for run in RUNS {
        sim.load_dump(run).unwrap();
        // A run that is tried again is read anew.
        let name = run.lines().find_map(|line| line.strip_prefix("  name: "));
        let failure = Fault::status(500).verb("patch").name(name.unwrap());
        sim.faults().plan(failure.times(1));
        // A run that is due is annotated only if its delete is refused, and for long enough.
        let refused = Fault::status(403).verb("delete").name(name.unwrap());
        sim.faults().plan(refused.times(REFUSALS));
    }
    let refused = include_str!("../../../../watcher/testdata/kinds/customrun/cancelled.yaml")
        .replace("name: loop-2", "name: refused")
        .replace("namespace: ci", &format!("namespace: {CLOSED}"))
        .replace("000000000031", "000000000099");
    sim.load_dump(&refused).unwrap();
    // Its end is that it is deleted, which may take long.
    let leaving = include_str!("../../../../watcher/testdata/kinds/raycluster/being_deleted.yaml")
        .replace("name: shared", "name: leaving");
    sim.load_dump(&leaving).unwrap();
    // The pod of the TaskRun, whose log is read if logs are on.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "build-2-pod", "namespace": "ci", "labels": {"tekton.dev/taskRun": "build-2"},
            "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "build-2",
                "uid": "6c2a2e1f-0000-4000-8000-000000000002", "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "step-a", "image": "i"}]},
    });
    sim.load(pod).unwrap();
    sim.start_container("ci", "build-2-pod", "step-a").unwrap();
    sim.write_log("ci", "build-2-pod", "step-a", "hello\n")
        .unwrap();
    sim.end_container("ci", "build-2-pod", "step-a", 0).unwrap();
    let job = include_str!("../../../../watcher/testdata/kinds/job/complete.yaml");
    let name = job.lines().find_map(|line| line.strip_prefix("  name: "));
    let refused = Fault::status(403).verb("delete").name(name.unwrap());
    sim.faults().plan(refused.times(REFUSALS));
    let labels = "metadata:\n  labels: {hindsight.dev/watch: \"true\"}\n";
    sim.load_dump(&job.replacen("metadata:\n", labels, 1))
        .unwrap();
    sim
}

/// A file of users in which the watcher may write in `ci` alone.
fn users() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let hash = token_hash(TOKEN);
    let text = format!(
        "[[users]]\nname = 'watcher'\nsha256 = ['{hash}']\n\
         grants = [{{parents = ['ci', 'cluster/{KUBE_SYSTEM_UID}/namespace/ci'], role = 'readwrite'}}]\n"
    );
    std::fs::write(file.path(), text).unwrap();
    file
}

/// From now on the cluster answers as the roles of the overlay say, down to the names in them.
fn enforce(sim: &Sim, objects: &[Value]) {
    for kind in [
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    ] {
        for object in all(objects, kind) {
            sim.load(object.clone()).unwrap();
        }
    }
    sim.policy().enforce();
}

/// What the watcher of an overlay asked of a simulated cluster until it had nothing left to do.
pub(super) async fn watched(objects: &[Value], deletes: bool) -> BTreeSet<Right> {
    let database = Database::sqlite();
    let users = users();
    let more = [("auth", "tokens"), ("auth_tokens_file", text(users.path()))];
    let server = TestServer::start_with(&database, &more).await;
    let sim = cluster();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    enforce(&sim, objects);
    let account = "system:serviceaccount:hindsight:hindsight-watcher";
    let kubeconfig = listening.kubeconfig_as(account).unwrap();
    let pods = pods(objects);
    let container = container(pods["hindsight-watcher"]);
    let mut command = Command::new(watcher());
    command
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    for argument in arguments(container) {
        // What is about the pod, and not about what it does.
        let elsewhere = ["--server=", "--token-file=", "--metrics-listen="];
        if !elsewhere.iter().any(|start| argument.starts_with(start)) {
            command.arg(argument);
        }
    }
    command.args(["--server", &server.url, "--token", TOKEN]);
    command.args(["--lease-namespace", "hindsight"]);
    command.args(["--lease-retry", "200ms", "--kubeconfig", text(&kubeconfig)]);
    let spool = tempfile::tempdir().unwrap();
    for (name, value) in environment(container) {
        let value = match name.as_str() {
            "HINDSIGHT_WATCHER_GRACE" => "0s".to_owned(),
            "HINDSIGHT_WATCHER_SPOOL" => text(spool.path()).to_owned(),
            _ => value,
        };
        command.env(name, value);
    }
    let mut child = command.spawn().unwrap();
    let mut wanted = of_cluster(granted(objects, "hindsight-watcher"));
    let mut rare = rare().to_vec();
    let holds = environment(container).contains_key("HINDSIGHT_WATCHER_FINALIZERS");
    // A run that could not be held at once is tried again as it is known, and need not be read.
    let is_read = |(group, _, verb): &&Right| verb == "get" && group.contains('.');
    rare.extend(
        wanted
            .iter()
            .filter(|right| holds && is_read(right))
            .cloned(),
    );
    // A run that is due is annotated only while its delete is refused.
    let is_mark = |(_, _, verb): &&Right| deletes && verb == "patch";
    rare.extend(wanted.iter().filter(is_mark).cloned());
    rare.retain(|(group, ..)| group != "coordination.k8s.io");
    wanted.retain(|right| !rare.contains(right));
    let done = sim.until(|sim| {
        let renewed = sim.calls().resource("leases").verb("update").count() > 0;
        let left =
            sim.list("tekton.dev", "taskruns").len() + sim.list("hindsight.dev", "workflows").len();
        renewed && (!deletes || left == 0) && asked(sim.calls().all()).is_superset(&wanted)
    });
    let in_time = tokio::time::timeout(PATIENCE, done).await;
    let calls = sim.calls();
    let mut planned = BTreeMap::new();
    let all = calls.all();
    let refused = all.iter().find(|call| {
        let left = planned.entry((call.verb, &call.name)).or_insert(REFUSALS);
        let is_planned = call.verb == "delete" && *left > 0;
        *left = left.saturating_sub(1);
        call.status == Some(403) && !is_planned
    });
    assert_eq!(refused, None, "the roles do not allow it");
    let mut seen = asked(calls.all());
    seen.extend(rare);
    child.kill().unwrap();
    child.wait().unwrap();
    server.stop().await;
    assert!(
        in_time.is_ok(),
        "granted and not asked: {:?}",
        wanted.difference(&seen)
    );
    seen
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
