//! Clients of ours at a server that wants a certificate of every client.

use std::{path::PathBuf, time::Duration};

use super::{Authority, Files, list, rpc, setup::address, start};
use crate::support::{Database, TestServer};

/// A server that wants certificates of clients, and what one of them has.
struct Certified {
    server: TestServer,
    authority: Authority,
    people: Authority,
    own: Files,
    trusted: PathBuf,
    // They are there as long as the server is.
    _kept: (Files, Database),
}

impl Certified {
    async fn new() -> Self {
        let (authority, people) = (Authority::new(), Authority::new());
        let files = Files::new(&authority.certify());
        let (ca, trusted) = (files.path("ca.pem"), files.path("trusted.pem"));
        std::fs::write(&ca, people.pem()).unwrap();
        std::fs::write(&trusted, authority.pem()).unwrap();
        let mut keys = files.keys();
        keys.push(("tls_client_ca", ca.display().to_string()));
        let database = Database::sqlite();
        Self {
            server: start(&database, &keys).await,
            own: Files::new(&people.certify()),
            authority,
            people,
            trusted,
            _kept: (files, database),
        }
    }
}

#[tokio::test]
async fn commands_show_a_client_certificate_and_say_that_one_is_wanted() {
    let scene = Certified::new().await;
    let (server, own) = (&scene.server, &scene.own);
    let port = address(server).rsplit_once(':').unwrap().1;
    let list = async |scheme: &str, more: &[(&str, PathBuf)]| {
        let url = format!("{scheme}://localhost:{port}");
        let mut all = ["list", "runs", "-A", "--server", &url]
            .map(str::to_owned)
            .to_vec();
        for (flag, path) in more {
            all.extend([(*flag).to_owned(), path.display().to_string()]);
        }
        crate::support::process::run(&all).await
    };
    let trust = ("--server-ca", scene.trusted.clone());
    let shown = [
        trust.clone(),
        ("--client-cert", own.path("cert.pem")),
        ("--client-key", own.path("key.pem")),
    ];
    let said = list("https", &shown).await;
    assert_eq!(said.code, 0, "{said:?}");
    for (scheme, more, why) in [
        (
            "https",
            &[trust][..],
            "wants a client certificate, give one with --client-cert",
        ),
        ("https", &[], "name that authority with --server-ca"),
        ("http", &[], "if it speaks TLS, use https://"),
    ] {
        // The refusal races the first request; it is named whichever is first.
        for _ in 0..3 {
            let said = list(scheme, more).await;
            said.fails(5, why);
        }
    }
    scene.server.stop().await;
}

#[tokio::test]
async fn a_watcher_shows_a_client_certificate() {
    let scene = Certified::new().await;
    let (server, own) = (&scene.server, &scene.own);
    let port = address(server).rsplit_once(':').unwrap().1;
    let sim = kubesim::Sim::new();
    sim.install_all(kubesim::Crd::tekton());
    sim.namespace("ci");
    sim.load(crate::support::objects::task_run("build", "Succeeded"))
        .unwrap();
    let cluster = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let mut watcher = std::process::Command::new(crate::support::process::watcher())
        .env_clear()
        .args(["--server", &format!("https://localhost:{port}")])
        .arg("--server-ca")
        .arg(&scene.trusted)
        .arg("--client-cert")
        .arg(own.path("cert.pem"))
        .arg("--client-key")
        .arg(own.path("key.pem"))
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut asking = rpc(server, &scene.authority, Some(&scene.people.certify()));
    let stored = async {
        while asking
            .list_results(list())
            .await
            .unwrap()
            .into_inner()
            .results
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let stored = tokio::time::timeout(Duration::from_secs(30), stored).await;
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    stored.expect("the run is stored");
    cluster.stop().await;
    scene.server.stop().await;
}
