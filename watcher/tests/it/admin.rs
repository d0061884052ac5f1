//! What the watcher tells about itself.

use std::{net::SocketAddr, sync::Arc};

use hindsight_watcher::{app::App, config::Config};
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
        "hindsight_watcher_collected_total 1",
        "hindsight_watcher_server_up 1",
        "watcher_taskrun_delete_count_total{namespace=\"ci\",status=\"success\"} 1",
        "watcher_run_storage_latency_seconds_count{kind=\"taskrun\",namespace=\"ci\"} 1",
        "hindsight_watcher_store_errors_total{code=\"INVALID_ARGUMENT\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
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
