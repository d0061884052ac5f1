//! Server and watcher in one process, as it is run.

use std::{collections::BTreeMap, time::Duration};

use hindsight_access::auth::token_hash;
use hindsight_client::{Client, Options};
use hindsight_proto::{v1::ListRunsRequest, v1alpha2 as pb};
use hindsight_run::View;
use kubesim::{Crd, Finished, Listening, Mix, Plan, Player, Playing, Sim};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    Database,
    cluster::free_port,
    http::Http,
    process::{Said, run},
    program::Program,
};

/// Everything has to be over by then; it takes a tenth of this on two busy cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, started with these arguments.
async fn start(arguments: &[&str]) -> Program {
    Program::start("all-in-one", arguments).await
}

/// Arguments for a database and a cluster, without an admin port.
fn of<'a>(db: &'a str, kubeconfig: &'a str) -> [&'a str; 5] {
    let to = ["--metrics-listen=off", "--watcher-kubeconfig", kubeconfig];
    ["--db", db, to[0], to[1], to[2]]
}

/// Every run that was played is stored as it ended, and nothing else.
async fn all_stored(program: &Program, playing: &Playing) {
    let (records, finished) = (records(program).await, playing.finished());
    assert_eq!(records.len(), finished.len());
    let is_done = |run: &Finished| View::new(&records[&run.uid]).finish().done;
    assert!(finished.iter().all(is_done));
}

/// All records, by the UID of their runs.
async fn records(program: &Program) -> BTreeMap<String, Value> {
    let mut rpc = Client::new(&Options::new(&program.url)).unwrap().rpc();
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 10_000,
        ..pb::ListRecordsRequest::default()
    };
    let records = rpc
        .list_records(request)
        .await
        .unwrap()
        .into_inner()
        .records;
    let object = |record: pb::Record| {
        let object: Value = serde_json::from_slice(&record.data.unwrap().value).unwrap();
        let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
        (uid, object)
    };
    records.into_iter().map(object).collect()
}

async fn cluster() -> (Sim, Listening) {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.namespace("ci");
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    (sim, listening)
}

fn play(sim: &Sim) -> Playing {
    let plan = Plan {
        runs: 60,
        rate: 120.0,
        concurrency: 20,
        mix: Mix {
            pipeline_runs: 1,
            task_runs: 2,
            custom_runs: 1,
            workflows: 0,
        },
        life: Duration::from_millis(20),
        ..Plan::default()
    };
    Player::new(sim, plan).start()
}

async fn emptied(sim: &Sim) {
    let left = |sim: &Sim| -> usize {
        let kinds = Crd::tekton();
        let counts = kinds
            .iter()
            .map(|kind| sim.count(&kind.group, &kind.plural));
        counts.sum()
    };
    let empty = timeout(PATIENCE, sim.until(|sim| left(sim) == 0)).await;
    assert!(empty.is_ok(), "{} runs are left", left(sim));
}

const RUN: &str = include_str!("../../watcher/testdata/kinds/taskrun/succeeded.yaml");

fn of_run(field: &str) -> &'static str {
    let found = RUN.lines().find_map(|line| line.trim().strip_prefix(field));
    found.unwrap().trim()
}

/// Waits until the run says that it is stored.
async fn marked(sim: &Sim) {
    let marked = sim.until(|sim| {
        let run = sim.get("tekton.dev", "taskruns", "ci", of_run("name:"));
        run.unwrap()["metadata"]["annotations"]["results.tekton.dev/stored"] == "true"
    });
    timeout(PATIENCE, marked).await.unwrap();
}

