//! Runs the contract in process, through a socket, and against a real server when
//! `KUBESIM_CONTRACT_KUBECONFIG` names a kubeconfig.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests may panic, and tell what they skip"
)]

use std::{collections::BTreeSet, path::Path};

use futures::future::join_all;
use kubesim::{
    Sim,
    contract::{CASES, Case, Ground, Outcome},
};

/// A client that shows refusals as they are, where kube's own would try again.
async fn patient(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

/// What is wrong, if anything is.
fn report(case: &Case, outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Passed => None,
        Outcome::Skipped(needs) => {
            eprintln!("skipped {}: the server lacks {needs:?}", case.name);
            None
        }
        Outcome::Failed(difference) => {
            Some(format!("{}: {difference} ({difference:?})", case.name))
        }
    }
}

fn all_pass(failures: impl IntoIterator<Item = Option<String>>) {
    let failures: Vec<String> = failures.into_iter().flatten().collect();
    assert!(
        failures.is_empty(),
        "{} cases differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[tokio::test]
async fn the_simulator_keeps_the_contract_in_process() {
    let outcomes = join_all(CASES.iter().map(|case| async move {
        let sim = Sim::new();
        report(case, Ground::simulated(&sim, sim.client()).run(case).await)
    }));
    all_pass(outcomes.await);
}

#[tokio::test]
async fn the_simulator_keeps_the_contract_through_a_socket() {
    let outcomes = join_all(CASES.iter().map(|case| async move {
        let sim = Sim::new();
        let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let client = patient(listening.kubeconfig()).await;
        let outcome = report(case, Ground::simulated(&sim, client).run(case).await);
        listening.stop().await;
        outcome
    }));
    all_pass(outcomes.await);
}

#[tokio::test]
async fn a_real_server_keeps_the_contract() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer points the suite at a server with it"
    )]
    let path = std::env::var("KUBESIM_CONTRACT_KUBECONFIG");
    let Ok(path) = path else {
        eprintln!("skipped: KUBESIM_CONTRACT_KUBECONFIG is not set");
        return;
    };
    let ground = Ground::real(patient(Path::new(&path)).await, &[])
        .await
        .unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in CASES {
        let outcome = ground.run(case).await;
        ran += usize::from(!matches!(outcome, Outcome::Skipped(_)));
        failures.push(report(case, outcome));
    }
    let left = ground.leave().await;
    eprintln!("contract: {ran} of {} cases ran", CASES.len());
    all_pass(failures);
    left.unwrap();
    assert_ne!(ran, 0, "no case ran");
}

#[test]
fn every_case_is_in_the_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
    let mut written = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let function = line.strip_prefix("pub async fn ");
            if let Some((name, _)) = function.and_then(|rest| rest.split_once("(arena: Arena)")) {
                written.insert(format!("{module}::{name}"));
            }
        }
    }
    let table: BTreeSet<String> = CASES.iter().map(|case| case.name.to_owned()).collect();
    assert_eq!(written, table);
    assert_eq!(table.len(), CASES.len(), "a case is in the table twice");
}
