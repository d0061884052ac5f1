//! What the watcher tells about itself.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hindsight_watcher::{
    app::App,
    config::{Config, LeaseConfig},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use crate::support::{World, collecting, quick, within};

async fn get(addr: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (code, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[tokio::test]
async fn metrics_probes_and_the_ledger_are_served() {
    let world = World::without_watcher(collecting());
    let config = Config {
        metrics_listen: Some("127.0.0.1:0".parse().unwrap()),
        ..collecting()
    };
    world.sink.refuse("bad");
    world.sim.faults().down();
    let sink = Arc::clone(&world.sink);
    let app = App::bind(config, world.sim.client(), sink).await.unwrap();
    let (handle, addr) = (app.handle(), app.metrics_addr().unwrap());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(app.run(shutdown.clone()));
    assert_eq!(get(addr, "/livez").await.0, 200);
    assert_eq!(get(addr, "/readyz").await.0, 503);
    assert!(
        get(addr, "/metrics")
            .await
            .1
            .contains("hindsight_watcher_server_up 0")
    );
    world.sim.faults().up();
    within(handle.until(|w| w.progress().is_listed)).await;
    assert_eq!(get(addr, "/readyz").await.0, 200);
    world.finished("good");
    world.finished("bad");
    let settled = |w: &hindsight_watcher::progress::Handle| {
        w.progress().collected == 1
            && w.progress().in_cluster == 1
            && w.unstored(9)
                .iter()
                .any(|u| u.reason.contains("not like that"))
    };
    within(handle.until(settled)).await;
    let (code, ledger) = get(addr, "/ledger").await;
    let ledger: serde_json::Value = serde_json::from_str(&ledger).unwrap();
    assert_eq!(code, 200);
    assert_eq!(ledger["unstored"][0]["name"], "bad");
    assert!(
        ledger["unstored"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("INVALID_ARGUMENT")
    );
    let (_, metrics) = get(addr, "/metrics").await;
    for line in [
        "hindsight_watcher_ledger{state=\"collected\",kind=\"TaskRun\"} 1",
        "hindsight_watcher_ledger{state=\"final_seen\",kind=\"TaskRun\"} 1",
        "hindsight_watcher_collected_total{kind=\"TaskRun\"} 1",
        "hindsight_watcher_server_up 1",
        "watcher_taskrun_delete_count_total{namespace=\"ci\",status=\"success\",\
         pipeline=\"anonymous\",task=\"build\"} 1",
        "watcher_run_storage_latency_seconds_count{kind=\"taskrun\",namespace=\"ci\"} 1",
        "hindsight_watcher_refused_total{kind=\"taskrun\",namespace=\"ci\"} 1",
        "hindsight_watcher_store_errors_total{code=\"INVALID_ARGUMENT\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    shutdown.cancel();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watcher_that_gets_nowhere_is_not_ready_and_says_why() {
    let world = World::without_watcher(quick());
    let mut config = Config {
        metrics_listen: Some("127.0.0.1:0".parse().unwrap()),
        ..quick()
    };
    config.tuning.ready_for = Duration::from_millis(50);
    let sink = Arc::clone(&world.sink);
    let app = App::bind(config, world.sim.client(), sink).await.unwrap();
    let (handle, addr) = (app.handle(), app.metrics_addr().unwrap());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(app.run(shutdown.clone()));
    let says = async |code: u16, text: &str| {
        within(async {
            loop {
                let (is, said) = get(addr, "/readyz").await;
                if is == code && said.contains(text) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    within(handle.until(|w| w.progress().is_listed)).await;
    says(200, "ok").await;
    world.sim.faults().down();
    says(503, ".tekton.dev has not worked for").await;
    assert_eq!(get(addr, "/livez").await.0, 200);
    world.sim.faults().up();
    says(200, "ok").await;
    world.sink.away(true);
    world.finished("build");
    says(503, "server unavailable for").await;
    world.sink.away(false);
    says(200, "ok").await;
    shutdown.cancel();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kind_without_rights_is_named_and_the_watcher_is_ready() {
    let world = World::without_watcher(quick());
    world.sim.install(kubesim::Crd::argo_workflow());
    let forbidden = kubesim::Fault::status(403).verb("list");
    let forbidden = forbidden.resource("workflows").times(1_000_000);
    world.fault(forbidden);
    let config = Config {
        metrics_listen: Some("127.0.0.1:0".parse().unwrap()),
        ..quick()
    };
    let sink = Arc::clone(&world.sink);
    let app = App::bind(config, world.sim.client(), sink).await.unwrap();
    let (handle, addr) = (app.handle(), app.metrics_addr().unwrap());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(app.run(shutdown.clone()));
    within(handle.until(|w| w.progress().is_listed)).await;
    let (code, text) = get(addr, "/readyz").await;
    assert_eq!(code, 200);
    assert!(text.contains("workflows.argoproj.io"), "{text}");
    assert_eq!(get(addr, "/livez").await.0, 200);
    let (_, metrics) = get(addr, "/metrics").await;
    for line in [
        "hindsight_watcher_lists_total{kind=\"TaskRun\"} 1",
        "hindsight_watcher_last_event_seconds{kind=\"TaskRun.tekton.dev\"} ",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(
        !metrics.contains("kind=\"Workflow.argoproj.io\""),
        "{metrics}"
    );
    shutdown.cancel();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watcher_that_stands_by_is_ready_and_says_for_whom() {
    let world = World::without_watcher(quick());
    let lease = serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "watcher", "namespace": "ci"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    });
    world.create(lease);
    let config = Config {
        metrics_listen: Some("127.0.0.1:0".parse().unwrap()),
        lease: Some(LeaseConfig {
            namespace: Some("ci".to_owned()),
            name: "watcher".to_owned(),
            identity: "me".to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_millis(10),
        }),
        ..quick()
    };
    let sink = Arc::clone(&world.sink);
    let app = App::bind(config, world.sim.client(), sink).await.unwrap();
    let (handle, addr) = (app.handle(), app.metrics_addr().unwrap());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(app.run(shutdown.clone()));
    within(async {
        while get(addr, "/readyz").await != (200, "standby; another leads\n".to_owned()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let leading = "hindsight_watcher_leading";
    assert!(
        get(addr, "/metrics")
            .await
            .1
            .contains(&format!("{leading} 0"))
    );
    world
        .sim
        .delete("coordination.k8s.io", "leases", "ci", "watcher")
        .unwrap();
    within(handle.until(|w| w.progress().is_leading && w.progress().is_listed)).await;
    assert_eq!(get(addr, "/readyz").await, (200, "ok\n".to_owned()));
    assert!(
        get(addr, "/metrics")
            .await
            .1
            .contains(&format!("{leading} 1"))
    );
    shutdown.cancel();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_said() {
    let world = World::without_watcher(quick());
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap();
    let config = Config {
        metrics_listen: Some(addr),
        ..quick()
    };
    let sink = Arc::clone(&world.sink);
    let error = App::bind(config, world.sim.client(), sink)
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
}
