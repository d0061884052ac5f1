//! The program: it says where it listens, writes a kubeconfig, plays, and ends when told.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn serve(kubeconfig: &Path, more: &[&str]) -> (Running, impl Iterator<Item = String>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubesim"))
        .args([
            "serve",
            "--kubeconfig",
            kubeconfig.to_str().expect("a plain path"),
        ])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    (
        Running(child),
        lines.map(|line| line.expect("its output is text")),
    )
}

#[tokio::test]
async fn it_plays_what_it_was_asked_for_and_ends_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let (mut running, mut lines) =
        serve(&path, &["--play", "20", "--rate", "1000", "--life", "10"]);
    assert!(
        lines
            .next()
            .expect("a line")
            .starts_with("listening on http://127.0.0.1:")
    );
    assert_eq!(
        lines.next().as_deref(),
        Some("played 20 runs: 20 finished, 0 lost")
    );

    let kubeconfig = kube::config::Kubeconfig::read_from(&path).expect("it wrote a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.expect("it is a kubeconfig")).expect("a client");
    let kind = GroupVersionKind::gvk("tekton.dev", "v1", "TaskRun");
    let runs: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let runs = runs
        .list(&ListParams::default())
        .await
        .expect("it serves")
        .items;
    assert!(
        runs.iter()
            .all(|run| run.data["status"]["completionTime"].is_string())
    );
    assert!(!runs.is_empty());

    let pid = running.0.id().to_string();
    let sent = Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .expect("a signal is sent");
    assert!(sent.success());
    assert!(running.0.wait().expect("it ends").success());
}

#[test]
fn it_names_a_dump_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_kubesim"))
        .args(["serve", "--kubeconfig", "unused", "--load", "none.json"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: none.json: "), "{said}");
}