const COLLECT: [&str; 4] = [
    "--watcher-collect",
    "--watcher-grace=0s",
    "--watcher-recheck",
    "200ms",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_from_the_cluster_to_the_api_with_no_socket_between() {
    let (sim, listening) = cluster().await;
    let database = Database::sqlite();
    let (db, admin) = (database.url(), format!("127.0.0.1:{}", free_port()));
    let kubeconfig = listening.kubeconfig().display().to_string();
    let watcher = format!("127.0.0.1:{}", free_port());
    let own = [
        "--db",
        &db,
        "--metrics-listen",
        &admin,
        "--watcher-metrics-listen",
        &watcher,
        "--watcher-kubeconfig",
        &kubeconfig,
    ];
    let program = start(&[&own[..], &COLLECT].concat()).await;
    let playing = play(&sim);
    assert_eq!(playing.over().await.lost, 0);
    emptied(&sim).await;
    let watcher = format!("http://{watcher}");
    let said = run(&["ledger", "--watcher", &watcher]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains(" collected  TaskRun\n"), "{}", said.out);
    let mut http = Http::one(&format!("http://{admin}")).await;
    let metrics = http.send("GET", "/metrics", &[], "").await.text();
    assert!(
        metrics.contains("\nhindsight_connections_taken_total 0\n"),
        "{metrics}"
    );
    all_stored(&program, &playing).await;
    let (code, said) = program.terminate().await;
    assert_eq!(code, Some(0), "{said:#?}");
    let at = |what: &str| {
        let at = said.iter().position(|line| line.contains(what));
        at.unwrap_or_else(|| panic!("`{what}` is not said: {said:#?}"))
    };
    // First the watcher, then the server.
    assert!(at("ended in order") < at("INFO hindsight::app: stopped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_middle_of_it_loses_nothing() {
    let (sim, listening) = cluster().await;
    let database = Database::sqlite();
    let db = database.url();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let own = of(&db, &kubeconfig);
    let arguments = [&own[..], &COLLECT].concat();
    let mut program = start(&arguments).await;
    let playing = play(&sim);
    for blow in 1..4 {
        playing
            .until(|progress| progress.finished >= blow * 15)
            .await;
        let (code, said) = program.terminate().await;
        assert_eq!(code, Some(0), "{said:#?}");
        program = start(&arguments).await;
    }
    assert_eq!(playing.over().await.lost, 0);
    emptied(&sim).await;
    all_stored(&program, &playing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_auth_the_watcher_is_asked_who_it_is_like_everybody() {
    let (sim, listening) = cluster().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let hash = token_hash("secret");
    let users = file(
        "users.toml",
        format!(
            "[[users]]\nname = 'the-watcher'\nsha256 = ['{hash}']\n\
             grants = [{{parents = ['*'], role = 'readwrite'}}]\n"
        ),
    );
    let (token, audit) = (
        file("token", "secret\n".into()),
        file("audit", String::new()),
    );
    let database = Database::sqlite();
    let db = database.url();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let own = of(&db, &kubeconfig);
    let asked = [
        "--auth",
        "tokens",
        "--auth-tokens-file",
        &users,
        "--audit-log",
        &audit,
    ];
    let arguments = [&own[..], &asked].concat();

    let Said { code, err, .. } = run(&[&["all-in-one"], &arguments[..]].concat()).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--watcher-token-file"), "{err}");

    let more = ["--watcher-token-file", &token];
    let program = start(&[&arguments[..], &more].concat()).await;
    sim.load_dump(RUN).unwrap();
    marked(&sim).await;
    assert_eq!(program.terminate().await.0, Some(0));
    let told = std::fs::read_to_string(audit).unwrap();
    assert!(told.lines().count() > 0);
    assert!(
        told.lines().all(|line| line.contains("the-watcher")),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_runs_are_found_by_their_type() {
    let (sim, listening) = cluster().await;
    let database = Database::sqlite();
    let db = database.url();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "started", "namespace": "ci"},
        "involvedObject": {
            "kind": "TaskRun", "namespace": "ci", "name": of_run("name:"), "uid": of_run("uid:"),
        },
        "reason": "Started",
    });
    sim.create(event).unwrap();
    sim.load_dump(RUN).unwrap();
    let own = of(&db, &kubeconfig);
    let program = start(&[&own[..], &["--watcher-store-events"]].concat()).await;
    marked(&sim).await;
    let mut rpc = Client::new(&Options::new(&program.url)).unwrap().rpc();
    let request = pb::ListRecordsRequest {
        parent: "ci/results/-".to_owned(),
        filter: "data_type == 'results.tekton.dev/v1.EventList'".to_owned(),
        ..pb::ListRecordsRequest::default()
    };
    let found = rpc.list_records(request).await.unwrap().into_inner();
    let [record] = &found.records[..] else {
        panic!("{found:?}");
    };
    let uid = of_run("uid:");
    assert_eq!(
        record.name,
        format!("ci/results/{uid}/records/{uid}-events")
    );
    let value = &record.data.as_ref().unwrap().value;
    let list: Value = serde_json::from_slice(value).unwrap();
    assert_eq!(list["items"][0]["reason"], "Started");
    assert_eq!(program.terminate().await.0, Some(0));
}

/// Names of the runs that these words select.
async fn found(program: &Program, words: &str) -> Vec<String> {
    let mut runs = Client::new(&Options::new(&program.url)).unwrap().runs();
    let request = ListRunsRequest {
        parent: "ci/results/-".to_owned(),
        query: words.to_owned(),
        ..ListRunsRequest::default()
    };
    let rows = runs.list_runs(request).await.unwrap().into_inner().runs;
    rows.into_iter().map(|row| row.name).collect()
}

/// Waits until these words select these runs.
async fn selects(program: &Program, words: &str, names: &[&str]) {
    let asked = timeout(PATIENCE, async {
        while found(program, words).await != names {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    asked.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_running_while_it_runs_and_no_longer() {
    let (sim, listening) = cluster().await;
    let database = Database::sqlite();
    let db = database.url();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let own = of(&db, &kubeconfig);
    let mut program = start(&own).await;
    let status = |status: Value| json!({"status": status});
    let condition = |status: &str, reason: &str| json!([{"type": "Succeeded", "status": status, "reason": reason}]);
    for name in ["ends", "goes"] {
        let run = json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": name, "namespace": "ci", "uid": name},
            "status": {"startTime": "2026-03-01T10:00:00Z",
                "conditions": condition("Unknown", "Running")},
        });
        sim.load_dump(&run.to_string()).unwrap();
        selects(&program, &format!("running {name}"), &[name]).await;
    }
    let end = json!({"completionTime": "2026-03-01T10:05:00Z",
        "conditions": condition("True", "Succeeded")});
    sim.merge(
        "tekton.dev",
        "taskruns",
        "ci",
        "ends",
        status(end),
        "tekton",
    )
    .unwrap();
    selects(&program, "succeeded", &["ends"]).await;
    assert_eq!(found(&program, "running").await, ["goes"]);
    // It vanishes while nothing watches.
    assert_eq!(program.terminate().await.0, Some(0));
    sim.delete("tekton.dev", "taskruns", "ci", "goes").unwrap();
    program = start(&own).await;
    selects(&program, "vanished", &["goes"]).await;
    assert_eq!(found(&program, "running").await, [""; 0]);
    let said = run(&["runs", "-n", "ci", "goes", "--server", &program.url]).await;
    said.prints(0, "vanished");
    let stats = [
        "stats",
        "-n",
        "ci",
        "--measure",
        "running,vanished,succeeded",
        "-o",
        "json",
    ];
    let said = run(&[&stats[..], &["--server", &program.url]].concat()).await;
    let said: Value = serde_json::from_str(&said.out).unwrap();
    let measures = &said["groups"][0]["measures"];
    assert_eq!(
        *measures,
        json!({"running": 0, "vanished": 1, "succeeded": 1}),
        "{said}"
    );
    assert_eq!(program.terminate().await.0, Some(0));
}

#[tokio::test]
async fn what_is_wrong_with_either_part_is_said_at_once() {
    let wrong = [
        "all-in-one",
        "--max-connections=0",
        "--watcher-threadiness=0",
    ];
    let Said { code, err, .. } = run(&wrong).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--max-connections"), "{err}");
    assert!(err.contains("--watcher-threadiness"), "{err}");
}

#[tokio::test]
async fn a_watcher_that_cannot_start_ends_the_server_in_order() {
    let database = Database::sqlite();
    let db = database.url();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kubeconfig.path(), "current-context: nowhere\n").unwrap();
    let kubeconfig = kubeconfig.path().display().to_string();
    let port = ["all-in-one", "--listen=127.0.0.1:0"];
    let Said { code, err, .. } = run(&[&port[..], &of(&db, &kubeconfig)].concat()).await;
    assert_eq!(code, 1, "{err}");
    let why = format!("kubeconfig `{kubeconfig}` leads nowhere");
    assert!(err.contains(&why), "{err}");
    assert!(err.contains("stopped"), "{err}");
}
