//! The public face, end to end: a client in process, a client through a socket, a player in between.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
    core::DynamicObject,
    discovery::Discovery,
    runtime::{WatchStreamExt, watcher},
};
use kubesim::{Crd, Plan, Player, Sim};

#[tokio::test]
async fn a_socket_comes_back_on_its_port_with_the_same_state() {
    let sim = Sim::new();
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listening.addr;
    let client = listening.client().unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some("kept".into()),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    let made = maps.create(&PostParams::default(), &map).await.unwrap();

    listening.stop().await;
    maps.get("kept").await.expect_err("nobody listens");

    let listening = sim.listen(addr).await.unwrap();
    assert_eq!(listening.addr, addr);
    let kubeconfig = kube::config::Kubeconfig::read_from(listening.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(maps.get("kept").await.unwrap().uid(), made.uid());
}

#[tokio::test]
async fn a_watcher_sees_every_run_that_is_played() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    let client = sim.client();
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let (resource, _) = discovery
        .get("tekton.dev")
        .unwrap()
        .recommended_kind("TaskRun")
        .unwrap();
    let runs: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut stream = watcher(runs, watcher::Config::default())
        .applied_objects()
        .boxed();
    let plan = Plan {
        runs: 30,
        rate: f64::INFINITY,
        life: Duration::from_millis(3),
        ..Plan::default()
    };
    let playing = Player::new(&sim, plan).start();
    let mut finished = std::collections::HashSet::new();
    let expected = {
        playing.over().await;
        playing
            .finished()
            .iter()
            .filter(|object| object.plural == "taskruns")
            .count()
    };
    while finished.len() < expected {
        let run = stream.try_next().await.unwrap().unwrap();
        if run.data["status"]["completionTime"].is_string() {
            finished.insert(run.uid().unwrap());
        }
    }
}

#[tokio::test]
async fn the_cluster_can_be_told_by_the_uid_of_kube_system() {
    let sim = Sim::new();
    let namespaces: Api<Namespace> = Api::all(sim.client());
    let uid = namespaces.get("kube-system").await.unwrap().uid();
    assert_eq!(uid.as_deref(), Some(kubesim::KUBE_SYSTEM_UID));
    let all = namespaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-system"]);
}
