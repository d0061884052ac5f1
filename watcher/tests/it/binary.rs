//! The program itself: a process, a kubeconfig, a gRPC server.

use std::{
    io::Read as _,
    process::{Output, Stdio},
    time::Duration,
};

use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2::GetRecordRequest;
use kubesim::{Crd, Listening, Mix, Plan, Player, Sim};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::{
    Code,
    transport::{Identity, ServerTlsConfig},
};

use crate::support::{
    RpcServer, eventually,
    process::{Process, program},
    task_run, within,
};

fn output(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = program().args(args).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

async fn cluster() -> (Sim, Listening) {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (sim, listening)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_loses_nothing_when_it_or_the_server_is_killed() {
    let (sim, listening) = cluster().await;
    let mut server = RpcServer::start();
    let address = format!("http://{}", server.addr);
    let args = [
        "--server",
        address.as_str(),
        "--collect",
        "--grace",
        "0s",
        "--recheck",
        "200ms",
    ];
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
    let process = Process::start(listening.kubeconfig(), &args);
    let playing = Player::new(&sim, plan).start();
    within(playing.until(|p| p.finished >= 15)).await;
    server.kill();
    within(playing.until(|p| p.finished >= 30)).await;
    process.kill();
    let process = Process::start(listening.kubeconfig(), &args);
    within(playing.until(|p| p.finished >= 40)).await;
    server.up();
    within(playing.over()).await;
    let kinds = ["taskruns", "pipelineruns", "customruns"];
    let is_empty = |sim: &Sim| {
        kinds
            .iter()
            .all(|plural| sim.count("tekton.dev", plural) == 0)
    };
    within(sim.until(is_empty)).await;
    let finished = playing.finished();
    for run in &finished {
        let copy = server.copy(&run.uid).expect("a collected run is stored");
        assert!(copy["status"]["completionTime"].is_string(), "{copy}");
    }
    assert_eq!(server.records(), finished.len());
    assert_eq!(process.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_vanishes_while_the_server_is_away_outlives_the_program() {
    let (sim, listening) = cluster().await;
    sim.namespace("ci");
    let mut server = RpcServer::start();
    server.kill();
    let address = format!("http://{}", server.addr);
    let spool = tempfile::tempdir().unwrap();
    let args = [
        "--server",
        &address,
        "--spool",
        spool.path().to_str().unwrap(),
    ];
    let process = Process::start(listening.kubeconfig(), &args);
    let mut uids = Vec::new();
    for n in 0..20 {
        let name = format!("build-{n}");
        let run = sim.create(task_run(&name)).unwrap();
        uids.push(crate::support::uid(&run));
        let status = serde_json::json!({"status": crate::support::done()});
        sim.merge("tekton.dev", "taskruns", "ci", &name, status, "x")
            .unwrap();
    }
    let kept = || crate::spool::runs(spool.path());
    let wait_for = async |enough: fn(usize) -> bool| {
        eventually(|| enough(kept())).await;
    };
    wait_for(|kept| kept == 20).await;
    for n in 0..20 {
        sim.delete("tekton.dev", "taskruns", "ci", &format!("build-{n}"))
            .unwrap();
    }
    process.kill();
    server.up();
    let process = Process::start(listening.kubeconfig(), &args);
    wait_for(|kept| kept == 0).await;
    assert!(uids.iter().all(|uid| server.copy(uid).is_some()));
    assert_eq!(process.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_of_upstream_and_a_token_file_work() {
    let (sim, listening) = cluster().await;
    sim.namespace("ci");
    let server = RpcServer::start();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret\n").unwrap();
    let run = sim.create(task_run("build")).unwrap();
    let status = serde_json::json!({"status": crate::support::done()});
    sim.merge("tekton.dev", "taskruns", "ci", "build", status, "x")
        .unwrap();
    let address = server.addr.to_string();
    let args = [
        "-api_addr",
        address.as_str(),
        "-auth_mode",
        "insecure",
        "-completed_run_grace_period=-1ns",
        "-store_deadline",
        "10m",
        "-namespace",
        "ci",
        "--token-file",
        token.to_str().unwrap(),
        "--log-format",
        "json",
    ];
    let process = Process::start(listening.kubeconfig(), &args);
    within(sim.until(|sim| sim.count("tekton.dev", "taskruns") == 0)).await;
    assert!(
        server
            .copy(run["metadata"]["uid"].as_str().unwrap())
            .is_some()
    );
    assert_eq!(server.tokens(), ["Bearer s3cret"]);
    assert_eq!(process.terminate().await, Some(0));
}

/// An authority that no system knows, and the key of a server with its certificate.
fn authority() -> (String, Identity) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &issuer).unwrap();
    (
        issuer.pem(),
        Identity::from_pem(cert.pem(), key.serialize_pem()),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_by_the_authority_that_is_named_and_only_so() {
    let (sim, listening) = cluster().await;
    sim.namespace("ci");
    let (pem, identity) = authority();
    let server = RpcServer::start_with(Some(ServerTlsConfig::new().identity(identity)));
    let address = format!("https://localhost:{}", server.addr.port());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "no certificate").unwrap();
    let cluster = listening.kubeconfig().display().to_string();
    let says = |path: &str, why: &str| {
        let args = [
            "--kubeconfig",
            &cluster,
            "--server",
            &address,
            "--server-ca",
            path,
        ];
        let (code, said) = output(&args);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    };
    says(path, "no certificates in PEM");
    says("/no/such", "`/no/such` cannot be read");
    std::fs::write(&file, pem).unwrap();
    let mut stranger = Client::new(&Options::new(&address)).unwrap().rpc();
    let refused = stranger.get_record(GetRecordRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
    let args = ["--server", address.as_str(), "--server-ca", path];
    let process = Process::start(listening.kubeconfig(), &args);
    sim.create(task_run("build")).unwrap();
    let status = serde_json::json!({"status": crate::support::done()});
    sim.merge("tekton.dev", "taskruns", "ci", "build", status, "x")
        .unwrap();
    let is_stored =
        |sim: &Sim| crate::support::stored_annotation(sim, "build").as_deref() == Some("true");
    within(sim.until(is_stored)).await;
    assert_eq!(server.records(), 1);
    assert_eq!(process.terminate().await, Some(0));
}

#[test]
fn what_is_wrong_with_the_flags_is_said_at_once() {
    let (code, said) = output(&["--grace", "soon", "--server", "localhost", "--kinds=pods"]);
    assert_eq!(code, Some(2));
    for part in [
        "--grace: `soon`",
        "--server: `localhost`",
        "--kinds: `pods`",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let (code, said) = output(&["--config", "/nowhere/w.toml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nowhere/w.toml"), "{said}");
    let (code, said) = output(&["--kubeconfig", "/nowhere/kubeconfig"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("/nowhere/kubeconfig"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_hangs_up_is_said_once_for_each_kind() {
    let (_sim, listening) = cluster().await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = std::fs::read_to_string(listening.kubeconfig()).unwrap();
    let (sim, port) = (listening.addr.to_string(), nobody.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, text.replace(&sim, &port.to_string())).unwrap();
    let mut command = program();
    command
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(["--kinds", "taskruns,pipelineruns"])
        .stderr(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut stderr = process.0.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        said
    });
    for _ in 0..6 {
        drop(within(nobody.accept()).await.unwrap());
    }
    assert_eq!(process.terminate().await, Some(0));
    let said = said.join().unwrap();
    assert_eq!(said.matches("cannot be read").count(), 2, "{said}");
    assert!(!said.contains("ERROR"), "{said}");
}
